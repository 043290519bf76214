import { once } from 'node:events'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'

type Received = { readonly headers: IncomingMessage['headers']; readonly body: string }

/** An HTTP server that keeps the messages it gets; gone when the test ends. `count`: of the messages so far. */
export async function messageReceiver(
  t: { teardown(end: () => void): unknown },
  answer: (response: ServerResponse, count: number) => void = (response) => response.end(),
): Promise<{ readonly url: string; readonly received: Received[] }> {
  const received: Received[] = []
  const server = createServer((request, response) => {
    const pieces: Buffer[] = []
    request.on('data', (piece: Buffer) => pieces.push(piece))
    request.on('end', () => {
      received.push({ headers: request.headers, body: Buffer.concat(pieces).toString() })
      answer(response, received.length)
    })
  })
  t.teardown(() => {
    server.closeAllConnections()
    server.close()
  })
  await once(server.listen(0, '127.0.0.1'), 'listening')
  const address = server.address()
  if (address === null || typeof address === 'string') throw new Error('The server has no port')
  return { url: `http://127.0.0.1:${address.port}/secret-topic`, received }
}

import { once } from 'node:events'
import { connect } from 'node:tls'
import { type Test, test } from 'tap'
import { administrator } from '../../../api/identity.ts'
import { quietLog } from '../../../daemon/testing/quiet-log.ts'
import { type ApiUnderTest, startApi } from '../../testing/api-under-test.ts'

type Client = { readonly cert?: string; readonly key?: string }

/** Sends the head of a request and these chunks, again and again until the connection is closed. Resolves with what came. */
async function sending(t: Test, { port, authority }: ApiUnderTest, client: Client, chunk: string): Promise<string> {
  const socket = connect({ port, host: '127.0.0.1', ca: authority.certificate, ...client })
  t.teardown(() => socket.destroy())
  let text = ''
  socket
    .on('error', () => undefined)
    .on('data', (bytes: Buffer) => {
      text += bytes.toString('latin1')
    })
  const closed = new Promise<void>((resolve) => {
    socket.once('close', () => resolve())
  })
  await once(socket, 'secureConnect')
  socket.write('POST /api/v1/namespaces/default/configmaps HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n')
  socket.write('Transfer-Encoding: chunked\r\n\r\n')
  const bytes = Buffer.from(chunk.repeat(500))
  const write = () => {
    while (!socket.destroyed && socket.write(bytes));
  }
  socket.on('drain', write)
  write()
  await closed
  return text
}

test('a client that sends a body in chunks of one byte is cut off, whether its body is read or not', async (t) => {
  const api = await startApi({ log: quietLog(t) })
  t.teardown(api.stop)
  const tiny = '1\r\nx\r\n'
  t.match(await sending(t, api, {}, tiny), /^HTTP\/1.1 403 /, 'a stranger, after its answer')
  const { certificate: cert, key } = api.issueFor(administrator)
  t.equal(await sending(t, api, { cert, key }, tiny), '', 'an administrator')
})

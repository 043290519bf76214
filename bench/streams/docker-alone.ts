/** How fast Docker itself gives a log and the output of a command: a client on its socket that reads and drops everything. */
import { once } from 'node:events'
import { request } from 'node:http'
import { connect } from 'node:net'
import { json } from 'node:stream/consumers'

export type DockerAlone = {
  /** MiB per second of the log of this container; of its text, without Docker's frames. */
  log(id: string, mib: number): Promise<number>
  /** MiB per second of a file in this container, as `cat` prints it. */
  cat(id: string, file: string, mib: number): Promise<number>
}

/** `socketPath` of the engine. */
export function dockerAlone(socketPath: string): DockerAlone {
  return {
    log: (id, mib) => received(socketPath, `GET /containers/${id}/logs?stdout=1&stderr=1 HTTP/1.1`, '', mib),
    async cat(id, file, mib) {
      const command = { AttachStdout: true, AttachStderr: true, Cmd: ['cat', file] }
      const { Id } = (await post(socketPath, `/containers/${id}/exec`, command)) as { readonly Id: string }
      return received(socketPath, `POST /exec/${Id}/start HTTP/1.1`, JSON.stringify({ Detach: false, Tty: false }), mib)
    },
  }
}

/** To the end of the connection; one buffer is used again and again. */
async function received(socketPath: string, line: string, body: string, mib: number): Promise<number> {
  const upgrade = body === '' ? 'close' : 'Upgrade\r\nUpgrade: tcp'
  const head = [line, 'Host: docker', `Connection: ${upgrade}`, 'Content-Type: application/json']
  let bytes = 0
  const buffer = Buffer.allocUnsafe(64 * 1024)
  const callback = (length: number) => {
    bytes += length
    return true
  }
  const beganMs = performance.now()
  const socket = connect({ path: socketPath, onread: { buffer, callback } })
  socket.write(`${head.join('\r\n')}\r\nContent-Length: ${body.length}\r\n\r\n${body}`)
  await once(socket, 'close')
  if (bytes < mib * 2 ** 20) throw new Error(`Docker sent ${bytes} bytes only`)
  return mib / ((performance.now() - beganMs) / 1000)
}

async function post(socketPath: string, path: string, body: unknown): Promise<unknown> {
  const asked = request({ socketPath, path, method: 'POST', headers: { 'Content-Type': 'application/json' } })
  asked.end(JSON.stringify(body))
  const [response] = await once(asked, 'response')
  return json(response)
}

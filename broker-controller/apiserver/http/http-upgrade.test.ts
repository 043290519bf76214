import { connect, type TLSSocket } from 'node:tls'
import { type Test, test } from 'tap'
import { administrator } from '../../../api/identity.ts'
import { quietLog } from '../../../daemon/testing/quiet-log.ts'
import { eventually } from '../../../test/support/wait.ts'
import { type ApiUnderTest, startApi } from '../../testing/api-under-test.ts'

/** Request for a pod that does not exist. */
const exec = [
  'GET /api/v1/namespaces/default/pods/a/exec?command=ls&stdout=1 HTTP/1.1',
  'Host: x',
  'Connection: Upgrade',
  'Upgrade: SPDY/3.1',
  'X-Stream-Protocol-Version: v4.channel.k8s.io',
  '\r\n',
].join('\r\n')

async function dial(api: ApiUnderTest, t: Test): Promise<TLSSocket> {
  const { certificate: cert, key } = api.issueFor(administrator)
  const socket = connect({ host: '127.0.0.1', port: api.port, ca: api.authority.certificate, cert, key })
  t.teardown(() => socket.destroy())
  socket.on('error', () => undefined)
  await new Promise((resolve) => socket.once('secureConnect', resolve))
  return socket
}

/** What the server sends until it ends the connection. */
async function textOf(socket: TLSSocket): Promise<string> {
  let text = ''
  for await (const piece of socket.iterator({ destroyOnReturn: false })) text += String(piece)
  return text
}

test('a client that asks for another protocol before it has the answer to another request', async (t) => {
  const api = await startApi({ log: quietLog(t) })
  t.teardown(api.stop)
  const socket = await dial(api, t)
  const closed = new Promise((resolve) => socket.once('close', resolve))
  socket.resume()
  socket.write(`GET /api/v1/nodes HTTP/1.1\r\nHost: x\r\n\r\n${exec}`)
  await closed
  const other = await dial(api, t)
  other.write(exec)
  t.match(await textOf(other), /^HTTP\/1.1 404/, 'others are served')
})

test('a refused upgrade leaves no connection where the client does not close its end', async (t) => {
  const api = await startApi({ log: quietLog(t) })
  t.teardown(api.stop)
  const socket = await dial(api, t)
  socket.allowHalfOpen = true
  socket.write(exec)
  t.match(await textOf(socket), /^HTTP\/1.1 404/)
  await eventually('one is left: that of the client', () => sockets() === 1, { everyMs: 20 })
})

function sockets(): number {
  return process.getActiveResourcesInfo().filter((one) => one === 'TCPSocketWrap').length
}

/** The controller as a process sends what is wrong in its fleet to a real HTTP server. */
import { once } from 'node:events'
import { createServer } from 'node:http'
import { join } from 'node:path'
import { type Test, test } from 'tap'
import { startController, temporaryFolder } from './support/fleet.ts'
import { eventually } from './support/wait.ts'

async function aReceiver(t: Test) {
  const messages: { readonly status: string; readonly message: string }[] = []
  const server = createServer((request, response) => {
    const pieces: Buffer[] = []
    request.on('data', (piece: Buffer) => pieces.push(piece))
    request.on('end', () => {
      messages.push(JSON.parse(Buffer.concat(pieces).toString()))
      response.end()
    })
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.teardown(() => {
    server.closeAllConnections()
    server.close()
  })
  const address = server.address()
  if (address === null || typeof address === 'string') throw new Error('no port')
  return { url: `http://127.0.0.1:${address.port}/hook`, messages }
}

test('nodes that are not ready are one message, and another one when they are gone', async (t) => {
  const { url, messages } = await aReceiver(t)
  const folder = await temporaryFolder(t)
  const channels = [{ name: 'hook', type: 'webhook' as const, url }]
  const controller = await startController(t, {
    dataDir: join(folder, 'controller'),
    settings: { notify: { delay: '1s', groupWait: '6s', resolveDelay: '1s', channels } },
  })
  const names = ['pi-1', 'pi-2']
  for (const name of names) {
    const node = { apiVersion: 'v1', kind: 'Node', metadata: { name, labels: { 'bramble.dev/link': 'ap-kitchen' } } }
    await controller.kubectlWith(JSON.stringify(node), 'apply', '-f', '-')
  }
  await eventually('the problems are sent', () => messages.length > 0)
  t.match(messages, [
    {
      status: 'firing',
      title: '2 problems',
      message: '2 nodes of link ap-kitchen are not ready: pi-1, pi-2',
      count: 2,
    },
  ])
  await controller.kubectl('delete', 'nodes', ...names)
  await eventually('the end is sent', () => messages.length > 1)
  t.match(messages.slice(1), [{ status: 'resolved', title: '2 problems resolved' }])
})

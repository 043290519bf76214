import { mkdtemp, rm } from 'node:fs/promises'
import { createServer } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'tap'
import { askAgent } from './agent-socket.ts'
import { listenPrivately } from './local-socket.ts'

test('the agent answers at its socket, and an invalid answer has a reason', async (t) => {
  // A name of a socket has at most 107 bytes: the folders of tests are longer.
  const folder = await mkdtemp(join(tmpdir(), 'bramble-ask-'))
  t.teardown(() => rm(folder, { recursive: true, force: true }))
  const socketPath = join(folder, 's')
  await t.rejects(askAgent(socketPath, '/network'), {
    message: `No agent answers at ${socketPath}`,
    cause: { code: 'ENOENT' },
  })
  const server = createServer(({ url }, response) => {
    if (url === '/cut') response.write('half of it', () => response.destroy())
    else response.writeHead(url === '/network' ? 200 : 404).end(`this is ${url}`)
  })
  await listenPrivately(server, socketPath)
  t.teardown(() => server.close())
  t.equal(await askAgent(socketPath, '/network'), 'this is /network')
  await t.rejects(askAgent(socketPath, '/other'), { message: /answered 404: it may be of another version/ })
  await t.rejects(askAgent(socketPath, '/cut'), { message: /^No agent answers/ })
})

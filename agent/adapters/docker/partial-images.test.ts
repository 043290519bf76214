import { once } from 'node:events'
import { mkdtemp, rm } from 'node:fs/promises'
import { createServer } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import Dockerode from 'dockerode'
import { test } from 'tap'
import { partialImage } from './partial-images.ts'

test('a hung Docker does not hold up callers that wait for layers to be kept', async (t) => {
  const folder = await mkdtemp(join(tmpdir(), 'bramble-partial-'))
  const socketPath = join(folder, 'docker.sock')
  const server = createServer(() => undefined).listen(socketPath)
  await once(server, 'listening')
  t.teardown(async () => {
    server.closeAllConnections()
    server.close()
    await rm(folder, { recursive: true })
  })
  const partial = partialImage(new Dockerode({ socketPath }), 'web:1', 50)
  await t.rejects(partial.keep(['0123456789ab']), /were not kept within/)
  await t.rejects(partial.drop(), /were not let go within/)
})

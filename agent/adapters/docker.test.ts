import { once } from 'node:events'
import { createServer } from 'node:net'
import { test } from 'tap'
import { startDockerd, whyNoDockerd } from '../../test/support/dockerd.ts'
import { runtimeContract } from '../testing/runtime-contract.ts'
import { dockerRuntime } from './docker.ts'

const image = 'test/busybox:1'

runtimeContract(
  'Docker',
  async (t) => {
    const dockerd = await startDockerd(t)
    await dockerd.importImage(image, ['sleep', '1000'])
    const runtime = dockerRuntime({ socketPath: dockerd.socket, nodeName: 'pi-01' })
    const other = dockerRuntime({ socketPath: dockerd.socket, nodeName: 'pi-02' })
    return { runtime, other, image, freePort }
  },
  whyNoDockerd(),
)

test('an engine that is not there is told as unreachable', async (t) => {
  const runtime = dockerRuntime({ socketPath: '/nonexistent/docker.sock', nodeName: 'pi-01' })
  await t.rejects(runtime.listContainers(), { name: 'RuntimeError', reason: 'Unreachable' })
  await t.rejects(runtime.info(), { name: 'RuntimeError', reason: 'Unreachable' })
  await t.rejects(runtime.watch({ opened: t.fail, changed: t.fail }, new AbortController().signal), {
    name: 'RuntimeError',
    reason: 'Unreachable',
  })
})

async function freePort(): Promise<number> {
  const server = createServer().listen(0)
  await once(server, 'listening')
  const address = server.address()
  server.close()
  await once(server, 'close')
  return typeof address === 'object' && address !== null ? address.port : 0
}

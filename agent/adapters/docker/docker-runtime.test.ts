import { once } from 'node:events'
import { mkdtemp, rm } from 'node:fs/promises'
import { createServer as httpServer, type ServerResponse } from 'node:http'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { test } from 'tap'
import { startDockerd, whyNoDockerd } from '../../../test/support/dockerd.ts'
import { freePort } from '../../testing/free-port.ts'
import { runtimeContract } from '../../testing/runtime-contract.ts'
import { dockerRuntime } from './docker-runtime.ts'

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

test('a missing engine is reported as unreachable', async (t) => {
  const runtime = dockerRuntime({ socketPath: '/nonexistent/docker.sock', nodeName: 'pi-01' })
  await t.rejects(runtime.listContainers(), { name: 'RuntimeError', reason: 'Unreachable' })
  await t.rejects(runtime.info(), { name: 'RuntimeError', reason: 'Unreachable' })
  await t.rejects(runtime.watch({ opened: t.fail, changed: t.fail }, new AbortController().signal), {
    name: 'RuntimeError',
    reason: 'Unreachable',
  })
})

test('a call costs the same however many others are under way', async (t) => {
  const socketPath = join(await mkdtemp(join(tmpdir(), 'bramble-docker-')), 's')
  t.teardown(() => rm(dirname(socketPath), { recursive: true, force: true }))
  const calls = 300
  const waiting: ServerResponse[] = []
  const engine = httpServer((_, response) => {
    waiting.push(response)
    if (waiting.length === calls) for (const one of waiting) one.writeHead(404).end('{"message":"none"}')
  })
  engine.listen(socketPath)
  await once(engine, 'listening')
  t.teardown(() => engine.close())
  const runtime = dockerRuntime({ socketPath, nodeName: 'pi-01' })
  const before = process.cpuUsage()
  const answers = await Promise.all(Array.from({ length: calls }, (_, i) => runtime.findImage(`image:${i}`)))
  const { user } = process.cpuUsage(before)
  t.same(new Set(answers), new Set([undefined]))
  t.ok(user < 2_000_000, `${calls} calls took ${Math.round(user / 1000)} ms of the processor`)
})

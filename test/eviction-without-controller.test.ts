import { test } from 'tap'
import { aPod } from '../api/testing/builders.ts'
import { startDockerd, whyNoDockerd } from './support/dockerd.ts'
import { isServing, loneNode } from './support/lone-node.ts'
import { container, eventually, image, listening } from './support/pods.ts'

test('a node short of memory without a controller evicts pods, and remembers which', {
  skip: whyNoDockerd(),
}, async (t) => {
  const dockerd = await startDockerd(t)
  await dockerd.importImage(image)
  const node = await loneNode(t, dockerd)
  const pod = (name: string, priority: number) =>
    aPod({ name, uid: `uid-${name}`, priority, containers: [container('main', listening[2] ?? '')] })
  const [plain, critical] = [pod('plain', 0), pod('critical', 2_000_001_000)]
  await node.want(plain, critical)
  const serving = async () => (await node.runtime.listContainers()).filter(isServing([plain, critical]))
  const first = node.startAgent()
  await eventually(async () => (await serving()).length === 2)
  await first.stop()

  // No machine has so much left.
  const settings = { evictionHard: { 'memory.available': '99.99%' } }
  const short = node.startAgent({ settings })
  const { pod: evicted } = await short.logged('Pod evicted', 90_000)
  t.equal(evicted, 'default/plain')
  await eventually(async () => (await serving()).length === 1)
  t.equal((await serving())[0]?.identity.podName, 'critical')
  await short.stop()

  const [before] = await serving()
  await node.runtime.stopContainer(before?.id ?? '', 0)
  node.startAgent()
  await eventually(async () => (await serving()).some(({ id }) => id !== before?.id))
  const living = async () => (await node.runtime.listContainers()).filter(({ state }) => state !== 'exited')
  await eventually(
    async () => (await living()).every(({ identity }) => identity.podName === 'critical'),
    () => 'The next agent brought back who has no right to it',
  )
})

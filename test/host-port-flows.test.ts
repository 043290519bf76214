/** A host port of UDP whose pod is replaced while a client keeps sending: controller, agent, Docker and the kernel's flows. */
import { type Test, test } from 'tap'
import { type Asked, endpointProgram } from './support/endpoint-programs.ts'
import { commandOrThrow } from './support/machine-commands.ts'
import { podManifest } from './support/manifests.ts'
import { whyNoFlows } from './support/own-space.ts'
import { image } from './support/pods.ts'
import { type RoutedMachine, routedMachines, sandboxPid, whyNoRoutedMachines } from './support/routed-machines.ts'
import { eventually } from './support/wait.ts'

const [hostPort, containerPort] = [5000, 9000]

test('a client of UDP that goes on sending reaches the next pod, which sees its address', {
  skip: whyNoRoutedMachines() || whyNoFlows(),
}, async (t) => {
  const { controller, first, stranger } = await routedMachines(t)
  await first.startAgent()
  await controller.nodesReady(first.name)
  const start = async (name: string) => {
    const ports = [{ containerPort, hostPort, protocol: 'UDP' }]
    const spec = { nodeName: first.name, terminationGracePeriodSeconds: 0 }
    await controller.kubectlWith(podManifest({ name, image, spec, container: { ports } }), 'apply', '-f', '-')
    await controller.kubectl('wait', '--for=condition=Ready', `pod/${name}`, '--timeout=120s')
    await answerIn(t, first, name)
  }
  const client = endpointProgram(t, 'client', stranger.space)
  const asked: Asked = { protocol: 'udp', address: first.address, port: hostPort, fromPort: 40_000 }
  await start('old')
  await eventually('the first pod answers', async () => (await client.ask(asked))[0] === `old ${stranger.address}`)

  const stop = await client.keepAsking(asked)
  await controller.kubectl('delete', 'pod', 'old', '--now')
  await start('new')
  const answers = await stop()
  t.ok((answers.get(`old ${stranger.address}`) ?? 0) > 0, JSON.stringify([...answers]))
  await eventually(
    'the next pod sees the client',
    async () => (await client.ask(asked))[0] === `new ${stranger.address}`,
  )
})

/** A program in the network of the pod answers datagrams with the name of the pod and the address that it sees. */
async function answerIn(t: Test, machine: RoutedMachine, pod: string): Promise<void> {
  const pid = await sandboxPid(machine.docker, pod)
  const space = `${machine.space}-${pod}`
  await commandOrThrow('ip', ['netns', 'attach', space, String(pid)])
  t.teardown(() => commandOrThrow('ip', ['netns', 'delete', space]))
  await endpointProgram(t, pod, space).listen(containerPort, 'udp')
}

/** Packets for the pods of a node go to the machine that proves its address, and to no other one that has it. */
import { test } from 'tap'
import { agentLauncher } from './support/fleet.ts'
import { type RoutedMachines, routedMachines, whyNoRoutedMachines } from './support/routed-machines.ts'
import { eventually } from './support/wait.ts'

/** Both agents run, and the first machine has a route to the pods of the second. */
async function routed({ controller, first, second }: RoutedMachines) {
  const agents = [await first.startAgent(), await second.startAgent()] as const
  await controller.nodesReady(first.name, second.name)
  const range = await eventually('a range of pods', async () => {
    const read = ['get', 'node', second.name, '-o', 'jsonpath={.spec.podCIDR}']
    return (await controller.kubectl(...read)) || undefined
  })
  const hasRoute = async () => (await first.run('ip', 'route', 'show', range)).includes(`via ${second.address} `)
  await eventually('a route to the other machine', hasRoute)
  return { agents, hasRoute, pod: range.replace(/0\/24$/, '9') }
}

test('another machine that takes the address of a node', { skip: whyNoRoutedMachines() }, async (t) => {
  const machines = await routedMachines(t)
  const { controller, first, second, stranger } = machines
  const { hasRoute, pod } = await routed(machines)
  const shown = async () => (await first.tryRun(agentLauncher, 'network', '--data-dir', first.dataDir)).stdout
  await eventually('the checkpoint, of which the report is', async () =>
    /pi-2 .* route +in place\n/.test(await shown()),
  )
  await stranger.run('nft', 'add table ip seen; add chain ip seen in { type filter hook prerouting priority -300 ; }')
  await stranger.run('nft', `add rule ip seen in ip daddr ${pod} counter`)
  const received = async () =>
    Number(/packets (\d+)/.exec(await stranger.run('nft', 'list', 'table', 'ip', 'seen'))?.[1] ?? 0)
  await controller.program.stop()

  await second.run('ip', 'address', 'del', `${second.address}/24`, 'dev', 'host0')
  await stranger.run('ip', 'address', 'add', `${second.address}/24`, 'dev', 'host0')
  await eventually('the route is gone', async () => {
    await first.tryRun('ping', '-q', '-c', '1', '-W', '1', pod)
    return !(await hasRoute())
  })
  const before = await received()
  t.ok(before > 0, 'its packets went to the other machine before')
  const { code } = await first.tryRun('ping', '-q', '-c', '3', '-W', '1', pod)
  t.not(code, 0)
  t.equal(await received(), before, 'and do not any more')
  t.match(await first.tryRun('ip', 'route', 'get', pod), { code: 2, stderr: /No route to host/ })
  await eventually('the report names it', async () =>
    /pi-2 .* not proven\n[\s\S]*pods of pi-2, whose address \S+ is not proven: its agent has not answered/.test(
      await shown(),
    ),
  )

  await stranger.run('ip', 'address', 'del', `${second.address}/24`, 'dev', 'host0')
  await second.run('ip', 'address', 'add', `${second.address}/24`, 'dev', 'host0')
  await eventually('the node has its address, and its route, again', hasRoute)
})

test('a restart without a controller, with the other agent dead', { skip: whyNoRoutedMachines() }, async (t) => {
  const machines = await routedMachines(t)
  const { controller, first } = machines
  const { agents, hasRoute } = await routed(machines)
  await controller.program.stop()
  agents[1].kill('SIGKILL')
  await agents[1].ended
  await agents[0].stop()
  await first.run('ip', 'route', 'flush', 'proto', '98')
  t.equal(await hasRoute(), false)
  await first.startAgent()
  await eventually('the route that was proven before', hasRoute)
})

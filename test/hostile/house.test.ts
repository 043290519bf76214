/** What is in the house beside the fleet: its MQTT broker, and machines that are not nodes at the ports on which nodes meet. */
import { spawn } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { createInterface } from 'node:readline'
import { type Test, test } from 'tap'
import { tunnelPort } from '../../api/network/pod-network.ts'
import { commandOrThrow, inSpace } from '../support/machine-commands.ts'
import { podManifest } from '../support/manifests.ts'
import { image, listening } from '../support/pods.ts'
import { type RoutedMachines, routedMachines, sandboxPid, whyNoRoutedMachines } from '../support/routed-machines.ts'
import { eventually } from '../support/wait.ts'
import { attackedFleet, unnoticedBy } from './support/attacked-fleet.ts'
import { type HouseholdBehaviour, householdAttacker } from './support/household-attacker.ts'
import { lanAttack } from './support/lan-attacker.ts'

/** Each group on a fleet of its own: with every connection that ends soon, the next one waits twice as long. */
const groups: readonly (readonly HouseholdBehaviour[])[] = [
  ['flood', 'large', 'unasked', 'junk'],
  ['closes', 'deaf', 'silent'],
]
const mostGrowthMiB = 96
const mostLogged = 20_000

/** Its port, and a promise that resolves when it has behaved in each way on a connection. */
async function hostileBroker(t: Test, behaviours: readonly HouseholdBehaviour[]) {
  const [file, ...args] = householdAttacker(behaviours)
  const child = spawn(file, args, { stdio: ['pipe', 'pipe', 'inherit'] })
  t.teardown(() => child.stdin.end())
  const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]()
  const port = Number((await lines.next()).value)
  const seen: string[] = []
  const behaved = async () => {
    while (seen.length < behaviours.length) {
      const { value, done } = await lines.next()
      if (done) throw new Error('The broker has ended')
      seen.push(value)
    }
    return seen
  }
  return { port, behaved }
}

for (const behaviours of groups)
  test(`the broker of the household, as anyone who has it: ${behaviours.join(', ')}`, async (t) => {
    const broker = await hostileBroker(t, behaviours)
    const homeAssistant = {
      server: `mqtt://127.0.0.1:${broker.port}`,
      buttons: ['drain', 'restart'],
      publishInterval: '1s',
    }
    const fleet = await attackedFleet(t, { homeAssistant })
    const { controller } = fleet
    const nodes = () => controller.kubectl('get', 'nodes', '-o', 'jsonpath={.items[*].spec.unschedulable}')
    const [beforeMiB, before] = [await fleet.controllerMiB(), fleet.logLength()]
    let mostMiB = 0
    const look = setInterval(
      () => void fleet.controllerMiB().then((mib) => (mostMiB = Math.max(mostMiB, mib || 0))),
      500,
    )
    t.teardown(() => clearInterval(look))
    await fleet.unnoticed(t, async () => {
      t.same([...(await broker.behaved())].sort(), [...behaviours].sort(), 'all that it does')
    })
    t.ok(mostMiB - beforeMiB < mostGrowthMiB, `${beforeMiB.toFixed(0)} MiB before, at most ${mostMiB.toFixed(0)} MiB`)
    t.ok(fleet.logLength() - before < mostLogged, `${fleet.logLength() - before} characters are logged`)
    t.equal(await nodes(), '', 'no machine is drained')
  })

/** Nodes on different segments, with a tunnel between them, and a pod on the first. */
async function withTunnel(machines: RoutedMachines) {
  const { controller, first, second } = machines
  const agents = [await first.startAgent(), await second.startAgent()] as const
  await controller.nodesReady(first.name, second.name)
  await controller.kubectl('annotate', 'node', second.name, 'bramble.dev/segment=attic')
  const spec = { nodeName: first.name, terminationGracePeriodSeconds: 0 }
  await controller.kubectlWith(podManifest({ name: 'web', image, command: listening, spec }), 'create', '-f', '-')
  await controller.kubectl('wait', '--for=condition=Ready', 'pod/web', '--timeout=80s')
  await eventually('a route into the tunnel', async () => /dev bramble-vxlan/.test(await first.run('ip', 'route')))
  const pid = await sandboxPid(first.docker, 'web')
  const inPod = ['nsenter', `--net=/proc/${pid}/ns/net`, 'nft'] as const
  const pod = await controller.kubectl('get', 'pod', 'web', '-o', 'jsonpath={.status.podIP}')
  const [, mac = ''] = /link\/ether (\S+)/.exec(await first.run('ip', 'link', 'show', 'bramble-vxlan')) ?? []
  const far = (await controller.kubectl('get', 'node', second.name, '-o', 'jsonpath={.spec.podCIDR}')).replace(
    '0/24',
    '9',
  )
  return { agents, inPod, pod, mac, far }
}

test('a machine that is not a node, at the port of the tunnel between nodes', {
  skip: whyNoRoutedMachines(),
}, async (t) => {
  const machines = await routedMachines(t, { seesLinks: true })
  const { controller, first, stranger } = machines
  const { agents, inPod, pod, mac, far } = await withTunnel(machines)
  const counts = (match: string) =>
    `add table ip seen; add chain ip seen in { type filter hook prerouting priority -300 ; }; add rule ip seen in ${match} counter`
  const counted = (text: string) => Number(/packets (\d+)/.exec(text)?.[1])
  await first.run('nft', counts(`ip saddr ${stranger.address} udp dport ${tunnelPort}`))
  await commandOrThrow(inPod[0], [...inPod.slice(1), counts('meta l4proto icmp')])
  const seenByPod = async () =>
    counted(await commandOrThrow(inPod[0], [...inPod.slice(1), 'list', 'table', 'ip', 'seen']))
  await first.run('ping', '-c', '1', '-W', '5', pod)
  const before = await seenByPod()
  t.ok(before > 0, 'what reaches the pod is counted')

  // Frames as a node sends them: to the end of its tunnel, with the addresses of pods.
  const end = ['type', 'vxlan', 'id', '1', 'dstport', `${tunnelPort}`, 'remote', first.address, 'nolearning']
  await stranger.run('ip', 'link', 'add', 'x', ...end)
  await stranger.run('ip', 'link', 'set', 'x', 'up')
  for (const source of ['10.244.99.1', far]) await stranger.tryRun('ip', 'address', 'add', `${source}/32`, 'dev', 'x')
  await stranger.run('ip', 'neighbour', 'add', pod, 'lladdr', mac, 'dev', 'x')
  await stranger.run('ip', 'route', 'add', `${pod}/32`, 'dev', 'x')
  const logged = () => JSON.stringify([agents.map(({ lines }) => lines), controller.program.lines]).length
  const loggedBefore = logged()
  await unnoticedBy(t, controller.kubeconfig, async () => {
    for (const source of ['10.244.99.1', far]) {
      const { code } = await stranger.tryRun('ping', '-c', '20', '-i', '0.05', '-W', '1', '-I', source, pod)
      t.not(code, 0, `as ${source}`)
    }
    // The header of VXLAN, before frames that are cut off, of all sizes and of chance.
    const header = Buffer.from([8, 0, 0, 0, 0, 0, 1, 0])
    const junk = [0, 1, 14, 60, 1_400].map((size) => Buffer.concat([header, randomBytes(size)]))
    const messages = [...junk, Buffer.alloc(0), randomBytes(200)].map((one) => one.toString('base64'))
    const flood = { attack: 'datagrams', to: first.address, messages, perSecond: 5_000, seconds: 3 } as const
    for (const port of [tunnelPort, 4_789, 51_820])
      t.equal((await lanAttack(inSpace(stranger.space), { ...flood, port })).answers, 0, `port ${port} answers nothing`)
  })
  t.ok(counted(await first.run('nft', 'list', 'table', 'ip', 'seen')) > 1_000, 'the frames arrive at the node')
  t.equal(await seenByPod(), before, 'and none at the pod')
  t.ok(logged() - loggedBefore < mostLogged, `${logged() - loggedBefore} characters are logged`)
})

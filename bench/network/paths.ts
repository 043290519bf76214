/** Measures what a way between two containers costs. `--help` prints the usage. */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { cpus, loadavg } from 'node:os'
import { command, commandOrThrow } from '../../test/support/machine-commands.ts'
import { podManifest } from '../../test/support/manifests.ts'
import { image } from '../../test/support/pods.ts'
import { type RoutedMachine, type RoutedMachines, routedMachines } from '../../test/support/routed-machines.ts'
import { eventually } from '../../test/support/wait.ts'
import { median } from '../figures/median.ts'
import { benchmarkOptions } from '../options/benchmark-options.ts'
import { barePaths, type Place } from './bare-paths.ts'
import { wire } from './wire.ts'

const values = benchmarkOptions({
  name: 'node dist/bench/network/paths.js',
  text: `Measures throughput and round trip between pods of two machines by a route, by VXLAN and by a ClusterIP, and compares them with two containers
on Docker's own bridge and with an overlay network of Docker Swarm on the same machines; then the same ways with the rules of Docker alone. The CPU
time of a round trip depends little on what else the machine does. The machines are network namespaces with a dockerd each. Prints a table. Needs
root, the parts of the tests, iperf3 and ping.`,
  options: {
    seconds: { value: 'S', help: 'length of each measurement of throughput', range: [1, 3_600], default: '3' },
    rounds: { value: 'N', help: 'rounds; medians are printed', range: [1, 1_000], default: '5' },
  },
})
const pings = 1000
/** Pings of a burst: enough for CPU time that is counted in milliseconds. */
const floodPings = 20_000

type Path = { readonly name: string; readonly from: Place; readonly to: Place; readonly address?: string }
type Figure = { readonly gigabits: number; readonly roundTripUs?: number; readonly cpuUs?: number }
/** `standard`: of Docker's own bridge in the same round. */
type Compared = { readonly figure: Figure; readonly standard: Figure }

const ends: (() => Promise<unknown>)[] = []
const ending = { teardown: (end: () => Promise<unknown>) => void ends.push(end) }
const rows = new Map<string, Compared[]>()

try {
  await commandOrThrow('iperf3', ['--version'])
  await commandOrThrow('ping', ['-V'])
  const machines = await routedMachines(ending)
  const { controller, first, second } = machines
  await wire(first, second)
  const agents = [await first.startAgent(), await second.startAgent()]
  await controller.nodesReady(first.name, second.name)
  const [load = 0] = loadavg()
  console.log(`${cpus().length} cores, load ${load.toFixed(1)}, ${values.rounds} rounds of ${values.seconds} s\n`)
  const [one, neighbour, other] = await pods(machines)
  const clusterIP = await service(machines)
  const bridged = [await container(first, 'bridge'), await container(first, 'bridge')] as const
  const overlay = await swarm(first, second)
  const base: Path = { name: "Docker's own bridge, one machine", from: bridged[0], to: bridged[1] }
  const bare = await barePaths(ending, machines.network)
  const bareRoute: Path = { name: 'a bare route, without Docker and rules', from: bare.route[0], to: bare.route[1] }
  const bareTunnel: Path = { name: 'bare VXLAN, without Docker and rules', from: bare.vxlan[0], to: bare.vxlan[1] }
  const swarmed: Path = { name: 'containers of two machines, overlay of Swarm', from: overlay[0], to: overlay[1] }
  const paths: readonly Path[] = [
    { name: 'pods of one machine', from: one, to: neighbour },
    { name: 'pods of two machines, route', from: one, to: other },
    { name: 'the same, by a ClusterIP', from: one, to: other, address: clusterIP },
    bareRoute,
    swarmed,
  ]
  await compare(base, paths)
  await tunnelled(machines, other)
  await compare(base, [{ name: 'pods of two machines, VXLAN', from: one, to: other }, bareTunnel, swarmed])
  for (const agent of agents) await agent.stop()
  await withoutRules([first, second])
  await compare(base, [{ name: "VXLAN, with Docker's rules alone", from: one, to: other }])
  await untunnelled([first, second])
  await compare(base, [{ name: "a route, with Docker's rules alone", from: one, to: other }])
  console.log(table())
} catch (error) {
  console.error(error)
  process.exitCode = 1
} finally {
  for (const end of ends.reverse()) await end()
}

/** In each round one after the other: what else the machine does falls on all of them. */
async function compare(base: Path, paths: readonly Path[]): Promise<void> {
  for (let round = 0; round < values.rounds; round++) {
    const standard = await measured(base)
    for (const path of [base, ...paths]) {
      const figure = path === base ? standard : await measured(path)
      rows.set(path.name, [...(rows.get(path.name) ?? []), { figure, standard }])
    }
  }
}

/** Medians of the figures, and of their ratios to the standard of the same round. */
function table(): string {
  const line = ([name, pairs]: readonly [string, readonly Compared[]]) => {
    const rate = median(pairs.map(({ figure }) => figure.gigabits))
    const rateRatio = median(pairs.map(({ figure, standard }) => figure.gigabits / standard.gigabits))
    const trips = (['roundTripUs', 'cpuUs'] as const).map((name) => {
      const found = pairs.flatMap(({ figure: { [name]: us }, standard: { [name]: standardUs } }) =>
        us === undefined || standardUs === undefined ? [] : { us, ratio: us / standardUs },
      )
      if (found.length === 0) return '- | -'
      return `${median(found.map(({ us }) => us)).toFixed(1)} us | ${median(found.map(({ ratio }) => ratio)).toFixed(2)}`
    })
    return `| ${name} | ${rate.toFixed(1)} Gbit/s | ${rateRatio.toFixed(2)} | ${trips.join(' | ')} |`
  }
  const head = '| path | throughput | ratio | round trip | ratio | its CPU time | ratio |'
  return [head, '|---|---|---|---|---|---|---|', ...[...rows].map(line)].join('\n')
}

async function measured({ from, to, address }: Path): Promise<Figure> {
  const gigabits = await throughput(from, to, address ?? to.address)
  if (address !== undefined) return { gigabits }
  return { gigabits, roundTripUs: await roundTrip(from, to.address), cpuUs: await cpuTime(from, to.address) }
}

function within({ net }: Place, ...line: readonly string[]): [string, readonly string[]] {
  return ['nsenter', [`--net=${net}`, ...line]]
}

/** Throughput of one TCP connection. */
async function throughput(from: Place, to: Place, address: string): Promise<number> {
  const server = spawn(...within(to, 'iperf3', '--server', '--one-off', '--forceflush'), {
    stdio: ['ignore', 'pipe', 'ignore'],
  })
  const ended = once(server, 'close')
  try {
    const [line] = await Promise.race([once(server.stdout, 'data'), ended]) // it listens
    if (!Buffer.isBuffer(line)) throw new Error(`the server of iperf3 ended at once, with ${line}`)
    const client = within(from, 'iperf3', '--client', address, '--time', String(values.seconds), '--json')
    const { end } = JSON.parse(await commandOrThrow(...client)) as {
      end: { sum_received: { bits_per_second: number } }
    }
    return end.sum_received.bits_per_second / 1e9
  } finally {
    server.kill()
    await ended
  }
}

async function roundTrip(from: Place, address: string): Promise<number> {
  const printed = await commandOrThrow(...within(from, 'ping', '-q', '-i', '0.002', '-c', String(pings), address))
  const average = /= [\d.]+\/([\d.]+)\//.exec(printed)?.[1]
  if (average === undefined) throw new Error(`ping printed no average: ${printed}`)
  return Number(average) * 1000
}

/**
 * CPU time of a datagram and its answer, microseconds: the kernel handles both, over their whole way, within the call
 * with which ping sends.
 */
async function cpuTime(from: Place, address: string): Promise<number> {
  const timed = `TIMEFORMAT='%U %S'; time ping -f -q -c ${floodPings} ${address} > /dev/null`
  const { code, stderr } = await command(...within(from, 'bash', '-c', timed))
  const seconds = /^([\d.]+) ([\d.]+)$/m.exec(stderr)
  if (code !== 0 || seconds === null) throw new Error(`ping ended with ${code}: ${stderr}`)
  return ((Number(seconds[1]) + Number(seconds[2])) / floodPings) * 1e6
}

/** Two on the first machine, one on the second. */
async function pods({ controller, first, second }: RoutedMachines): Promise<readonly [Place, Place, Place]> {
  const place = async (name: string, machine: RoutedMachine): Promise<Place> => {
    const spec = { nodeName: machine.name, terminationGracePeriodSeconds: 0 }
    await controller.kubectlWith(podManifest({ name, image, spec }), 'apply', '-f', '-')
    const address = await eventually(`an address of ${name}`, async () => {
      const read = ['get', 'pod', name, '-o', 'jsonpath={.status.phase} {.status.podIP}']
      return /^Running ([\d.]+)$/.exec(await controller.kubectl(...read))?.[1]
    })
    const label = [`io.kubernetes.pod.name=${name}`, 'io.kubernetes.docker.type=podsandbox']
    const { docker } = machine.docker
    const [sandbox] = await docker.listContainers({ filters: JSON.stringify({ label }) })
    if (sandbox === undefined) throw new Error(`${name} has no sandbox`)
    return { net: netOf((await docker.getContainer(sandbox.Id).inspect()).State.Pid), address }
  }
  return [await place('one', first), await place('neighbour', first), await place('other', second)]
}

/** Creates a Service for the pod on the second machine and returns its address. */
async function service({ controller, first }: RoutedMachines): Promise<string> {
  await controller.kubectl('expose', 'pod', 'other', '--port=5201')
  const address = await controller.kubectl('get', 'service', 'other', '-o', 'jsonpath={.spec.clusterIP}')
  await eventually('rules of the Service', async () =>
    (await first.run('nft', 'list', 'table', 'ip', 'bramble')).includes(address),
  )
  return address
}

async function container({ docker: { docker } }: RoutedMachine, network: string): Promise<Place> {
  const made = await docker.createContainer({
    Image: image,
    Cmd: ['sleep', '100000'],
    HostConfig: { NetworkMode: network },
  })
  await made.start()
  const { State, NetworkSettings } = await made.inspect()
  const address = NetworkSettings.Networks[network]?.IPAddress
  if (!address) throw new Error(`A container on ${network} has no address`)
  return { net: netOf(State.Pid), address }
}

/** Network namespace of a container, by its process. */
function netOf(pid: number): string {
  return `/proc/${pid}/ns/net`
}

/** A container on each machine, on one overlay network. */
async function swarm(first: RoutedMachine, second: RoutedMachine): Promise<readonly [Place, Place]> {
  const [one, two] = [first.docker.docker, second.docker.docker]
  await one.swarmInit({
    ListenAddr: `${first.address}:2377`,
    AdvertiseAddr: first.address,
    DataPathAddr: first.address,
  })
  ending.teardown(() => one.swarmLeave({ force: true }))
  const { JoinTokens } = await one.swarmInspect()
  const joining = { RemoteAddrs: [first.address], JoinToken: JoinTokens.Worker }
  await two.swarmJoin({
    ...joining,
    ListenAddr: `${second.address}:2377`,
    AdvertiseAddr: second.address,
    DataPathAddr: second.address,
  })
  ending.teardown(() => two.swarmLeave({ force: true }))
  await one.createNetwork({ Name: 'wide', Driver: 'overlay', Attachable: true })
  return [await container(first, 'wide'), await container(second, 'wide')]
}

/** Puts the second machine on another link, and waits until the pods of both reach each other again. */
async function tunnelled({ controller, first, second }: RoutedMachines, other: Place): Promise<void> {
  await controller.kubectl('annotate', 'node', second.name, 'bramble.dev/segment=attic')
  for (const { run } of [first, second]) {
    await eventually('a route into the tunnel', async () => /dev bramble-vxlan/.test(await run('ip', 'route')))
  }
  await eventually('a way through the tunnel', async () => {
    return (await first.tryRun('ping', '-c', '1', '-W', '1', other.address)).code === 0
  })
}

/** Docker's rules let all packets pass, at the place at which they obey the mark of ours otherwise. */
async function withoutRules(machines: readonly RoutedMachine[]): Promise<void> {
  for (const { run } of machines) {
    await run('iptables', '--wait', '5', '--insert', 'DOCKER-USER', '--jump', 'ACCEPT')
    await run('nft', 'delete', 'table', 'ip', 'bramble')
  }
}

/** Leads packets between the pods of both past the tunnel. */
async function untunnelled([one, two]: readonly [RoutedMachine, RoutedMachine]): Promise<void> {
  for (const [{ run, name }, { address }] of [[one, two] as const, [two, one] as const]) {
    const range = /^(\S+) .*dev bramble-vxlan/m.exec(await run('ip', 'route'))?.[1]
    if (range === undefined) throw new Error(`${name} has no route into the tunnel`)
    await run('ip', 'route', 'replace', range, 'via', address)
  }
}

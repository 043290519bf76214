/** Measures the network traffic of an idle node. `--help` prints the usage. */
import { execFile } from 'node:child_process'
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { startDockerd } from '../test/support/dockerd.ts'
import { type MachineNetwork, machineNetwork } from '../test/support/machine-network.ts'
import { startProgram } from '../test/support/program.ts'
import { benchmarkOptions } from './options/benchmark-options.ts'

const values = benchmarkOptions({
  name: 'node dist/bench/wire.js',
  text: `Measures the network traffic of an idle node: an agent in a network namespace of its own, joined to a controller outside of it by a pair of
virtual interfaces. The kernel's counters of the pair include the headers of Ethernet, IP and TCP. Prints a table. Needs root, ip, docker.io, and
bundles (npm run build).`,
  options: {
    tree: { value: 'DIR', help: 'measure the programs of this checkout in the same run', repeated: true },
    metered: { help: 'measure an agent of this tree with metered: true, too' },
    seconds: { value: 'S', help: 'how long bytes are counted', range: [1, 1_000_000], default: '600' },
    settle: { value: 'S', help: 'seconds after the start before they are counted', range: [0, 100_000], default: '90' },
  },
})
const here = fileURLToPath(new URL('../..', import.meta.url))
const run = promisify(execFile)
const ends: (() => Promise<unknown>)[] = []
const ending = { teardown: (end: () => Promise<unknown>) => void ends.push(end) }

type Counted = { readonly bytes: number; readonly packets: number; readonly ipBytes: number }
type Measured = { readonly name: string; readonly settings?: Readonly<Record<string, unknown>>; readonly tree: string }

try {
  const folder = await mkdtemp(join(tmpdir(), 'bw-'))
  ending.teardown(() => rm(folder, { recursive: true, force: true }))
  const trees: Measured[] = [
    ...values.tree.map((tree) => ({ name: tree, tree: resolve(tree) })),
    { name: 'this tree', tree: here },
    ...(values.metered ? [{ name: 'this tree, metered', tree: here, settings: { metered: true } }] : []),
  ]
  const dockerd = await startDockerd(ending)
  await dockerd.importImage('test/busybox:1', ['sleep', '100000'])
  const network = await machineNetwork(ending)
  const counters: (() => Promise<Counted>)[] = []
  for (const [index, one] of trees.entries()) {
    counters.push(await idleNode(one, { folder: join(folder, String(index)), index, docker: dockerd.socket, network }))
  }
  await delay(values.settle * 1000)
  const before = await Promise.all(counters.map((count) => count()))
  await delay(values.seconds * 1000)
  const after = await Promise.all(counters.map((count) => count()))
  console.log(
    `| | bytes in ${values.seconds} s | MB a month | packets | of IP: bytes | MB a month |\n|---|---|---|---|---|---|`,
  )
  for (const [index, { name }] of trees.entries()) {
    const more = (field: keyof Counted) => (after[index]?.[field] ?? 0) - (before[index]?.[field] ?? 0)
    const month = (bytes: number) => ((bytes / values.seconds) * 30 * 0.0864).toFixed(1)
    const [bytes, ipBytes] = [more('bytes'), more('ipBytes')]
    console.log(`| ${[name, bytes, month(bytes), more('packets'), ipBytes, month(ipBytes)].join(' | ')} |`)
  }
} catch (error) {
  console.error(error)
  process.exitCode = 1
} finally {
  for (const end of ends.reverse()) await end().catch((error: unknown) => console.error(error))
}

type Place = {
  readonly folder: string
  readonly index: number
  readonly docker: string
  readonly network: MachineNetwork
}

/** Starts a controller and an agent that reach each other over the pair only; gives the counter of the agent's end. */
async function idleNode({ tree, settings = {} }: Measured, { folder, index, docker, network }: Place) {
  const space = `bw-${process.pid}-${index}`
  const plug = network.plug(space)
  ending.teardown(() => plug.remove())
  await plug.fresh()
  const inSpace = (...args: readonly string[]) => run('ip', ['netns', 'exec', space, ...args])
  // Router solicitations and duplicate address detection are not the agent's.
  await inSpace('sh', '-c', 'echo 1 > /proc/sys/net/ipv6/conf/host0/disable_ipv6')
  await writeFile(`/proc/sys/net/ipv6/conf/${space}/disable_ipv6`, '1')

  const [controllerDir, agentDir] = [join(folder, 'controller'), join(folder, 'agent')]
  const controllerCommand = join(tree, 'scripts/bramble-controller')
  const controller = startProgram(
    [
      ...[
        controllerCommand,
        'run',
        '--data-dir',
        controllerDir,
        '--log-format',
        'json',
        '--bind-address',
        network.hostAddress,
      ],
      ...['--advertise-address', network.hostAddress, '--api-port', '0', '--mqtt-port', '0'],
    ],
    (end) => ending.teardown(end),
  )
  const ready = await controller.logged('Controller ready')
  const kubeconfig = String(ready['kubeconfig'])
  const made = await run(controllerCommand, ['token', 'create', '--kubeconfig', kubeconfig, '--print-join-command'])
  const line = made.stdout.split('\n').find((one) => one.startsWith('bramble-agent join '))
  if (line === undefined) throw new Error(`No join line: ${made.stdout}${made.stderr}`)
  const agentCommand = join(tree, 'scripts/bramble-agent')
  const joining = ['--no-run', '--node-name', `pi-0${index}`, '--data-dir', agentDir]
  await inSpace(agentCommand, ...line.trim().split(' ').slice(1), ...joining)
  const config = join(folder, 'agent.yaml')
  await writeFile(
    config,
    JSON.stringify({ apiVersion: 'bramble.dev/v1alpha1', kind: 'AgentConfiguration', ...settings }),
  )
  const agent = startProgram(
    [
      ...[
        'ip',
        'netns',
        'exec',
        space,
        agentCommand,
        'run',
        '--data-dir',
        agentDir,
        '--config',
        config,
        '--docker-socket',
        docker,
      ],
      ...['--healthz-port', '0', '--log-format', 'json'],
    ],
    (end) => ending.teardown(end),
  )
  await agent.logged('Node status posted')
  return async (): Promise<Counted> => {
    const { stdout } = await inSpace('cat', '/proc/net/netstat')
    return { ...(await counted(space)), ipBytes: ipBytesIn(stdout) }
  }
}

/** What the outer end of the pair has received and sent. */
async function counted(name: string): Promise<Omit<Counted, 'ipBytes'>> {
  const read = async (field: string) => Number(await readFile(`/sys/class/net/${name}/statistics/${field}`, 'utf8'))
  const [rx, tx, rxPackets, txPackets] = await Promise.all(
    ['rx_bytes', 'tx_bytes', 'rx_packets', 'tx_packets'].map(read),
  )
  return { bytes: (rx ?? 0) + (tx ?? 0), packets: (rxPackets ?? 0) + (txPackets ?? 0) }
}

/** `IpExt` of /proc/net/netstat: names on one line, values on the next. Without Ethernet's headers, and without ARP. */
function ipBytesIn(text: string): number {
  const [names = [], numbers = []] = text
    .split('\n')
    .filter((line) => line.startsWith('IpExt:'))
    .map((line) => line.split(' '))
  const value = (name: string) => Number(numbers[names.indexOf(name)] ?? Number.NaN)
  return value('InOctets') + value('OutOctets')
}

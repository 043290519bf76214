/** A controller, and an agent in a network namespace of its own, which reach each other by a pair of virtual interfaces only. */
import { execFile } from 'node:child_process'
import { mkdir, readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { ownAddresses } from '../../test/support/addresses.ts'
import { inSpace } from '../../test/support/machine-commands.ts'
import type { MachineNetwork } from '../../test/support/machine-network.ts'
import { type Program, startProgram } from '../../test/support/program.ts'
import { endOfAgent } from '../../test/support/volumes.ts'

const run = promisify(execFile)

export type Counted = { readonly bytes: number; readonly packets: number; readonly ipBytes: number }

export type Place = {
  readonly folder: string
  /** Index of the namespace and the node among those of this process. */
  readonly index: number
  readonly docker: string
  readonly network: MachineNetwork
  /** The checkout whose programs run. */
  readonly tree: string
  readonly settings?: Readonly<Record<string, unknown>>
  readonly teardown: (end: () => Promise<unknown>) => void
}

export type NodeInSpace = {
  readonly nodeName: string
  readonly kubeconfig: string
  readonly agent: Program
  /** What the agent's end of the pair has received and sent. */
  count(): Promise<Counted>
}

/** Resolves when the node has posted its status. */
export async function nodeInSpace(place: Place): Promise<NodeInSpace> {
  const { folder, index, docker, network, tree, settings = {}, teardown } = place
  const space = `bw-${process.pid}-${index}`
  const plug = network.plug(space)
  teardown(() => plug.remove())
  await plug.fresh()
  const inside = (...args: readonly string[]) => run('ip', ['netns', 'exec', space, ...args])
  // Router solicitations and duplicate address detection are not the agent's.
  await inside('sh', '-c', 'echo 1 > /proc/sys/net/ipv6/conf/host0/disable_ipv6')
  await writeFile(`/proc/sys/net/ipv6/conf/${space}/disable_ipv6`, '1')

  const [controllerDir, agentDir] = [join(folder, 'controller'), join(folder, 'agent')]
  const controllerCommand = join(tree, 'scripts/bramble-controller')
  const controllerConfig = join(folder, 'controller.yaml')
  await mkdir(folder, { recursive: true })
  // Several fleets run on this machine.
  const facts = { apiVersion: 'bramble.dev/v1alpha1', kind: 'ControllerConfiguration', podNetwork: 'node' }
  await writeFile(controllerConfig, JSON.stringify({ ...facts, clusterCIDR: `${await ownAddresses()}.0/20` }))
  const controller = startProgram(
    [
      ...[controllerCommand, 'run', '--data-dir', controllerDir, '--config', controllerConfig, '--log-format', 'json'],
      ...['--bind-address', network.hostAddress, '--advertise-address', network.hostAddress],
      ...['--api-port', '0', '--mqtt-port', '0'],
    ],
    teardown,
  )
  const ready = await controller.logged('Controller ready')
  const kubeconfig = String(ready['kubeconfig'])
  const made = await run(controllerCommand, ['token', 'create', '--kubeconfig', kubeconfig, '--print-join-command'])
  const line = made.stdout.split('\n').find((one) => one.startsWith('bramble-agent join '))
  if (line === undefined) throw new Error(`No join line: ${made.stdout}${made.stderr}`)
  const agentCommand = join(tree, 'scripts/bramble-agent')
  const nodeName = `pi-0${index}`
  const joining = ['--no-run', '--node-name', nodeName, '--data-dir', agentDir]
  await inside(agentCommand, ...line.trim().split(' ').slice(1), ...joining)
  const config = join(folder, 'agent.yaml')
  await writeFile(
    config,
    JSON.stringify({ apiVersion: 'bramble.dev/v1alpha1', kind: 'AgentConfiguration', ...settings }),
  )
  // Not `ip netns exec`: Docker would not see what the agent mounts for its pods.
  const agent = startProgram(
    inSpace(
      space,
      ...[agentCommand, 'run', '--data-dir', agentDir, '--config', config, '--docker-socket', docker],
      ...['--healthz-port', '0', '--log-format', 'json'],
    ),
    endOfAgent({ teardown }, agentDir),
  )
  await agent.logged('Node status posted')
  return {
    ...{ nodeName, kubeconfig, agent },
    async count() {
      const { stdout } = await inside('cat', '/proc/net/netstat')
      return { ...(await counted(space)), ipBytes: ipBytesIn(stdout) }
    },
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

/** The stations between a node and the addresses of its pod: which of them lacks what the next one needs. */
import { agentLauncher } from './fleet.ts'
import type { RoutedMachine, RoutedMachines } from './routed-machines.ts'

/** A line for each station, in the order in which an address passes them. Never rejects. */
export async function addressStations({ controller, first, second }: RoutedMachines, pod: string): Promise<string> {
  const shown = (kind: string, name: string, path: string) => controller.tryKubectl('get', kind, name, '-o', path)
  const nodeName = (await shown('pod', pod, 'jsonpath={.spec.nodeName}').catch(() => undefined))?.stdout.trim()
  const machine = [first, second].find(({ name }) => name === nodeName)
  const node = nodeName || first.name
  const stations: readonly [string, () => Promise<string>][] = [
    ['Node: ranges', async () => (await shown('node', node, 'jsonpath={.spec.podCIDRs}')).stdout],
    ['Node: addresses', async () => (await shown('node', node, 'jsonpath={.status.addresses}')).stdout],
    ['Node: conditions', async () => (await shown('node', node, `jsonpath=${networkConditions}`)).stdout],
    [
      'agent: the message of the network',
      async () => (machine ? await receivedNetwork(machine) : 'the pod has no node'),
    ],
    ['engine: networks', async () => (machine ? await networksOf(machine) : '')],
    ['engine: containers', async () => (machine ? await containersOf(machine, pod) : '')],
    ['Pod: status', async () => (await shown('pod', pod, 'jsonpath={.status}')).stdout],
    [
      'Pod: events',
      async () => (await shown('events', `--field-selector=involvedObject.name=${pod}`, podEvents)).stdout,
    ],
    ['agent: warnings', async () => (machine ? warningsOf(machine) : '')],
  ]
  const texts: string[] = []
  for (const [station, read] of stations) {
    const text = await read().catch((error) => `cannot be read: ${error}`)
    texts.push(`${station}: ${text.trim() || 'none'}`)
  }
  return texts.join('\n')
}

const networkConditions = '{range .status.conditions[*]}{.type}={.status} ({.reason}: {.message}); {end}'
const podEvents = 'jsonpath={range .items[*]}{.lastTimestamp} {.reason}: {.message}; {end}'

async function receivedNetwork({ tryRun, dataDir }: RoutedMachine): Promise<string> {
  const { stdout, stderr } = await tryRun(agentLauncher, 'network', '--data-dir', dataDir)
  return `${stdout}${stderr}`
}

async function networksOf({ docker }: RoutedMachine): Promise<string> {
  const networks = await docker.docker.listNetworks()
  return networks
    .map(({ Name, Created, IPAM }) => `${Name} ${Created} ${(IPAM?.Config ?? []).map(({ Subnet }) => Subnet).join()}`)
    .join('; ')
}

async function containersOf({ docker }: RoutedMachine, pod: string): Promise<string> {
  const label = [`io.kubernetes.pod.name=${pod}`]
  const found = await docker.docker.listContainers({ all: true, filters: JSON.stringify({ label }) })
  return found
    .map(({ Names, State, Status, NetworkSettings }) => {
      const on = Object.entries(NetworkSettings.Networks).map(
        ([name, { IPAddress, GlobalIPv6Address }]) => `${name} ${IPAddress} ${GlobalIPv6Address}`,
      )
      return `${Names.join()} ${State} (${Status}) on ${on.join()}`
    })
    .join('; ')
}

function warningsOf(machine: RoutedMachine): string {
  const warnings = machine.agentLines().filter(({ level }) => level === 'warn' || level === 'error')
  return warnings
    .slice(-20)
    .map((line) => JSON.stringify(line))
    .join('; ')
}

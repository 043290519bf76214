/**
 * `bramble-agent network`: how this node reaches the pods of the others, or one name; with `--remove`, all of it is taken out of the
 * kernel.
 */
import { storyOf } from '../../daemon/log.ts'
import { printText, readArguments, refuse } from '../../daemon/process/command-line.ts'
import { exitCode } from '../../daemon/process/exit-code.ts'
import { networkRow } from '../commands/command-table.ts'
import type { BalancerHost } from './balancers/balancer-manager.ts'
import type { KnownNetwork } from './live-network.ts'
import type { NameHost } from './names/name-server.ts'
import type { RuleTable } from './network-manager.ts'
import { networkPath, pathText } from './network-path.ts'
import {
  type IsolatedPod,
  type NetworkReport,
  networkReport,
  networkText,
  reportWithoutNetwork,
} from './network-report.ts'
import type { IPv6Guard } from './peers/ipv6-guard.ts'
import { planRoutes } from './peers/route-steps.ts'
import type { HostNetwork } from './peers/route-sync.ts'
import { portGuardName } from './ports/port-guard.ts'
import type { PortTable } from './ports/port-guard-manager.ts'
import type { WireguardState } from './wireguard/wireguard-plan.ts'

export type NetworkSources = {
  /** Undefined: the machine has not joined. */
  nodeName(): Promise<string | undefined>
  /** What the agent that runs on this machine has. Rejects with the reason where none answers. */
  liveNetwork(): Promise<KnownNetwork>
  /** Network in the checkpoint: what an agent had at most a minute before it last wrote. */
  savedNetwork(): Promise<KnownNetwork>
  /** The process ID of the agent that has the network of this machine, where it is not the one of this data directory. */
  otherAgent(): Promise<number | undefined>
  readonly host: Pick<HostNetwork, 'links' | 'made' | 'apply' | 'refuseMarked'> & {
    isAccepting(): Promise<boolean>
    acceptsIPv6(): Promise<boolean>
  }
  readonly table: Pick<RuleTable, 'isIntact' | 'remove'>
  /** Rules of the ports of pods. */
  readonly portTable: Pick<PortTable, 'remove'>
  readonly ipv6Table: Pick<RuleTable, 'isIntact'>
  readonly hasIPv6: boolean
  readonly ipv6Forwarding: { restore(): Promise<void> }
  readonly ipv6: Pick<IPv6Guard, 'remove'> & { isClosed(): Promise<boolean> }
  /** Addresses of load balancers. */
  readonly balancers: Pick<BalancerHost, 'held' | 'clear'>
  /** The address of the name server. */
  readonly names: Pick<NameHost, 'release'>
  /** Those that the table of rules has. */
  isolatedPods(): Promise<readonly IsolatedPod[]>
  /** Whether the kernel forwards IPv4 packets. */
  forwards(): Promise<boolean>
  /** The same of IPv6. */
  forwardsIPv6(): Promise<boolean>
  /** Whether packets between ports of a bridge pass the rules. */
  filtersBridges(): Promise<boolean>
  /** undefined: there is no interface. */
  wireguard(): Promise<WireguardState | undefined>
  nowMs(): number
}

export type NetworkCommandNeeds = {
  readonly sourcesFor: (request: { readonly root: string; readonly dataDir: string }) => NetworkSources
  readonly defaults: { readonly root: string; readonly dataDir: string }
  readonly stdout: (text: string) => void
  readonly stderr: (text: string) => void
}

/** `argv`: what follows `network`. Gives the exit status: 1 where something is missing. */
export async function networkCommand(argv: readonly string[], needs: NetworkCommandNeeds): Promise<number> {
  const read = readArguments(networkRow, argv)
  if (read.want !== 'act') return printText(read, needs)
  const { remove, output, root = needs.defaults.root, 'data-dir': dataDir = needs.defaults.dataDir } = read.values
  const [name] = read.args
  if (remove && name !== undefined) return printText(refuse(networkRow, '--remove takes no NAME'), needs)
  const sources = needs.sourcesFor({ root, dataDir })
  try {
    return remove ? await removeAll(sources, needs) : await show(sources, { output, name }, needs)
  } catch (error) {
    needs.stderr(`${storyOf(error)}\n`)
    return exitCode.failed
  }
}

type Shown = { readonly output: 'text' | 'json'; readonly name: string | undefined }

async function show(sources: NetworkSources, { output, name }: Shown, needs: NetworkCommandNeeds): Promise<number> {
  const nodeName = await sources.nodeName()
  if (nodeName === undefined) {
    needs.stderr('This machine has not joined a fleet\n')
    return exitCode.failed
  }
  const found = await receivedBy(sources)
  const { message } = found.network
  const report = await reportOf(sources, nodeName, found.network)
  if (name === undefined || message === undefined) return print(report, networkText(report), { output, found }, needs)
  const path = networkPath(name, { ...found.network, message, report })
  if (path !== undefined) return print(path, pathText(path), { output, found }, needs)
  needs.stderr(
    `${name} is not a Service, node or address that this node has received: use NAMESPACE/SERVICE or a DNS name\n`,
  )
  return exitCode.failed
}

type Received = { readonly network: KnownNetwork; readonly source: 'agent' } | FromCheckpoint
type FromCheckpoint = { readonly network: KnownNetwork; readonly source: 'checkpoint'; readonly because: string }

/** What this node has received: of the agent that runs, and of the checkpoint where none answers. */
async function receivedBy({ liveNetwork, savedNetwork }: NetworkSources): Promise<Received> {
  try {
    return { network: await liveNetwork(), source: 'agent' }
  } catch (error) {
    return { network: await savedNetwork(), source: 'checkpoint', because: storyOf(error) }
  }
}

function print(
  shown: { readonly problems: readonly string[] },
  text: string,
  { output, found }: { readonly output: Shown['output']; readonly found: Received },
  { stdout }: NetworkCommandNeeds,
): number {
  const note = found.source === 'agent' ? '' : `\nFrom the checkpoint, which may be older. ${found.because}\n`
  const { source } = found
  stdout(output === 'json' ? `${JSON.stringify({ ...shown, source }, null, 2)}\n` : `${text}${note}`)
  return shown.problems.length === 0 ? exitCode.fine : exitCode.failed
}

async function reportOf(sources: NetworkSources, nodeName: string, known: KnownNetwork): Promise<NetworkReport> {
  const { host, table, balancers } = sources
  if (known.message === undefined) return reportWithoutNetwork(nodeName, known.obstacle)
  return networkReport({
    ...known,
    nodeName,
    heldAddresses: balancers.held(),
    links: await host.links(true),
    made: await host.made(),
    hasRules: await table.isIntact(true),
    hasIPv6: sources.hasIPv6,
    ...(known.message?.ipv6 && { ipv6: await ipv6Findings(sources) }),
    isIPv6Closed: await sources.ipv6.isClosed(),
    dockerAccepts: await host.isAccepting(),
    forwards: await sources.forwards(),
    filtersBridges: await sources.filtersBridges(),
    isolated: await sources.isolatedPods(),
    wireguard: known.message?.wireguard && (await sources.wireguard()),
    nowSeconds: sources.nowMs() / 1000,
  })
}

async function ipv6Findings({ host, ipv6Table, forwardsIPv6 }: NetworkSources) {
  return {
    hasRules: await ipv6Table.isIntact(true),
    dockerAccepts: await host.acceptsIPv6(),
    forwards: await forwardsIPv6(),
  }
}

/**
 * Each agent of a machine has a table of ports, and one has the rest. Docker's rule goes last: packets are let through by a mark that nothing
 * sets any more.
 */
async function removeAll(
  { nodeName, portTable, otherAgent, host, table, ipv6, ipv6Forwarding, balancers, names }: NetworkSources,
  { stdout, stderr }: NetworkCommandNeeds,
): Promise<number> {
  const own = await nodeName()
  if (own !== undefined) await portTable.remove(portGuardName(own))
  const pid = await otherAgent()
  if (pid !== undefined) {
    stderr(
      `Only rules of the ports of pods were removed: the rules and routes of this machine are those of another agent, process ${pid}. Stop it first\n`,
    )
    return exitCode.failed
  }
  const { steps } = planRoutes(undefined, await host.made(), await host.links(true))
  const failed = await host.apply(steps)
  await balancers.clear()
  await table.remove()
  await ipv6.remove()
  await ipv6Forwarding.restore()
  await names.release()
  await host.refuseMarked()
  for (const { step, because } of failed) stderr(`${step.step} failed: ${because}\n`)
  if (failed.length > 0) return exitCode.failed
  stdout(
    'Routes, rules and tunnel of the network of pods, rules of their ports, and the addresses of its name server and of load balancers, are removed. A running agent makes them again.\n',
  )
  return exitCode.fine
}

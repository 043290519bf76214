/**
 * Without a controller: which nodes do not answer, so that their endpoints are left out. The controller does it otherwise, by leases
 * and readiness.
 */
import type { NetworkMessage, NetworkPeer } from '../../../api/network/pod-network.ts'
import type { ServiceState } from '../../../api/network/service-endpoints.ts'
import { formatIPv4, parseCidr } from '../../../api/text/cidr.ts'
import { firstOfIPv6Range, podRangeOfIPv6 } from '../peers/peer-ipv6.ts'

/**
 * `unreachable`: the link has no machine with that address. `silent`: no answer, or a refusal on the way; the machine may be behind a
 * firewall.
 */
export type NodeAnswer = 'answers' | 'unreachable' | 'silent'

/** `missed`: probes one after the other. */
export type ProbeRecord = { readonly hasAnswered: boolean; readonly missed: number }
/** By the names of nodes. */
export type ProbeRecords = ReadonlyMap<string, ProbeRecord>

export type ProbedNode = {
  readonly name: string
  readonly address: string
  /** IPv6 address; undefined: no Service has an IPv6 endpoint there, or this node has no way to it. */
  readonly ipv6?: string
}

/** `isAlone`: this node judges for itself. It changes when the connection has been as it is for the grace period. */
export type Attachment = { readonly isConnected: boolean; readonly sinceMs: number; readonly isAlone: boolean }

/** As long as the controller waits for a lease (kube-controller-manager, `--node-monitor-grace-period`). */
const graceMs = 50_000
const mostMissed = 3

export function attachment(last: Attachment, isConnected: boolean, nowMs: number): Attachment {
  const sinceMs = isConnected === last.isConnected ? last.sinceMs : nowMs
  const isAlone = nowMs - sinceMs >= graceMs ? !isConnected : last.isAlone
  return { isConnected, sinceMs, isAlone }
}

/**
 * A missed probe of a node that never answered one counts only where the link has no such machine: a firewall may drop probes.
 * `answers`: of this round; a node without one keeps its record.
 */
export function recordAnswers(records: ProbeRecords, answers: ReadonlyMap<string, NodeAnswer>): ProbeRecords {
  const next = new Map(records)
  for (const [name, answer] of answers) {
    const { hasAnswered = false, missed = 0 } = records.get(name) ?? {}
    if (answer === 'answers') next.set(name, { hasAnswered: true, missed: 0 })
    else if (hasAnswered || answer === 'unreachable') next.set(name, { hasAnswered, missed: missed + 1 })
  }
  return next
}

/** Sorted names. One answer is enough for a node to be used again. */
export function silentNodes(records: ProbeRecords): readonly string[] {
  return [...records].flatMap(([name, { missed }]) => (missed >= mostMissed ? [name] : [])).sort()
}

/**
 * Those whose IPv6 endpoints are left out, sorted: a node that has answered by IPv6 is judged by that, and any other one by IPv4, as it
 * may be behind a firewall.
 */
export function silentByIPv6(ipv4: ProbeRecords, ipv6: ProbeRecords): readonly string[] {
  return silentNodes(new Map([...ipv4, ...ipv6]))
}

/**
 * The other nodes that have endpoints, sorted by name. Behind WireGuard a node answers at its end of the tunnel: its own address may be
 * any machine's here. By IPv6 it does so behind VXLAN, too: a node needs no IPv6 address there.
 */
export function nodesToProbe(
  message: NetworkMessage,
  services: ReadonlyMap<string, ServiceState>,
  nodeName: string,
): readonly ProbedNode[] {
  const { nodes, wireguard } = message
  const own = nodes.find(({ name }) => name === nodeName)
  const hasIPv6 = podRangeOfIPv6(message, nodeName) !== undefined
  const [used, usedByIPv6] = [new Set<string | undefined>(), new Set<string | undefined>()]
  for (const { endpoints, ipv6 } of services.values()) {
    for (const { addresses } of endpoints) for (const { node } of addresses) used.add(node)
    for (const { addresses } of ipv6?.endpoints ?? []) for (const { node } of addresses) usedByIPv6.add(node)
  }
  return nodes
    .filter(({ name }) => name !== nodeName && (used.has(name) || usedByIPv6.has(name)))
    .map((node) => {
      const { name, address, segment, podCIDR } = node
      const isFar = segment !== own?.segment
      const range = wireguard !== undefined && isFar ? parseCidr(podCIDR) : undefined
      const ipv6 = hasIPv6 && usedByIPv6.has(name) ? ipv6AddressOf(node, isFar) : undefined
      return { name, address: range === undefined ? address : formatIPv4(range.first), ...(ipv6 && { ipv6 }) }
    })
    .sort((one, other) => (one.name < other.name ? -1 : 1))
}

function ipv6AddressOf({ ipv6 }: NetworkPeer, isFar: boolean): string | undefined {
  return isFar ? ipv6 && firstOfIPv6Range(ipv6.podCIDR) : ipv6?.address
}

/** At most `most` nodes, from the one after `last` on, and from the first one again behind the end. */
export function nodesInTurn(
  nodes: readonly ProbedNode[],
  last: string | undefined,
  most: number,
): readonly ProbedNode[] {
  const after = last === undefined ? 0 : nodes.findIndex(({ name }) => name > last)
  const from = Math.max(0, after)
  return [...nodes.slice(from), ...nodes.slice(0, from)].slice(0, most)
}

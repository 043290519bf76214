/** Which addresses of other nodes are proven, and which are to be probed when: decided from what was seen and answered. */
import type { NetworkMessage, NetworkPeer } from '../../../api/network/pod-network.ts'
import { type BackoffSettings, longestBackoffMs } from '../../../daemon/backoff.ts'

/**
 * `proven`: the node has answered there. `assumed`: its agent was of an earlier version when an address of it was taken into use, and it has proven
 * none since. Both are used. `unproven`: not used.
 */
export type AddressState = 'proven' | 'assumed' | 'unproven'

/** Why an address is not proven. */
export type Unproven =
  | { readonly why: 'no answer' }
  /** What answers has no certificate of the fleet's authority. */
  | { readonly why: 'no certificate' }
  | { readonly why: 'other node'; readonly node: string }

export type ProbeOutcome = { readonly why: 'proven' } | Unproven

export type PeerAddress = {
  readonly address: string
  readonly state: AddressState
  /** MAC address of the interface that proved the address, where the link shows it. */
  readonly mac?: string
  /** Another interface has had the address since: without a new proof it is given up. */
  readonly isDoubted?: true
  readonly failures: number
  /** `monotonicMs` of the next probe; Infinity: none. */
  readonly dueMs: number
  readonly because?: Unproven
}

/** By the name of the node. */
export type PeerAddresses = ReadonlyMap<string, PeerAddress>

export interface ProofCheckpoint {
  /** Empty where there is none. Never rejects. */
  load(): Promise<PeerAddresses>
  save(records: PeerAddresses): Promise<void>
}

export type Spread = { readonly nowMs: number; readonly random: () => number }

/** An address is new for all nodes in one moment: a node of 1,000 gets 200 challenges a second. */
const newSpread = { perNodeMs: 5, mostMs: 5_000 }
/** After a start, or a change of the machine's own links: 17 a second. */
const againSpread = { perNodeMs: 60, mostMs: 60_000 }
/** A node that comes back probes the others itself, and is probed at once for it. */
const retry: BackoffSettings = { firstMs: 1_000, maxMs: 5 * 60_000 }
/** Failed probes until an address is no longer used. Packets can get lost. */
const mostFailures = { used: 3, doubted: 2 }

/**
 * The other nodes whose addresses this one sends packets to. WireGuard proves those of other segments by itself; a node with this one's
 * own address is not reached anyway.
 */
export function peersToProve({ nodes, wireguard }: NetworkMessage, nodeName: string): readonly NetworkPeer[] {
  const own = nodes.find(({ name }) => name === nodeName)
  if (own === undefined) return []
  return nodes.filter(
    ({ name, address, segment }) =>
      name !== nodeName && address !== own.address && (wireguard === undefined || segment === own.segment),
  )
}

/** What stands after a message: an address that was used stays, another one is to be proven; nodes that are gone are left out. */
export function recordsFor(
  before: PeerAddresses,
  peers: readonly NetworkPeer[],
  { nowMs, random }: Spread,
): PeerAddresses {
  const dueMs = () => nowMs + random() * spreadMs(newSpread, peers.length)
  return new Map(
    peers.map(({ name, address, probePort }) => {
      const known = before.get(name)
      if (probePort === undefined) return [name, { address, state: 'assumed', failures: 0, dueMs: never }]
      // A node without any proven address, as behind a firewall that drops probes: its next address is used like the
      // last one.
      const state = known?.state === 'assumed' ? 'assumed' : 'unproven'
      if (known?.address !== address) return [name, { address, state, failures: 0, dueMs: dueMs() }]
      const isNew = known.state === 'assumed' && known.failures === 0 && known.dueMs === never
      return [name, isNew ? { ...known, dueMs: dueMs() } : known]
    }),
  )
}

/** All of `names` are probed again, spread: the links of this machine may lead elsewhere now. */
export function probedAgain(
  records: PeerAddresses,
  names: ReadonlySet<string>,
  { nowMs, random }: Spread,
): PeerAddresses {
  const wide = spreadMs(againSpread, names.size)
  return mapValues(records, (record, name) =>
    names.has(name) ? { ...record, failures: 0, dueMs: Math.min(record.dueMs, nowMs + random() * wide) } : record,
  )
}

/** The probes of `names` are under way: what makes them due again meanwhile counts after their outcome. */
export function afterSending(records: PeerAddresses, names: ReadonlySet<string>): PeerAddresses {
  return mapValues(records, (record, name) => (names.has(name) ? { ...record, dueMs: never } : record))
}

/** `mac`: of the interface that answered, where the link shows it. */
export function afterOutcome(
  record: PeerAddress,
  outcome: ProbeOutcome,
  { nowMs, random, mac }: Spread & { readonly mac: string | undefined },
): PeerAddress {
  const { address, state, isDoubted } = record
  if (outcome.why === 'proven') return { address, state: 'proven', ...(mac && { mac }), failures: 0, dueMs: never }
  const failures = record.failures + 1
  const dueMs = Math.min(record.dueMs, nowMs + longestBackoffMs(record.failures, retry) * (0.5 + random() / 2))
  const isGivenUp = outcome.why === 'other node' || (isDoubted === true && failures >= mostFailures.doubted)
  // The machine may be switched off, or its agent be stopped: packets to it do no harm.
  if (state !== 'unproven' && !isGivenUp)
    return { ...record, failures, dueMs: failures < mostFailures.used || isDoubted ? dueMs : record.dueMs }
  return { address, state: 'unproven', failures, dueMs, because: outcome }
}

/** `neighbours`: MAC addresses of the links by address, of machines that answered ARP. */
export function afterNeighbours(
  records: PeerAddresses,
  neighbours: ReadonlyMap<string, string>,
  nowMs: number,
): PeerAddresses {
  return mapValues(records, (record) => {
    const seen = neighbours.get(record.address)
    if (record.state === 'unproven' || record.mac === undefined || seen === undefined) return record
    if (seen !== record.mac)
      return record.isDoubted ? record : { ...record, isDoubted: true, failures: 0, dueMs: nowMs }
    if (!record.isDoubted) return record
    const { isDoubted: _, ...rest } = record
    return { ...rest, failures: 0, dueMs: never }
  })
}

/** A challenge came from this address, so that its node answers now: it is probed, at most once a second. */
export function afterChallenge(records: PeerAddresses, address: string, nowMs: number): PeerAddresses {
  return mapValues(records, (record) => {
    const soonMs = nowMs + (record.failures === 0 ? 0 : retry.firstMs)
    const isLate = record.address === address && record.state === 'unproven' && record.dueMs > soonMs
    return isLate ? { ...record, dueMs: soonMs } : record
  })
}

export type DueProbes = {
  /** To be probed now; the one that waits longest first. */
  readonly now: readonly string[]
  /** When the next of the others is due; Infinity: none is. */
  readonly nextMs: number
}

/** `underWay`: the names of those that are being probed. */
export function dueProbes(records: PeerAddresses, underWay: ReadonlySet<string>, nowMs: number): DueProbes {
  const others = [...records].filter(([name]) => !underWay.has(name))
  const due = others.filter(([, { dueMs }]) => dueMs <= nowMs).sort(([, one], [, other]) => one.dueMs - other.dueMs)
  const nextMs = others.reduce((least, [, { dueMs }]) => (dueMs > nowMs ? Math.min(least, dueMs) : least), never)
  return { now: due.map(([name]) => name), nextMs }
}

const never = Number.POSITIVE_INFINITY

function spreadMs({ perNodeMs, mostMs }: typeof newSpread, nodes: number): number {
  return Math.min(mostMs, perNodeMs * nodes)
}

/** The same map where nothing changes. */
function mapValues(records: PeerAddresses, change: (record: PeerAddress, name: string) => PeerAddress): PeerAddresses {
  const changed = [...records].flatMap(([name, record]) => {
    const next = change(record, name)
    return next === record ? [] : [[name, next] as const]
  })
  return changed.length === 0 ? records : new Map([...records, ...changed])
}

/** The health of every node, which of them must be checked, and when. Costs per change, not per node. */
import { dueTimes } from '../../../daemon/due-times.ts'
import type { StoredObject } from '../../store/store.ts'
import { steady } from './flapping.ts'
import { type LinkSettings, linkOf, type Suspicion } from './link-suspicion.ts'
import {
  disconnectedAtMs,
  firstSight,
  type HealthSettings,
  lateAtMs,
  type NodeHealth,
  type Now,
  neverReportedReason,
  seenLease,
  seenNode,
  silenceOf,
  silentAtMs,
  steadyAtMs,
} from './node-health.ts'
import { nodeLinks } from './node-links.ts'
import { isOutOfService } from './node-taints.ts'
import { type ZoneCount, zoneCounts, zoneOf } from './zones.ts'

export type RosterSettings = HealthSettings & LinkSettings & { readonly nodeMonitorPeriodMs: number }

export type NodeEntry = {
  readonly node: StoredObject<'nodes'>
  readonly health: NodeHealth
  readonly zone: string
}

export interface NodeRoster {
  putNode(node: StoredObject<'nodes'>, now: Now): void
  deleteNode(name: string): void
  /** True when the time of the next check of the node changed. */
  putLease(lease: StoredObject<'leases'>, now: Now): boolean
  deleteLease(name: string): void
  get(name: string): NodeEntry | undefined
  entries(): Iterable<NodeEntry>
  /** Nodes that changed, or were silent for so long that something may have to be done. */
  take(nowMs: number): string[]
  nextMs(): number | undefined
  /** Plans the next check of a node, after this one. */
  checked(name: string, nowMs: number): void
  checkAt(name: string, dueMs: number): void
  /** Nodes by zone, but for those excluded by label. */
  counts(): ReadonlyMap<string, ZoneCount>
  /** The node flaps no longer: what it did before is forgotten. */
  steady(name: string): void
  /** Thinks again about links whose nodes changed, and plans a check of every node for which that makes a difference. */
  judgeLinks(nowMs: number): void
  /** Why this node keeps its pods, if it is for its link's sake. */
  suspicionOf(name: string, nowMs: number): Suspicion | undefined
  /** Treats every node as just seen. */
  giveFullGrace(nowMs: number): void
  /** Nodes that reported to an earlier process, and have sent nothing to this one. */
  awaited(): readonly NodeEntry[]
  /** Treats these as just seen. */
  giveGraceTo(awaited: readonly NodeEntry[], nowMs: number): void
}

export function nodeRoster(settings: RosterSettings): NodeRoster {
  const entries = new Map<string, NodeEntry>()
  const leases = new Map<string, StoredObject<'leases'>>()
  const zones = zoneCounts()
  const links = nodeLinks(settings)
  const due = dueTimes()
  /** Nodes to be checked for a change, not because time has passed. */
  const changed = new Set<string>()

  const put = (name: string, entry: NodeEntry) => {
    const before = entries.get(name)
    if (before?.node !== entry.node) {
      if (before !== undefined) zones.count(before.zone, before.node, -1)
      zones.count(entry.zone, entry.node, 1)
    }
    entries.set(name, entry)
    links.put(name, {
      link: linkOf(entry.node, leases.get(name)),
      lostMs: entry.health.unknownMs,
      isOutOfService: isOutOfService(entry.node),
    })
  }

  const wake = (name: string, dueMs: number) => {
    changed.add(name)
    due.advance(name, dueMs)
  }

  /** Most nodes are well: they need only another check at the time when they would be silent. */
  const isStillWell = (name: string, nowMs: number) => {
    const entry = entries.get(name)
    if (entry === undefined) return true
    if (!isWell(entry.health, settings, nowMs)) return false
    due.advance(name, nextCheckMs(entry.health, settings, nowMs))
    return true
  }

  return {
    putNode(node, now) {
      const { name, uid } = node.metadata
      const before = entries.get(name)
      const known = before?.node.metadata.uid === uid ? before : undefined
      if (known !== undefined && isOlder(node, known.node)) return
      const health = known
        ? seenNode(known.health, node, now.monotonicMs, settings)
        : firstSight(node, leases.get(name), now, settings)
      put(name, { node, health, zone: zoneOf(node) })
      wake(name, now.monotonicMs)
    },
    deleteNode(name) {
      const before = entries.get(name)
      if (before !== undefined) zones.count(before.zone, before.node, -1)
      entries.delete(name)
      links.delete(name)
      due.delete(name)
      changed.delete(name)
    },
    putLease(lease, now) {
      const { name } = lease.metadata
      leases.set(name, lease)
      const entry = entries.get(name)
      if (entry === undefined) return false
      const health = seenLease(entry.health, lease, now, settings)
      put(name, { ...entry, health })
      const isLeave = health.absence !== entry.health.absence
      if (!isLeave && health.lostMs === entry.health.lostMs) return false
      wake(name, isLeave ? now.monotonicMs : nextCheckMs(health, settings, now.monotonicMs))
      return true
    },
    deleteLease: (name) => void leases.delete(name),
    get: (name) => entries.get(name),
    entries: () => entries.values(),
    take: (nowMs) => due.take(nowMs).filter((name) => changed.delete(name) || !isStillWell(name, nowMs)),
    nextMs: () => due.nextMs(),
    checked(name, nowMs) {
      const entry = entries.get(name)
      if (entry === undefined) return
      due.advance(name, nextCheckMs(entry.health, settings, nowMs))
      const suspicion = links.suspicionOf(name, nowMs)
      if (suspicion !== undefined) wake(name, suspicion.untilMs)
    },
    checkAt: wake,
    counts: () => zones.counts,
    steady: (name) => {
      const entry = entries.get(name)
      if (entry !== undefined) put(name, { ...entry, health: { ...entry.health, flapping: steady } })
    },
    judgeLinks(nowMs) {
      for (const name of links.judge(nowMs)) if (entries.has(name)) wake(name, nowMs)
    },
    suspicionOf: (name, nowMs) => links.suspicionOf(name, nowMs),
    ...graces(entries, wake),
  }
}

type Graces = Pick<NodeRoster, 'giveFullGrace' | 'awaited' | 'giveGraceTo'>

function graces(entries: Map<string, NodeEntry>, wake: (name: string, dueMs: number) => void): Graces {
  const put = (entry: NodeEntry, health: Partial<NodeHealth>) =>
    entries.set(entry.node.metadata.name, { ...entry, health: { ...entry.health, ...health } })
  return {
    giveFullGrace(nowMs) {
      for (const [name, entry] of entries) {
        put(entry, { lastSeenMs: nowMs, readyChangedMs: nowMs, heartbeatMs: undefined })
        wake(name, nowMs)
      }
    },
    awaited: () =>
      [...entries.values()].filter(({ health }) => health.renewTime === undefined && health.ready !== undefined),
    giveGraceTo(awaited, nowMs) {
      for (const entry of awaited) put(entry, { lastSeenMs: nowMs })
    },
  }
}

function isWell(health: NodeHealth, settings: RosterSettings, nowMs: number): boolean {
  const { ready, absence, flapping } = health
  if (ready?.status !== 'True' || absence !== undefined || flapping.isFlapping) return false
  return silenceOf(health, settings, nowMs) === undefined
}

/** Late heartbeats are looked at this often: nodes that stopped together are judged together, and soon. */
const latePeriodMs = 500

/**
 * Silence is noticed at whole monitor periods, so that nodes lost together are judged together; the NoExecute taint is
 * decided a period after Ready changed, and of an Unknown node a period after its silence exceeded the grace. One that never reported
 * was not Ready before: it is tainted in the period in which it becomes Unknown (monitorNodeHealth in node_lifecycle_controller.go).
 */
export function judgedFromMs(health: NodeHealth, settings: RosterSettings): number {
  if (health.ready?.reason === neverReportedReason) return health.readyChangedMs
  const { nodeMonitorPeriodMs } = settings
  const changed = tickAfter(health.readyChangedMs, nodeMonitorPeriodMs)
  // Unknown may have been set early, for a late heartbeat or a lost connection: evictions begin no earlier for that.
  // A node that sent nothing to this process was Unknown before.
  if (health.ready?.status !== 'Unknown' || health.renewTime === undefined) return changed
  return Math.max(changed, tickAfter(silentAtMs(health, settings), nodeMonitorPeriodMs) + nodeMonitorPeriodMs)
}

/** The first of these moments that is still to come. Without lists of them: it is asked for with nearly every heartbeat. */
function nextCheckMs(health: NodeHealth, settings: RosterSettings, nowMs: number): number {
  const { nodeMonitorPeriodMs } = settings
  let next = Number.POSITIVE_INFINITY
  const consider = (moment: number | undefined) => {
    if (moment !== undefined && moment > nowMs && moment < next) next = moment
  }
  const disconnected = disconnectedAtMs(health, settings)
  const late = lateAtMs(health, settings)
  const back = health.absence?.expectedBack?.ms
  consider(judgedFromMs(health, settings))
  consider(tickAfter(silentAtMs(health, settings), nodeMonitorPeriodMs))
  consider(disconnected && disconnected + 1)
  consider(late && tickAfter(late, latePeriodMs))
  consider(back && back + 1)
  consider(steadyAtMs(health, settings))
  return next
}

/** Own writes are applied before the watch delivers what preceded them. */
function isOlder(a: StoredObject<'nodes'>, b: StoredObject<'nodes'>): boolean {
  return Number(a.metadata.resourceVersion) < Number(b.metadata.resourceVersion)
}

/** The first whole period strictly after `ms`. */
function tickAfter(ms: number, periodMs: number): number {
  return (Math.floor(ms / periodMs) + 1) * periodMs
}

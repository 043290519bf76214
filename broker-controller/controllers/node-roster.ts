/** What do we know of every node, which of them must be looked at, and when? Costs per change, not per node. */
import { dueTimes } from '../../daemon/due-times.ts'
import type { StoredObject } from '../store/store.ts'
import {
  disconnectedAtMs,
  firstSight,
  type HealthSettings,
  type NodeHealth,
  type Now,
  seenLease,
  seenNode,
  silentAtMs,
} from './node-health.ts'
import { countsForZone, isReady, type ZoneCount, zoneOf } from './zones.ts'

export type RosterSettings = HealthSettings & { readonly nodeMonitorPeriodMs: number }

export type NodeEntry = {
  readonly node: StoredObject<'nodes'>
  readonly health: NodeHealth
  readonly zone: string
}

export interface NodeRoster {
  seeNode(node: StoredObject<'nodes'>, now: Now): void
  forgetNode(name: string): void
  /** Is it news that bears on when to look at the node again? */
  seeLease(lease: StoredObject<'leases'>, now: Now): boolean
  forgetLease(name: string): void
  get(name: string): NodeEntry | undefined
  entries(): Iterable<NodeEntry>
  /** Nodes that changed, or of which nothing was heard for so long that something may have to be done. */
  take(nowMs: number): string[]
  nextMs(): number | undefined
  /** Plans the next look at a node, after this one. */
  looked(name: string, nowMs: number): void
  lookAt(name: string, dueMs: number): void
  /** Nodes by zone, but for those excluded by label. */
  counts(): ReadonlyMap<string, ZoneCount>
  /** Everybody is taken to have been heard of just now. */
  giveFullGrace(nowMs: number): void
}

export function nodeRoster(settings: RosterSettings): NodeRoster {
  const entries = new Map<string, NodeEntry>()
  const leases = new Map<string, StoredObject<'leases'>>()
  const counts = new Map<string, ZoneCount>()
  const due = dueTimes()

  const count = ({ node, zone }: NodeEntry, one: 1 | -1) => {
    if (!countsForZone(node)) return
    const { ready, notReady } = counts.get(zone) ?? { ready: 0, notReady: 0 }
    const next = isReady(node) ? { ready: ready + one, notReady } : { ready, notReady: notReady + one }
    if (next.ready + next.notReady === 0) counts.delete(zone)
    else counts.set(zone, next)
  }

  const put = (name: string, entry: NodeEntry) => {
    const before = entries.get(name)
    if (before?.node !== entry.node) {
      if (before !== undefined) count(before, -1)
      count(entry, 1)
    }
    entries.set(name, entry)
  }

  return {
    seeNode(node, now) {
      const { name, uid } = node.metadata
      const before = entries.get(name)
      const known = before?.node.metadata.uid === uid ? before : undefined
      if (known !== undefined && isOlder(node, known.node)) return
      const health = known ? seenNode(known.health, node, now.monotonicMs) : firstSight(node, leases.get(name), now)
      put(name, { node, health, zone: zoneOf(node) })
      due.advance(name, now.monotonicMs)
    },
    forgetNode(name) {
      const before = entries.get(name)
      if (before !== undefined) count(before, -1)
      entries.delete(name)
      due.delete(name)
    },
    seeLease(lease, now) {
      const { name } = lease.metadata
      leases.set(name, lease)
      const entry = entries.get(name)
      if (entry === undefined) return false
      const health = seenLease(entry.health, lease, now.monotonicMs)
      entries.set(name, { ...entry, health })
      if (health.lostMs === entry.health.lostMs) return false
      due.advance(name, nextLookMs(health, settings, now.monotonicMs))
      return true
    },
    forgetLease: (name) => void leases.delete(name),
    get: (name) => entries.get(name),
    entries: () => entries.values(),
    take: (nowMs) => due.take(nowMs),
    nextMs: () => due.nextMs(),
    looked(name, nowMs) {
      const entry = entries.get(name)
      if (entry !== undefined) due.advance(name, nextLookMs(entry.health, settings, nowMs))
    },
    lookAt: (name, dueMs) => due.advance(name, dueMs),
    counts: () => counts,
    giveFullGrace(nowMs) {
      for (const [name, entry] of entries) {
        entries.set(name, { ...entry, health: { ...entry.health, heardMs: nowMs, readyChangedMs: nowMs } })
        due.advance(name, nowMs)
      }
    },
  }
}

/**
 * Silence is noticed at whole monitor periods, so that nodes lost together are judged together; the NoExecute taint is
 * decided a period after Ready changed.
 */
export function judgedFromMs(health: NodeHealth, { nodeMonitorPeriodMs }: RosterSettings): number {
  return tickAfter(health.readyChangedMs, nodeMonitorPeriodMs)
}

function nextLookMs(health: NodeHealth, settings: RosterSettings, nowMs: number): number {
  const { nodeMonitorPeriodMs } = settings
  const disconnected = disconnectedAtMs(health, settings)
  const moments = [
    judgedFromMs(health, settings),
    tickAfter(silentAtMs(health, settings), nodeMonitorPeriodMs),
    ...(disconnected === undefined ? [] : [disconnected + 1]),
  ]
  return Math.min(...moments.filter((moment) => moment > nowMs))
}

/** What we wrote ourselves is known before the watch tells what came before it. */
function isOlder(a: StoredObject<'nodes'>, b: StoredObject<'nodes'>): boolean {
  return Number(a.metadata.resourceVersion) < Number(b.metadata.resourceVersion)
}

/** The first whole period strictly after `ms`. */
function tickAfter(ms: number, periodMs: number): number {
  return (Math.floor(ms / periodMs) + 1) * periodMs
}

/** The state of each zone, and the rate at which its nodes may be tainted. */
import type { Node } from '../../../api/node.ts'
import { readyCondition } from './node-health.ts'

export type ZoneSettings = {
  /** Nodes per second. */
  readonly nodeEvictionRate: number
  /** Nodes per second, in a large zone of which many are ill. */
  readonly secondaryNodeEvictionRate: number
  readonly unhealthyZoneThreshold: number
  /** A zone is large when it has more nodes than this. */
  readonly largeClusterSizeThreshold: number
}

export type ZoneState = 'Normal' | 'PartialDisruption' | 'FullDisruption'
export type ZoneCount = { readonly ready: number; readonly notReady: number }

/** Region and zone in one name; the empty one for nodes that have neither. */
export function zoneOf(node: Node): string {
  const labels = node.metadata.labels ?? {}
  const place = (what: string) =>
    labels[`failure-domain.beta.kubernetes.io/${what}`] || labels[`topology.kubernetes.io/${what}`] || ''
  const [region, zone] = [place('region'), place('zone')]
  return region === '' && zone === '' ? '' : `${region}:\u0000:${zone}`
}

/** Whether the node counts for the state of its zone. */
export function countsForZone(node: Node): boolean {
  return node.metadata.labels?.['node.kubernetes.io/exclude-disruption'] === undefined
}

export function isReady(node: Node): boolean {
  return readyCondition(node)?.status === 'True'
}

/** Ready and failed nodes of each zone; a zone without nodes has no entry. */
export function zoneCounts(): {
  readonly counts: ReadonlyMap<string, ZoneCount>
  /** Adds the node to the counts of its zone, or takes it out again. */
  count(zone: string, node: Node, change: 1 | -1): void
} {
  const counts = new Map<string, ZoneCount>()
  return {
    counts,
    count(zone, node, change) {
      if (!countsForZone(node)) return
      const { ready, notReady } = counts.get(zone) ?? { ready: 0, notReady: 0 }
      const next = isReady(node) ? { ready: ready + change, notReady } : { ready, notReady: notReady + change }
      if (next.ready + next.notReady === 0) counts.delete(zone)
      else counts.set(zone, next)
    },
  }
}

export function zoneState({ ready, notReady }: ZoneCount, settings: ZoneSettings): ZoneState {
  if (ready === 0 && notReady > 0) return 'FullDisruption'
  const share = notReady / (ready + notReady)
  return notReady > 2 && share >= settings.unhealthyZoneThreshold ? 'PartialDisruption' : 'Normal'
}

/** Nodes per second. In a small zone of which many are ill nothing is evicted: the network is the likelier cause. */
export function evictionRate(state: ZoneState, { ready, notReady }: ZoneCount, settings: ZoneSettings): number {
  if (state !== 'PartialDisruption') return settings.nodeEvictionRate
  return ready + notReady > settings.largeClusterSizeThreshold ? settings.secondaryNodeEvictionRate : 0
}

/** Every zone down at once: more likely it is us who are cut off. */
export type Zones = { readonly states: ReadonlyMap<string, ZoneState>; readonly allDown: boolean }
export const noZones: Zones = { states: new Map(), allDown: false }

export type ZonePlan = {
  readonly zones: Zones
  /** Nodes per second, of every zone. */
  readonly rates: ReadonlyMap<string, number>
  /** `entering` all down: take our NoExecute taints back. `leaving` it: everybody gets a full grace. */
  readonly turn: 'entering' | 'leaving' | undefined
}

/** What the zones have become, and what follows from it. */
export function planZones(before: Zones, counts: ReadonlyMap<string, ZoneCount>, settings: ZoneSettings): ZonePlan {
  const states = new Map([...counts].map(([zone, count]) => [zone, zoneState(count, settings)]))
  const allDown = states.size > 0 && [...states.values()].every((state) => state === 'FullDisruption')
  const rates = [...counts].map(([zone, count]): [string, number] => [
    zone,
    allDown ? 0 : evictionRate(zoneState(count, settings), count, settings),
  ])
  const turn = allDown ? 'entering' : 'leaving'
  return { zones: { states, allDown }, rates: new Map(rates), turn: allDown === before.allDown ? undefined : turn }
}

/** An eviction that the API grants leaves as many healthy pods as the disruption budget demands. */
import type { Pod } from '../../api/pod.ts'
import { type Invariant, withEntry, withoutEntry } from './invariant.ts'

/** When each pod was stored as ready last; it is counted until it is asked to leave. */
type Healthy = ReadonlyMap<string, number>

export type GuardedPods = { readonly app: string; readonly minAvailable: number }

/** The controller counts the healthy pods after each change of one: as in Kubernetes an eviction may come before. */
const countedMs = 10_000

export function budgetsHold({ app, minAvailable }: GuardedPods): Invariant<Healthy> {
  return {
    name: 'evictions keep within the disruption budget',
    initial: new Map(),
    meets: (fact) => fact.kind === 'stored' && fact.resource === 'pods' && isGranted(podIn(fact.body)),
    next(healthy, fact) {
      if (fact.kind !== 'stored' || fact.resource !== 'pods') return { state: healthy }
      const pod = podIn(fact.body)
      if (pod !== undefined && pod.metadata.labels?.['app'] !== app) return { state: healthy }
      const wasHealthy = healthy.has(fact.name)
      const isLeaving = pod?.metadata.deletionTimestamp !== undefined
      if (pod !== undefined && !isLeaving)
        return {
          state: isReady(pod) ? withEntry(healthy, fact.name, Number.POSITIVE_INFINITY) : unready(healthy, fact),
        }
      const state = withoutEntry(healthy, fact.name)
      if (!wasHealthy || !isGranted(pod)) return { state }
      const counted = [...state.values(), ...countedItself(healthy.get(fact.name))]
      const left = counted.filter((untilMs) => untilMs > fact.atMs).length
      if (left >= minAvailable) return { state }
      return { state, violation: `${fact.name} is evicted, and ${left} of ${minAvailable} healthy pods are left` }
    },
  }
}

/** One that has just become unready may leave where enough are healthy, and the controller may still count it. */
function countedItself(untilMs: number | undefined): readonly number[] {
  return untilMs === undefined || untilMs === Number.POSITIVE_INFINITY ? [] : [untilMs]
}

/** Counted for a while. */
function unready(healthy: Healthy, { name, atMs }: { readonly name: string; readonly atMs: number }): Healthy {
  return healthy.get(name) === Number.POSITIVE_INFINITY ? withEntry(healthy, name, atMs + countedMs) : healthy
}

function podIn(body: string | undefined): Pod | undefined {
  return body === undefined ? undefined : (JSON.parse(body) as Pod)
}

function isReady({ status }: Pod): boolean {
  return status?.conditions?.some(({ type, status: value }) => type === 'Ready' && value === 'True') === true
}

function isGranted(pod: Pod | undefined): boolean {
  return pod?.status?.conditions?.some(({ reason }) => reason === 'EvictionByEvictionAPI') === true
}

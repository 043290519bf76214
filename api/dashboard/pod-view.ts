/** The order of pods, and which of them need attention. */
import type { PodCard } from './dashboard-messages.ts'
import { compareNames, type UrgencyLevel } from './node-view.ts'
import { isFound } from './view-words.ts'

/** How urgent a pod is. One that succeeded is `idle`. */
export function podLevel({ phase, isReady, status }: PodCard): UrgencyLevel {
  if (phase === 'Succeeded') return 'idle'
  if (phase === 'Failed' || /BackOff|Err|Invalid/.test(status)) return 'bad'
  return isReady && status === 'Running' ? 'good' : 'warn'
}

export type PodFilters = { readonly state?: string; readonly namespace?: string; readonly node?: string }

const order: readonly UrgencyLevel[] = ['bad', 'warn', 'good', 'idle']

/** Those that match, the most urgent first, then by name. */
export function shownPods(
  pods: Iterable<PodCard>,
  search: string,
  { state, namespace, node }: PodFilters,
): readonly PodCard[] {
  return [...pods]
    .filter((pod) => !namespace || pod.namespace === namespace)
    .filter((pod) => !node || pod.node === node)
    .filter((pod) => state !== 'waiting' || ['bad', 'warn'].includes(podLevel(pod)))
    .filter((pod) => isFound(search, [pod.name, pod.namespace, pod.node, pod.status, pod.owner, pod.why]))
    .map((pod) => ({ pod, rank: order.indexOf(podLevel(pod)) }))
    .sort(
      (a, b) =>
        a.rank - b.rank || compareNames(a.pod.namespace, b.pod.namespace) || compareNames(a.pod.name, b.pod.name),
    )
    .map(({ pod }) => pod)
}

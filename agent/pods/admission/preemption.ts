/**
 * Selects the pods that are preempted for a critical pod that does not fit: as few and as small as possible
 * (pkg/kubelet/preemption/preemption.go).
 */
import { isCriticalPod } from '../../../api/pod/critical-pod.ts'
import { type QosClass, qosClassOf } from '../../../api/pod/qos-class.ts'
import type { Pod } from '../../../api/pod.ts'

/** Missing amounts by resource: cpu in thousandths, other resources in units. */
export type Wanting = ReadonlyMap<string, number>

export type PreemptionChoice =
  | { readonly possible: true; readonly pods: readonly Pod[] }
  /** The amounts that would still be missing after the preemption of all candidates. */
  | { readonly possible: false; readonly wanting: Wanting }

/** `requestOf`: in the units of `wanting`. */
export function podsToPreempt(
  pod: Pod,
  others: readonly Pod[],
  wanting: Wanting,
  requestOf: (pod: Pod, resource: string) => number,
): PreemptionChoice {
  const without = (needed: Wanting, gone: readonly Pod[]): Wanting =>
    new Map(
      [...needed]
        .map(([resource, amount]): [string, number] => [
          resource,
          gone.reduce((left, one) => left - requestOf(one, resource), amount),
        ])
        .filter(([, amount]) => amount > 0),
    )

  /** The next candidate is the one that leaves the smallest amount missing; of equal ones the smaller pod. */
  const nearest = (candidates: readonly Pod[], needed: Wanting): readonly Pod[] => {
    if (needed.size === 0) return []
    const distance = (one: Pod) =>
      [...needed].reduce((sum, [resource, amount]) => {
        const part = Math.max(0, amount - requestOf(one, resource)) / amount
        return sum + part * part
      }, 0)
    const [best] = [...candidates].sort(
      (a, b) =>
        distance(a) - distance(b) ||
        requestOf(a, 'memory') - requestOf(b, 'memory') ||
        requestOf(a, 'cpu') - requestOf(b, 'cpu'),
    )
    if (best === undefined) return []
    const rest = candidates.filter((one) => one !== best)
    return [best, ...nearest(rest, without(needed, [best]))]
  }

  const candidates = others.filter((other) => mayPreempt(pod, other))
  const impossible = without(wanting, candidates)
  if (impossible.size > 0) return { possible: false, wanting: impossible }
  const of = (wanted: QosClass) => candidates.filter((one) => qosClassOf(one.spec) === wanted)
  const [bestEffort, burstable, guaranteed] = [of('BestEffort'), of('Burstable'), of('Guaranteed')]
  const fromGuaranteed = nearest(guaranteed, without(wanting, [...bestEffort, ...burstable]))
  const fromBurstable = nearest(burstable, without(wanting, [...bestEffort, ...fromGuaranteed]))
  const fromBestEffort = nearest(bestEffort, without(wanting, [...fromBurstable, ...fromGuaranteed]))
  return { possible: true, pods: [...fromBestEffort, ...fromBurstable, ...fromGuaranteed] }
}

function mayPreempt(pod: Pod, other: Pod): boolean {
  if (isCriticalPod(pod) && !isCriticalPod(other)) return true
  const [own, others] = [pod.spec.priority, other.spec.priority]
  return own !== undefined && others !== undefined && own > others
}

/** What a stricter namespace would refuse of the pods that are in it (EvaluatePodsInNamespace in admission.go). */
import type { Pod } from '../../../api/pod.ts'
import { reasonsText, securityViolations } from '../../../api/pod-security/evaluation.ts'
import { type LevelVersion, levelVersionText } from '../../../api/pod-security/levels.ts'
import type { Clock } from '../../../daemon/clock.ts'
import { pauses } from '../handlers/turns.ts'

/** As Kubernetes: more pods would hold up the request. */
const mostPods = 3000
const mostMs = 1000

/** By what is forbidden: how many pods violate it, and the first by name. */
export type ViolatingPods = ReadonlyMap<string, { readonly first: string; readonly count: number }>

/** Warnings for the author of the namespace. Other work is done in between; when `signal` aborts the rest is not looked at. */
export async function existingPodWarnings(
  namespace: string,
  enforce: LevelVersion,
  pods: readonly Pod[],
  clock: Pick<Clock, 'monotonicMs'>,
  signal: AbortSignal,
): Promise<readonly string[]> {
  const pause = pauses(clock)
  const endMs = clock.monotonicMs() + mostMs
  const found = new Map<string, { first: string; count: number }>()
  let checked = 0
  for (const pod of pods.slice(0, mostPods)) {
    await pause()
    const { name = '' } = pod.metadata
    const reasons = reasonsText(securityViolations(pod, enforce))
    const like = found.get(reasons)
    if (reasons !== '' && (like === undefined || name < like.first))
      found.set(reasons, { first: name, count: (like?.count ?? 0) + 1 })
    else if (like !== undefined) like.count++
    checked++
    if (signal.aborted || clock.monotonicMs() >= endMs) break
  }
  return violationWarnings(namespace, enforce, found, { checked, all: pods.length })
}

/** One pod of each controller first: its others are like it. */
export function oneOfEachFirst(pods: readonly Pod[]): readonly Pod[] {
  const controllers = new Set<string>()
  const isLikeOther = ({ metadata: { ownerReferences = [] } }: Pod) => {
    const owner = ownerReferences.find(({ controller }) => controller === true)?.uid
    if (owner === undefined) return false
    const isKnown = controllers.has(owner)
    controllers.add(owner)
    return isKnown
  }
  const alike = new Set(pods.filter(isLikeOther))
  return [...pods.filter((pod) => !alike.has(pod)), ...alike]
}

/** In the words of Kubernetes. */
export function violationWarnings(
  namespace: string,
  enforce: LevelVersion,
  found: ViolatingPods,
  { checked, all }: { readonly checked: number; readonly all: number },
): readonly string[] {
  const where = `namespace "${namespace}" violate the new PodSecurity enforce level "${levelVersionText(enforce)}"`
  return [
    ...(checked < all
      ? [`new PodSecurity enforce level only checked against the first ${checked} of ${all} existing pods`]
      : []),
    ...(found.size > 0 ? [`existing pods in ${where}`] : []),
    ...[...found].map(([reasons, { first, count }]) => `${first}${othersText(count - 1)}: ${reasons}`).sort(),
  ]
}

function othersText(others: number): string {
  if (others === 0) return ''
  return others === 1 ? ' (and 1 other pod)' : ` (and ${others} other pods)`
}

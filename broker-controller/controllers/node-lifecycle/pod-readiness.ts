/** What becomes of a pod's readiness when its node fails? */
import type { Pod } from '../../../api/pod.ts'
import { podCondition, withPodCondition } from '../../../api/pod-conditions.ts'

/** The pod with Ready False; undefined when it was so, or never said anything. The phase is the node's to say. */
export function notReadyPod<P extends Pod>(pod: P, now: string): P | undefined {
  const ready = podCondition(pod, 'Ready')
  if (ready === undefined || ready.status === 'False') return undefined
  return withPodCondition(pod, { ...ready, status: 'False' }, now)
}

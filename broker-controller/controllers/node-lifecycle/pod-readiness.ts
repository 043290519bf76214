/** What becomes of a pod's readiness when its node fails? */

import { podCondition, withPodCondition } from '../../../api/pod/pod-conditions.ts'
import type { Pod } from '../../../api/pod.ts'

/** The pod with Ready False; undefined when it was False or never reported. The phase is reported by the node only. */
export function notReadyPod<P extends Pod>(pod: P, now: string): P | undefined {
  const ready = podCondition(pod, 'Ready')
  if (ready === undefined || ready.status === 'False') return undefined
  return withPodCondition(pod, { ...ready, status: 'False' }, now)
}

/** Critical pods: they are admitted before others and evicted after them. */
import type { Pod } from '../pod.ts'
import { isMirrorPod, isStaticPod } from './static-pod.ts'

/** From here on a pod is the system's own: `system-cluster-critical` is the least of them. */
export const systemCriticalPriority = 2_000_000_000

/** Static ones and their mirrors, and those of the system's priorities. */
export function isCriticalPod(pod: Pick<Pod, 'metadata' | 'spec'>): boolean {
  return isStaticPod(pod) || isMirrorPod(pod) || (pod.spec.priority ?? 0) >= systemCriticalPriority
}

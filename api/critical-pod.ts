/** Pods the machine itself needs: they are let in before others, and stay when others must go. */
import { mirrorAnnotation, type Pod } from './pod.ts'

/** From here on a pod is the system's own: `system-cluster-critical` is the least of them. */
export const systemCriticalPriority = 2_000_000_000

/** Static ones and their mirrors, and those of the system's priorities. */
export function isCriticalPod({ metadata, spec }: Pick<Pod, 'metadata' | 'spec'>): boolean {
  const { annotations = {} } = metadata
  const source = annotations['kubernetes.io/config.source']
  const isStatic = source !== undefined && source !== 'api'
  return isStatic || mirrorAnnotation in annotations || (spec.priority ?? 0) >= systemCriticalPriority
}

/** The OOM score of containers: which process the kernel kills first when memory runs out (pkg/kubelet/qos/policy.go). */

import { type QosClass, qosClassOf } from '../../../api/pod/qos-class.ts'
import type { Container, Pod, PodSpec } from '../../../api/pod.ts'
import { quantityToNumber } from '../../../api/quantity.ts'
import { isSidecar } from '../record/pod-containers.ts'

/** Asked for each container, and the same for all: a pod may have a thousand. */
const classes = new WeakMap<PodSpec, QosClass>()

function classOf({ spec }: Pod): QosClass {
  const known = classes.get(spec) ?? qosClassOf(spec)
  classes.set(spec, known)
  return known
}

/** oom_score_adj: -997 (last) to 1000 (first). `memoryCapacityBytes` is the node's. */
export function oomScoreAdj(pod: Pod, container: Container, memoryCapacityBytes: number): number {
  if (pod.spec.priorityClassName === 'system-node-critical') return -997
  switch (classOf(pod)) {
    case 'Guaranteed':
      return -997
    case 'BestEffort':
      return 1000
    case 'Burstable': {
      const requestOf = ({ resources }: Container) => quantityToNumber(resources?.requests?.['memory'] ?? '0')
      const scoreOf = (request: number) => {
        const score = 1000 - Math.floor((1000 * request) / Math.max(1, memoryCapacityBytes))
        return Math.min(999, Math.max(3, score))
      }
      const own = scoreOf(requestOf(container))
      // A sidecar is not killed before the containers that it serves.
      return isSidecar(container) ? Math.min(own, scoreOf(Math.min(...pod.spec.containers.map(requestOf)))) : own
    }
  }
}

/** How a pod's requests and limits rank it when memory runs out. */
import type { Container, Pod } from '../../api/pod.ts'
import { addQuantities, compareQuantities, type Quantity, quantityToNumber, zeroQuantity } from '../../api/quantity.ts'
import { isSidecar } from './pod-containers.ts'

export type QOSClass = 'Guaranteed' | 'Burstable' | 'BestEffort'

const counted = ['cpu', 'memory'] as const
type Kind = 'requests' | 'limits'

/** Kubernetes' rule: nothing set; or every container limited and all requests equal to the limits; or in between. */
export function qosClass({ spec }: Pod): QOSClass {
  const containers = [...(spec.initContainers ?? []), ...spec.containers]
  const sums = (kind: Kind) => counted.map((resource) => sum(containers, kind, resource))
  const [requests, limits] = [sums('requests'), sums('limits')]
  if ([...requests, ...limits].every(({ nano }) => nano === 0n)) return 'BestEffort'
  const limited = containers.every((container) => counted.every((resource) => isSet(container, 'limits', resource)))
  const equal = requests.every((request, i) => compareQuantities(request, limits[i] ?? zeroQuantity) === 0)
  return limited && equal ? 'Guaranteed' : 'Burstable'
}

/** Whom the kernel kills first: -997 (last) to 1000 (first). `memoryCapacityBytes` is the node's. */
export function oomScoreAdj(pod: Pod, container: Container, memoryCapacityBytes: number): number {
  if (pod.spec.priorityClassName === 'system-node-critical') return -997
  switch (qosClass(pod)) {
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
      // A sidecar shall not go before what it serves.
      return isSidecar(container) ? Math.min(own, scoreOf(Math.min(...pod.spec.containers.map(requestOf)))) : own
    }
  }
}

function isSet(container: Container, kind: Kind, resource: string): boolean {
  return sum([container], kind, resource).nano > 0n
}

function sum(containers: readonly Container[], kind: Kind, resource: string): Quantity {
  return containers
    .map(({ resources }) => resources?.[kind]?.[resource])
    .reduce<Quantity>(
      (total, quantity) => (quantity === undefined ? total : addQuantities(total, quantity)),
      zeroQuantity,
    )
}

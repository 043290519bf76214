/** The QoS class of a pod, which decides the order of evictions when a machine runs short of memory. */
import type { PodSpec } from '../pod.ts'
import { addQuantities, compareQuantities, type Quantity, zeroQuantity } from '../quantity.ts'

export type QosClass = 'Guaranteed' | 'Burstable' | 'BestEffort'

const counted = ['cpu', 'memory'] as const

/** Containers and init containers together; only cpu and memory, only what is more than nothing. */
export function qosClassOf({
  containers,
  initContainers = [],
}: Pick<PodSpec, 'containers' | 'initContainers'>): QosClass {
  const all = [...initContainers, ...containers].map(({ resources = {} }) => resources)
  const sum = (of: 'requests' | 'limits', resource: 'cpu' | 'memory') =>
    all.reduce<Quantity>(
      (total, resources) => addQuantities(total, resources[of]?.[resource] ?? zeroQuantity),
      zeroQuantity,
    )
  const isSome = (quantity: Quantity) => compareQuantities(quantity, zeroQuantity) > 0

  if (!counted.some((resource) => isSome(sum('requests', resource)) || isSome(sum('limits', resource))))
    return 'BestEffort'
  const limited = all.every(({ limits = {} }) =>
    counted.every((resource) => compareQuantities(limits[resource] ?? zeroQuantity, zeroQuantity) > 0),
  )
  const asMuch = counted.every(
    (resource) => compareQuantities(sum('requests', resource), sum('limits', resource)) === 0,
  )
  return limited && asMuch ? 'Guaranteed' : 'Burstable'
}

/** scheduling.k8s.io/v1 PriorityClass: how much a pod matters, by name. */
import { ObjectMetaSchema } from './meta.ts'
import { bool, type Described, field, integer, object, oneOf, optional, pointer, text } from './schema.ts'

export const PriorityClassSchema = object({
  apiVersion: oneOf('scheduling.k8s.io/v1'),
  kind: oneOf('PriorityClass'),
  metadata: field(1, ObjectMetaSchema),
  /** Stored with each: 0 where its author gave none. */
  value: pointer(2, optional(integer)),
  globalDefault: field(3, optional(bool)),
  description: field(4, optional(text)),
  preemptionPolicy: pointer(5, optional(text)),
})
export type PriorityClass = Described<typeof PriorityClassSchema>

/** Values above are for the system's own classes. */
export const highestUserPriority = 1_000_000_000

export const preemptionPolicies = ['Never', 'PreemptLowerPriority'] as const

/** The classes every fleet has. */
export const systemPriorityClasses: readonly PriorityClass[] = [
  systemClass('system-cluster-critical', 2_000_000_000, 'Pods the cluster needs, on whichever node they run.'),
  systemClass('system-node-critical', 2_000_001_000, 'Pods their node needs, and that must not be moved from it.'),
]

function systemClass(name: string, value: number, description: string): PriorityClass {
  return {
    apiVersion: 'scheduling.k8s.io/v1',
    kind: 'PriorityClass',
    metadata: { name },
    value,
    description,
    preemptionPolicy: 'PreemptLowerPriority',
  }
}

/** policy/v1 PodDisruptionBudget, and the Eviction it is asked about. */
import { DeleteOptionsSchema } from './deletion/delete-options.ts'
import { LabelSelectorSchema, ObjectMetaSchema } from './meta.ts'
import {
  type Described,
  field,
  integer,
  intOrString,
  listBy,
  mapOf,
  object,
  oneOf,
  optional,
  pointer,
  text,
  time,
} from './schema.ts'

export const EvictionSchema = object({
  apiVersion: oneOf('policy/v1'),
  kind: oneOf('Eviction'),
  metadata: field(1, ObjectMetaSchema),
  deleteOptions: field(2, optional(DeleteOptionsSchema)),
})
export type Eviction = Described<typeof EvictionSchema>

const PodDisruptionBudgetStatusSchema = object({
  observedGeneration: field(1, optional(integer)),
  /** Pods whose eviction was granted and is not seen yet, by name. */
  disruptedPods: field(2, optional(mapOf(time))),
  disruptionsAllowed: field(3, integer),
  currentHealthy: field(4, integer),
  desiredHealthy: field(5, integer),
  expectedPods: field(6, integer),
  conditions: field(
    7,
    optional(
      listBy(
        'type',
        object({
          type: field(1, text),
          status: field(2, oneOf('True', 'False', 'Unknown')),
          observedGeneration: field(3, optional(integer)),
          lastTransitionTime: field(4, optional(time)),
          reason: field(5, optional(text)),
          message: field(6, optional(text)),
        }),
      ),
    ),
  ),
})
export type PodDisruptionBudgetStatus = Described<typeof PodDisruptionBudgetStatusSchema>

export const PodDisruptionBudgetSchema = object({
  apiVersion: oneOf('policy/v1'),
  kind: oneOf('PodDisruptionBudget'),
  metadata: field(1, ObjectMetaSchema),
  spec: field(
    2,
    optional(
      object({
        minAvailable: pointer(1, optional(intOrString)),
        maxUnavailable: pointer(3, optional(intOrString)),
        /** Absent: no pod; empty: every pod of the namespace. */
        selector: field(2, optional(LabelSelectorSchema)),
        unhealthyPodEvictionPolicy: pointer(4, optional(oneOf('IfHealthyBudget', 'AlwaysAllow'))),
      }),
    ),
  ),
  status: field(3, optional(PodDisruptionBudgetStatusSchema)),
})
export type PodDisruptionBudget = Described<typeof PodDisruptionBudgetSchema>

/** flowcontrol.apiserver.k8s.io/v1 PriorityLevelConfiguration: how many requests of a level are served at once. */
import { ObjectMetaSchema } from '../meta.ts'
import { type Described, field, integer, listBy, object, oneOf, optional, pointer, text, time } from '../schema.ts'

export const flowControlGroup = 'flowcontrol.apiserver.k8s.io'

export const FlowControlStatusSchema = object({
  conditions: field(
    1,
    optional(
      listBy(
        'type',
        object({
          type: field(1, text),
          status: field(2, optional(text)),
          lastTransitionTime: field(3, optional(time)),
          reason: field(4, optional(text)),
          message: field(5, optional(text)),
        }),
      ),
    ),
  ),
})
export type FlowControlStatus = Described<typeof FlowControlStatusSchema>

const LimitedLevelSchema = object({
  nominalConcurrencyShares: pointer(1, optional(integer)),
  limitResponse: field(
    2,
    optional(
      object({
        type: field(1, text),
        queuing: field(
          2,
          optional(
            object({
              queues: field(1, optional(integer)),
              handSize: field(2, optional(integer)),
              queueLengthLimit: field(3, optional(integer)),
            }),
          ),
        ),
      }),
    ),
  ),
  lendablePercent: pointer(3, optional(integer)),
  borrowingLimitPercent: pointer(4, optional(integer)),
})
export type LimitedPriorityLevel = Described<typeof LimitedLevelSchema>

export const PriorityLevelConfigurationSchema = object({
  apiVersion: oneOf('flowcontrol.apiserver.k8s.io/v1'),
  kind: oneOf('PriorityLevelConfiguration'),
  metadata: field(1, ObjectMetaSchema),
  spec: field(
    2,
    optional(
      object({
        type: field(1, text),
        limited: field(2, optional(LimitedLevelSchema)),
        exempt: field(
          3,
          optional(
            object({
              nominalConcurrencyShares: pointer(1, optional(integer)),
              lendablePercent: pointer(2, optional(integer)),
            }),
          ),
        ),
      }),
    ),
  ),
  status: field(3, optional(FlowControlStatusSchema)),
})
export type PriorityLevelConfiguration = Described<typeof PriorityLevelConfigurationSchema>

/** core/v1 LimitRange: what one container or pod of a namespace may use, and what it gets if its author states nothing. */
import { ObjectMetaSchema } from '../meta.ts'
import { type Described, field, list, mapOf, object, oneOf, optional, quantity, text } from '../schema.ts'

const amounts = optional(mapOf(quantity))

export const LimitRangeSchema = object({
  apiVersion: oneOf('v1'),
  kind: oneOf('LimitRange'),
  metadata: field(1, ObjectMetaSchema),
  spec: field(
    2,
    optional(
      object('core.v1.LimitRangeSpec', {
        limits: field(
          1,
          optional(
            list(
              object('core.v1.LimitRangeItem', {
                type: field(1, optional(text)),
                max: field(2, amounts),
                min: field(3, amounts),
                default: field(4, amounts),
                defaultRequest: field(5, amounts),
                maxLimitRequestRatio: field(6, amounts),
              }),
            ),
          ),
        ),
      }),
    ),
  ),
})
export type LimitRange = Described<typeof LimitRangeSchema>
export type LimitRangeItem = NonNullable<NonNullable<LimitRange['spec']>['limits']>[number]

/** core/v1 Namespace. */
import { ObjectMetaSchema } from './meta.ts'
import { type Described, field, list, listBy, object, oneOf, optional, text, time } from './schema.ts'

export const NamespaceSchema = object({
  apiVersion: oneOf('v1'),
  kind: oneOf('Namespace'),
  metadata: field(1, ObjectMetaSchema),
  spec: field(2, optional(object({ finalizers: field(1, optional(list(text))) }))),
  status: field(
    3,
    optional(
      object({
        phase: field(1, optional(text)),
        conditions: field(
          2,
          optional(
            listBy(
              'type',
              object({
                type: field(1, text),
                status: field(2, text),
                lastTransitionTime: field(4, optional(time)),
                reason: field(5, optional(text)),
                message: field(6, optional(text)),
              }),
            ),
          ),
        ),
      }),
    ),
  ),
})
export type Namespace = Described<typeof NamespaceSchema>

/** In `spec.finalizers`: the content of the namespace, which its deletion removes. */
export const contentFinalizer = 'kubernetes'

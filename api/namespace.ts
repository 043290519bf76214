/** core/v1 Namespace. */
import { ObjectMetaSchema } from './meta.ts'
import { type Described, field, list, object, oneOf, optional, text, time } from './schema.ts'

export const NamespaceSchema = object({
  apiVersion: oneOf('v1'),
  kind: oneOf('Namespace'),
  metadata: field(1, ObjectMetaSchema),
  spec: field(2, optional(object({ finalizers: field(1, optional(list(text))) }))),
  status: optional(
    object({
      phase: optional(text),
      conditions: optional(
        list(
          object({
            type: text,
            status: text,
            lastTransitionTime: optional(time),
            reason: optional(text),
            message: optional(text),
          }),
        ),
      ),
    }),
  ),
})
export type Namespace = Described<typeof NamespaceSchema>

/** In `spec.finalizers`: the content of the namespace, which its deletion removes. */
export const contentFinalizer = 'kubernetes'

/** networking.k8s.io/v1 IngressClass: which ingress controller serves the Ingresses that name it. */
import { ObjectMetaSchema } from '../meta.ts'
import { type Described, field, object, oneOf, optional, pointer, text } from '../schema.ts'

const IngressClassSpecSchema = object('networking.v1.IngressClassSpec', {
  controller: field(1, optional(text)),
  parameters: pointer(
    2,
    optional(
      object('networking.v1.IngressClassParametersReference', {
        apiGroup: pointer(1, optional(text)),
        kind: field(2, text),
        name: field(3, text),
        scope: pointer(4, optional(text)),
        namespace: pointer(5, optional(text)),
      }),
    ),
  ),
})
export type IngressClassSpec = Described<typeof IngressClassSpecSchema>

export const IngressClassSchema = object({
  apiVersion: oneOf('networking.k8s.io/v1'),
  kind: oneOf('IngressClass'),
  metadata: field(1, ObjectMetaSchema),
  spec: field(2, optional(IngressClassSpecSchema)),
})
export type IngressClass = Described<typeof IngressClassSchema>

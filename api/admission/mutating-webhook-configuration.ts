/** admissionregistration.k8s.io/v1 MutatingWebhookConfiguration: webhooks that change what is written. */
import { ObjectMetaSchema } from '../meta.ts'
import { type Described, field, listBy, object, oneOf, optional } from '../schema.ts'
import { MutatingWebhookSchema } from './webhook.ts'

export const MutatingWebhookConfigurationSchema = object({
  apiVersion: oneOf('admissionregistration.k8s.io/v1'),
  kind: oneOf('MutatingWebhookConfiguration'),
  metadata: field(1, ObjectMetaSchema),
  webhooks: field(2, optional(listBy('name', MutatingWebhookSchema))),
})
export type MutatingWebhookConfiguration = Described<typeof MutatingWebhookConfigurationSchema>

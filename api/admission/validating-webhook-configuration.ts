/** admissionregistration.k8s.io/v1 ValidatingWebhookConfiguration: webhooks that judge what is written. */
import { LabelSelectorSchema, ObjectMetaSchema } from '../meta.ts'
import { type Described, field, listBy, object, oneOf, optional } from '../schema.ts'
import { MatchConditionSchema, webhookFields } from './webhook.ts'

const ValidatingWebhookSchema = object('admissionregistration.v1.ValidatingWebhook', {
  ...webhookFields,
  objectSelector: field(10, optional(LabelSelectorSchema)),
  matchConditions: field(11, optional(listBy('name', MatchConditionSchema))),
})

export const ValidatingWebhookConfigurationSchema = object({
  apiVersion: oneOf('admissionregistration.k8s.io/v1'),
  kind: oneOf('ValidatingWebhookConfiguration'),
  metadata: field(1, ObjectMetaSchema),
  webhooks: field(2, optional(listBy('name', ValidatingWebhookSchema))),
})
export type ValidatingWebhookConfiguration = Described<typeof ValidatingWebhookConfigurationSchema>

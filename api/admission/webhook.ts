/** Admission webhooks, as both kinds of configurations of admissionregistration.k8s.io/v1 list them. */
import { LabelSelectorSchema } from '../meta.ts'
import {
  bytes,
  type Described,
  field,
  inside,
  integer,
  list,
  listBy,
  object,
  optional,
  pointer,
  text,
} from '../schema.ts'

export const admissionGroup = 'admissionregistration.k8s.io'

const ClientConfigSchema = object('admissionregistration.v1.WebhookClientConfig', {
  service: field(
    1,
    optional(
      object('admissionregistration.v1.ServiceReference', {
        namespace: field(1, text),
        name: field(2, text),
        path: pointer(3, optional(text)),
        port: pointer(4, optional(integer)),
      }),
    ),
  ),
  caBundle: field(2, optional(bytes)),
  url: pointer(3, optional(text)),
})
export type WebhookClientConfig = Described<typeof ClientConfigSchema>

export const ruleFields = {
  operations: field(1, optional(list(text))),
  ...inside(2, {
    apiGroups: field(1, optional(list(text))),
    apiVersions: field(2, optional(list(text))),
    resources: field(3, optional(list(text))),
    scope: pointer(4, optional(text)),
  }),
}

const RuleSchema = object('admissionregistration.v1.RuleWithOperations', ruleFields)
export type WebhookRule = Described<typeof RuleSchema>

export const MatchConditionSchema = object('admissionregistration.v1.MatchCondition', {
  name: field(1, text),
  expression: field(2, text),
})
export type MatchCondition = Described<typeof MatchConditionSchema>

/** The fields that webhooks of both kinds have, under the same numbers. */
export const webhookFields = {
  name: field(1, text),
  clientConfig: field(2, ClientConfigSchema),
  rules: field(3, optional(list(RuleSchema))),
  failurePolicy: pointer(4, optional(text)),
  namespaceSelector: field(5, optional(LabelSelectorSchema)),
  sideEffects: pointer(6, optional(text)),
  timeoutSeconds: pointer(7, optional(integer)),
  admissionReviewVersions: field(8, optional(list(text))),
  matchPolicy: pointer(9, optional(text)),
}

export const MutatingWebhookSchema = object('admissionregistration.v1.MutatingWebhook', {
  ...webhookFields,
  reinvocationPolicy: pointer(10, optional(text)),
  objectSelector: field(11, optional(LabelSelectorSchema)),
  matchConditions: field(12, optional(listBy('name', MatchConditionSchema))),
})
export type MutatingWebhook = Described<typeof MutatingWebhookSchema>

/** A webhook of either kind; only a mutating one may have a `reinvocationPolicy`. */
export type Webhook = MutatingWebhook

/** The webhook with what its author left out (pkg/apis/admissionregistration/v1/defaults.go). */
export function withWebhookDefaults<W extends Webhook>(webhook: W, isMutating: boolean): W {
  const { service } = webhook.clientConfig
  return {
    ...webhook,
    clientConfig: { ...webhook.clientConfig, ...(service && { service: { ...service, port: service.port ?? 443 } }) },
    failurePolicy: webhook.failurePolicy ?? 'Fail',
    matchPolicy: webhook.matchPolicy ?? 'Equivalent',
    namespaceSelector: webhook.namespaceSelector ?? {},
    objectSelector: webhook.objectSelector ?? {},
    timeoutSeconds: webhook.timeoutSeconds ?? 10,
    ...(isMutating && { reinvocationPolicy: webhook.reinvocationPolicy ?? 'Never' }),
    ...(webhook.rules && { rules: webhook.rules.map((rule) => ({ ...rule, scope: rule.scope ?? '*' })) }),
  }
}

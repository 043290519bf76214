/** Policies and webhooks as one gate. */
import type { WebhookGate } from '../handlers/webhook-gate.ts'
import { type WebhookAdmissionNeeds, webhookAdmission } from '../webhooks/webhook-admission.ts'
import { type PolicyAdmissionNeeds, type PolicyGate, policyAdmission } from './policy-admission.ts'

export type AdmissionGateNeeds = PolicyAdmissionNeeds & WebhookAdmissionNeeds

export function admissionGate(needs: AdmissionGateNeeds): WebhookGate {
  return policiesBeforeWebhooks(policyAdmission(needs), webhookAdmission(needs))
}

/** Mutating webhooks, then policies, then validating webhooks, as in kube-apiserver. */
export function policiesBeforeWebhooks(policies: PolicyGate, webhooks: WebhookGate): WebhookGate {
  return {
    nowMs: webhooks.nowMs,
    concerns: async (route, operation) =>
      (await policies.concerns(route, operation)) || (await webhooks.concerns(route, operation)),
    mutate: webhooks.mutate,
    async validate(write) {
      await policies.validate(write)
      await webhooks.validate(write)
    },
  }
}

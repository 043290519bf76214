/** admissionregistration.k8s.io/v1 MutatingWebhookConfiguration. */
import type { MutatingWebhookConfiguration } from '../../../../api/admission/mutating-webhook-configuration.ts'
import { resources } from '../../../../api/resources.ts'
import type { KindStrategy } from '../../handlers/strategy.ts'
import { webhookConfigurationRules } from './webhook-configuration-rules.ts'

export const mutatingWebhookConfigurationStrategy: KindStrategy<MutatingWebhookConfiguration> = {
  ...resources.mutatingwebhookconfigurations,
  ...webhookConfigurationRules({ mutating: true }),
}

/** admissionregistration.k8s.io/v1 ValidatingWebhookConfiguration. */
import type { ValidatingWebhookConfiguration } from '../../../../api/admission/validating-webhook-configuration.ts'
import { resources } from '../../../../api/resources.ts'
import type { KindStrategy } from '../../handlers/strategy.ts'
import { webhookConfigurationRules } from './webhook-configuration-rules.ts'

export const validatingWebhookConfigurationStrategy: KindStrategy<ValidatingWebhookConfiguration> = {
  ...resources.validatingwebhookconfigurations,
  ...webhookConfigurationRules({ mutating: false }),
}

/**
 * The rules of MutatingWebhookConfigurations and ValidatingWebhookConfigurations
 * (pkg/registry/admissionregistration/{mutatingwebhookconfiguration,validatingwebhookconfiguration}/strategy.go).
 */
import type { MutatingWebhookConfiguration } from '../../../../api/admission/mutating-webhook-configuration.ts'
import type { ValidatingWebhookConfiguration } from '../../../../api/admission/validating-webhook-configuration.ts'
import { withWebhookDefaults } from '../../../../api/admission/webhook.ts'
import type { Resource } from '../../../../api/resources.ts'
import { webhooksProblems } from '../../../../api/validation/webhook-validation.ts'
import { ageOf, tableColumns } from '../../handlers/cells.ts'
import type { KindStrategy } from '../../handlers/strategy.ts'

/** What the strategies of both kinds have in common. */
export function webhookConfigurationRules<C extends MutatingWebhookConfiguration | ValidatingWebhookConfiguration>({
  mutating,
}: {
  readonly mutating: boolean
}): Omit<KindStrategy<C>, keyof Resource> {
  return {
    table: {
      columns: [...tableColumns('Name'), { name: 'Webhooks', type: 'integer', priority: 0 }, ...tableColumns('Age')],
      cells: ({ metadata, webhooks = [] }, nowMs) => [
        metadata.name ?? '',
        webhooks.length,
        ageOf(metadata.creationTimestamp, nowMs),
      ],
    },
    selectableFields: [],
    subresources: {},
    withDefaults: (one) => ({
      ...one,
      ...(one.webhooks && { webhooks: one.webhooks.map((webhook) => withWebhookDefaults(webhook, mutating)) }),
    }),
    validateCreate: ({ webhooks }) => webhooksProblems(webhooks, mutating),
    validateUpdate: (_, { webhooks }) => webhooksProblems(webhooks, mutating),
  }
}

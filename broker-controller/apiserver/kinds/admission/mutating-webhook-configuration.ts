/** admissionregistration.k8s.io/v1 MutatingWebhookConfiguration (pkg/registry/admissionregistration/mutatingwebhookconfiguration/strategy.go). */
import type { MutatingWebhookConfiguration } from '../../../../api/admission/mutating-webhook-configuration.ts'
import { withWebhookDefaults } from '../../../../api/admission/webhook.ts'
import { resources } from '../../../../api/resources.ts'
import { webhooksProblems } from '../../../../api/validation/webhook-validation.ts'
import { ageOf, tableColumns } from '../../handlers/cells.ts'
import type { KindStrategy } from '../../handlers/strategy.ts'

export const mutatingWebhookConfigurationStrategy: KindStrategy<MutatingWebhookConfiguration> = {
  ...resources.mutatingwebhookconfigurations,
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
    ...(one.webhooks && { webhooks: one.webhooks.map((webhook) => withWebhookDefaults(webhook, true)) }),
  }),
  validateCreate: ({ webhooks }) => webhooksProblems(webhooks, true),
  validateUpdate: (_, { webhooks }) => webhooksProblems(webhooks, true),
}

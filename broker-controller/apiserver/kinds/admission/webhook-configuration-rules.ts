/**
 * The rules of MutatingWebhookConfigurations and ValidatingWebhookConfigurations
 * (pkg/registry/admissionregistration/{mutatingwebhookconfiguration,validatingwebhookconfiguration}/strategy.go).
 */
import type { MutatingWebhookConfiguration } from '../../../../api/admission/mutating-webhook-configuration.ts'
import type { ValidatingWebhookConfiguration } from '../../../../api/admission/validating-webhook-configuration.ts'
import { type Webhook, withWebhookDefaults } from '../../../../api/admission/webhook.ts'
import type { Problem } from '../../../../api/problem.ts'
import type { Resource } from '../../../../api/resources.ts'
import { sameConditions, webhooksProblems } from '../../../../api/validation/webhook-validation.ts'
import { admissionExpression } from '../../expressions/admission-expression.ts'
import { conditionVariables } from '../../expressions/admission-variables.ts'
import {
  compilationProblems,
  lengthProblems,
  type NamedExpression,
  type WrittenExpression,
} from '../../expressions/expression-problems.ts'
import { ageOf, tableColumns } from '../../handlers/cells.ts'
import type { KindStrategy } from '../../handlers/strategy.ts'

/** What the strategies of both kinds have in common. */
export function webhookConfigurationRules<C extends MutatingWebhookConfiguration | ValidatingWebhookConfiguration>({
  mutating,
}: {
  readonly mutating: boolean
}): Omit<KindStrategy<C>, keyof Resource> {
  return {
    needsVersion: true,
    takesAnyFinalizer: true,
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
    validateUpdate: (old, { webhooks }) => webhooksProblems(webhooks, mutating, old.webhooks),
    lengthyProblems: (now, old) => expressionProblems(now.webhooks, old?.webhooks),
  }
}

/** Conditions are compiled where one of them changes. */
function* expressionProblems(
  webhooks: readonly Webhook[] = [],
  old: readonly Webhook[] | undefined,
): Generator<undefined, readonly Problem[]> {
  if (old !== undefined && sameConditions(webhooks, old)) return []
  const written = webhooks.flatMap(({ matchConditions = [] }, index) =>
    matchConditions.map(({ expression }, place) => ({
      field: `webhooks[${index}].matchConditions[${place}].expression`,
      source: expression.trim(),
    })),
  )
  const lengths = lengthProblems('webhooks', written)
  return lengths.length > 0 ? lengths : yield* compilationProblems(compiledConditions(written))
}

function* compiledConditions(written: readonly WrittenExpression[]): Generator<NamedExpression> {
  for (const { field, source } of written) yield [field, admissionExpression(source, conditionVariables, 'bool')]
}

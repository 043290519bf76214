/** What is wrong with `spec.conversion` of a definition (validateCustomResourceConversion in validation.go). */
import { dns1035LabelProblem } from '../../../../api/names.ts'
import { forbidden, invalid, notSupported, type Problem, required } from '../../../../api/problem.ts'
import type {
  CustomResourceDefinition,
  DefinedConversion,
} from '../../../../api/structural/custom-resource-definition.ts'
import { hasCondition } from '../../../../api/structural/definition-conditions.ts'
import { problemsWith } from '../../../../api/validation/metadata-validation.ts'
import { clientProblems } from '../../../../api/validation/webhook-validation.ts'
import { caBundleProblem } from '../../../../certs/ca-bundle.ts'
import { knownReviewVersions } from '../../conversion/conversion-review.ts'

const at = 'spec.conversion'
const strategies = ['None', 'Webhook']
const onlyOfWebhooks = 'should not be set when strategy is not set to Webhook'

/** `old`: the definition before an update; undefined: it is new. */
export function conversionProblems(
  { spec: { conversion } }: CustomResourceDefinition,
  old: CustomResourceDefinition | undefined,
): readonly Problem[] {
  const { strategy = 'None', webhook } = conversion ?? {}
  if (!strategies.includes(strategy)) return [notSupported(`${at}.strategy`, strategy, strategies)]
  if (strategy !== 'Webhook') return webhook === undefined ? [] : [forbidden(`${at}.webhook`, onlyOfWebhooks)]
  const client = webhook?.clientConfig
  const versions = webhook?.conversionReviewVersions ?? []
  const bundle = caBundleProblem(client?.caBundle)
  return [
    ...(client === undefined
      ? [required(`${at}.webhook.clientConfig`, 'required when strategy is set to Webhook')]
      : clientProblems(`${at}.webhook.clientConfig`, client)),
    ...(bundle === undefined || mayHaveWrongBundle(old)
      ? []
      : [invalid(`${at}.webhook.clientConfig.caBundle`, client?.caBundle, bundle)]),
    ...reviewVersionProblems(`${at}.webhook.conversionReviewVersions`, versions, isReadable(old?.spec.conversion)),
  ]
}

/** A bundle may be put in later: the kind is established once it can be used. */
function mayHaveWrongBundle(old: CustomResourceDefinition | undefined): boolean {
  if (old === undefined || !hasCondition(old, 'Established')) return true
  return caBundleProblem(old.spec.conversion?.webhook?.clientConfig?.caBundle) !== undefined
}

/** A definition that has only unknown versions already may keep them. */
function isReadable(conversion: DefinedConversion | undefined): boolean {
  const versions = conversion?.webhook?.conversionReviewVersions ?? []
  return versions.length === 0 || versions.some((version) => knownReviewVersions.includes(version))
}

function reviewVersionProblems(field: string, versions: readonly string[], needsKnown: boolean): readonly Problem[] {
  if (versions.length === 0) return [required(field)]
  const unknown = !versions.some((version) => knownReviewVersions.includes(version))
  return [
    ...versions.flatMap((version, index) =>
      versions.indexOf(version) < index
        ? [invalid(`${field}[${index}]`, version, 'duplicate version')]
        : problemsWith(`${field}[${index}]`, version, dns1035LabelProblem),
    ),
    ...(needsKnown && unknown
      ? [invalid(field, versions, `must include at least one of ${knownReviewVersions.join(', ')}`)]
      : []),
  ]
}

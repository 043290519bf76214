/** Which webhooks a write concerns (staging/src/k8s.io/apiserver/pkg/admission/plugin/webhook/predicates). */
import { admissionGroup, type Webhook, type WebhookRule } from '../../../api/admission/webhook.ts'
import type { AnyObject, LabelSelector } from '../../../api/meta.ts'
import { type Labels, matchesLabels, requirementsOf } from '../../../api/selectors.ts'
import type { KindStrategy, ResourceRoute } from '../handlers/strategy.ts'
import type { Operation } from '../handlers/webhook-gate.ts'

const exempt: ReadonlySet<string> = new Set([
  ...['mutatingwebhookconfigurations', 'validatingwebhookconfigurations'],
  ...['validatingadmissionpolicies', 'validatingadmissionpolicybindings'],
])

/** Webhooks never see these: one that refuses everything could not be removed (IsExemptAdmissionConfigurationResource). */
export function isExemptFromWebhooks({ resource: { group, name } }: ResourceRoute): boolean {
  return group === admissionGroup && exempt.has(name)
}

/**
 * The form in which the webhook is sent this operation on this resource; undefined: no rule chooses it. With `matchPolicy: Equivalent`
 * the first rule decides that names another group or version of the same objects, one of `others`, if none names that of the request
 * (ShouldCallHook in webhook/generic/webhook.go).
 */
export function chosenForm(
  { rules = [], matchPolicy = 'Equivalent' }: Pick<Webhook, 'rules' | 'matchPolicy'>,
  route: ResourceRoute,
  operation: Operation,
  others: readonly KindStrategy[],
): KindStrategy | undefined {
  if (rules.some((rule) => matchesRule(rule, route, operation))) return route.resource
  if (matchPolicy !== 'Equivalent') return undefined
  for (const rule of rules) {
    const other = others.find((resource) => matchesRule(rule, { ...route, resource }, operation))
    if (other !== undefined) return other
  }
  return undefined
}

/** Whether the rule names the operation on the resource of the route. */
export function matchesRule(
  rule: WebhookRule,
  { resource, subresource }: ResourceRoute,
  operation: Operation,
): boolean {
  const { operations = [], apiGroups = [], apiVersions = [], resources = [], scope = '*' } = rule
  // A namespace is an object of the cluster.
  const scopeOf = resource.namespaced ? 'Namespaced' : 'Cluster'
  return (
    includes(operations, operation) &&
    includes(apiGroups, resource.group) &&
    includes(apiVersions, resource.version) &&
    (scope === '*' || scope === scopeOf) &&
    resources.some((pattern) => matchesResource(pattern, resource.name, subresource))
  )
}

function includes(values: readonly string[], value: string): boolean {
  return values.includes('*') || values.includes(value)
}

// `pods`, `pods/status`, `pods/*`, `*` (every resource and no subresource), `*/status`, `*/*`.
function matchesResource(pattern: string, name: string, subresource: string): boolean {
  const [wanted = '', part] = pattern.split('/')
  if (wanted !== '*' && wanted !== name) return false
  if (part === undefined) return subresource === ''
  return part === '*' || part === subresource
}

/** `namespace`: the labels of the namespace of the object; undefined where it has none. */
export type MatchFacts = {
  readonly object: AnyObject | undefined
  readonly old: AnyObject | undefined
  readonly namespace: Labels | undefined
}

/** Whether the selectors choose the object, as it was or as it will be. */
export function isSelected(
  selectors: Pick<Webhook, 'namespaceSelector' | 'objectSelector'>,
  { object, old, namespace }: MatchFacts,
): boolean {
  const { namespaceSelector = {}, objectSelector = {} } = selectors
  if (namespace !== undefined && !selects(namespaceSelector, namespace)) return false
  if (isEmpty(objectSelector)) return true
  return [object, old].some((one) => one !== undefined && selects(objectSelector, one.metadata?.labels ?? {}))
}

function isEmpty({ matchLabels = {}, matchExpressions = [] }: LabelSelector): boolean {
  return Object.keys(matchLabels).length + matchExpressions.length === 0
}

/** A selector that cannot be read was refused when it was written. */
function selects(selector: LabelSelector, labels: Labels): boolean {
  const parsed = requirementsOf(selector)
  return parsed === undefined || (parsed.ok && matchesLabels(parsed.value, labels))
}

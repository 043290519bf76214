/** Which writes an admission policy or its binding is about (admissionregistration.k8s.io/v1 MatchResources). */
import { LabelSelectorSchema } from '../meta.ts'
import { atomic, type Described, field, inside, list, object, optional, pointer, text } from '../schema.ts'
import { ruleFields } from './webhook.ts'

const NamedRuleSchema = atomic(
  object('admissionregistration.v1.NamedRuleWithOperations', {
    resourceNames: field(1, optional(list(text))),
    ...inside(2, ruleFields),
  }),
)
/** A rule that may be for objects of some names only. */
export type NamedRule = Described<typeof NamedRuleSchema>

export const MatchResourcesSchema = atomic(
  object('admissionregistration.v1.MatchResources', {
    namespaceSelector: field(1, optional(LabelSelectorSchema)),
    objectSelector: field(2, optional(LabelSelectorSchema)),
    resourceRules: field(3, optional(list(NamedRuleSchema))),
    excludeResourceRules: field(4, optional(list(NamedRuleSchema))),
    matchPolicy: pointer(7, optional(text)),
  }),
)
export type MatchResources = Described<typeof MatchResourcesSchema>

/** With what its author left out (pkg/apis/admissionregistration/v1/defaults.go). */
export function withMatchDefaults(match: MatchResources): MatchResources {
  const withScope = (rule: NamedRule): NamedRule => ({ ...rule, scope: rule.scope ?? '*' })
  return {
    ...match,
    namespaceSelector: match.namespaceSelector ?? {},
    objectSelector: match.objectSelector ?? {},
    matchPolicy: match.matchPolicy ?? 'Equivalent',
    ...(match.resourceRules && { resourceRules: match.resourceRules.map(withScope) }),
    ...(match.excludeResourceRules && { excludeResourceRules: match.excludeResourceRules.map(withScope) }),
  }
}

/** Which writes a policy or a binding is about (apiserver/pkg/admission/plugin/policy/matching/matching.go). */
import type { MatchResources, NamedRule } from '../../../api/admission/match-resources.ts'
import { admissionGroup } from '../../../api/admission/webhook.ts'
import type { KindStrategy, ResourceRoute } from '../handlers/strategy.ts'
import type { Operation, ReviewedWrite } from '../handlers/webhook-gate.ts'
import { chosenForm, isSelected, type MatchFacts, matchesRule } from '../webhooks/webhook-match.ts'

/** Policies never judge policies and bindings: one that refuses everything could not be removed. */
export function isExemptFromPolicies({ resource: { group, name } }: ResourceRoute): boolean {
  return (
    group === admissionGroup && (name === 'validatingadmissionpolicies' || name === 'validatingadmissionpolicybindings')
  )
}

/** Whether a write by this route may match, whatever its object is. */
export function mayMatch(
  { resourceRules = [], matchPolicy = 'Equivalent' }: MatchResources,
  route: ResourceRoute,
  operation: Operation,
  others: readonly KindStrategy[],
): boolean {
  const rules = resourceRules.map(({ resourceNames: _, ...rule }) => rule)
  return rules.length === 0 || chosenForm({ rules, matchPolicy }, route, operation, others) !== undefined
}

/** The form in which the write is judged; undefined: it does not match. `others`: other forms of the same objects. */
export function matchedForm(
  match: MatchResources,
  write: ReviewedWrite,
  facts: MatchFacts,
  others: readonly KindStrategy[],
): KindStrategy | undefined {
  const { resourceRules = [], excludeResourceRules = [], matchPolicy = 'Equivalent' } = match
  if (!isSelected(match, facts)) return undefined
  const formBy = (rules: readonly NamedRule[]): KindStrategy | undefined => {
    const { route, operation, name } = write
    const matches = ({ resourceNames = [], ...rule }: NamedRule, resource: KindStrategy) =>
      matchesRule(rule, { ...route, resource }, operation) &&
      (resourceNames.length === 0 || resourceNames.includes(name))
    if (rules.some((rule) => matches(rule, route.resource))) return route.resource
    if (matchPolicy !== 'Equivalent') return undefined
    for (const rule of rules) {
      const other = others.find((resource) => matches(rule, resource))
      if (other !== undefined) return other
    }
    return undefined
  }
  if (formBy(excludeResourceRules) !== undefined) return undefined
  return resourceRules.length === 0 ? write.route.resource : formBy(resourceRules)
}

/**
 * A user grants only what it may do itself: the rights that a set of rules gives and the user's own rules do not
 * (staging/src/k8s.io/component-helpers/auth/rbac/validation/policy_comparator.go, pkg/registry/rbac/validation/rule.go).
 */
import type { PolicyRule } from '../../../../api/access/role.ts'
import type { Identity } from '../../../../api/identity.ts'
import { coversPath, includesOrAll } from './policy-rules.ts'

/** More combinations of group, resource, verb and name than any role has: comparing them must not hold other requests up. */
export const mostRights = 20_000
/** Comparisons of a right with a rule. A small board makes about 10 million in 100 ms. */
const mostComparisons = 10_000_000

/** One verb on one resource or one path. */
type Right =
  | { readonly verb: string; readonly group: string; readonly resource: string; readonly name: string | undefined }
  | { readonly verb: string; readonly path: string }

/** Why this user may not grant these rules; undefined when it may. */
export function escalationProblem(
  { user, groups }: Identity,
  own: readonly PolicyRule[],
  wanted: readonly PolicyRule[],
): string | undefined {
  const count = wanted.reduce((sum, rule) => sum + countRights(rule), 0)
  if (count > mostRights) return `the rules name ${count} rights, more than the ${mostRights} that can be compared`
  const index = ownerIndex(own)
  const rights = wanted.flatMap(rightsOf)
  const comparisons = rights.reduce((sum, right) => sum + candidates(index, right), 0)
  if (comparisons > mostComparisons) {
    return `the rules name ${count} rights, which take ${comparisons} comparisons with the user's own rules, more than ${mostComparisons}`
  }
  const missing = rights.filter((right) => !isCovered(index, right))
  if (missing.length === 0) return undefined
  const held = `user ${JSON.stringify(user)} (groups=[${groups.map((group) => JSON.stringify(group)).join(' ')}])`
  return `${held} is attempting to grant RBAC permissions not currently held:\n${missingTexts(missing).join('\n')}`
}

/** The rules of `wanted` that give a right which `own` does not give. */
export function missingRules(own: readonly PolicyRule[], wanted: readonly PolicyRule[]): readonly PolicyRule[] {
  const index = ownerIndex(own)
  return wanted.filter((rule) => rightsOf(rule).some((right) => !isCovered(index, right)))
}

function countRights({
  verbs = [],
  apiGroups = [],
  resources = [],
  resourceNames = [],
  nonResourceURLs = [],
}: PolicyRule) {
  return (
    verbs.length * (apiGroups.length * resources.length * Math.max(1, resourceNames.length) + nonResourceURLs.length)
  )
}

function rightsOf(rule: PolicyRule): readonly Right[] {
  const { verbs = [], apiGroups = [], resources = [], resourceNames = [], nonResourceURLs = [] } = rule
  const names = resourceNames.length === 0 ? [undefined] : resourceNames
  const onResources = apiGroups.flatMap((group) =>
    resources.flatMap((resource) => verbs.flatMap((verb) => names.map((name) => ({ verb, group, resource, name })))),
  )
  return [...onResources, ...nonResourceURLs.flatMap((path) => verbs.map((verb) => ({ verb, path })))]
}

type OwnerIndex = {
  readonly byResource: ReadonlyMap<string, readonly PolicyRule[]>
  readonly paths: readonly PolicyRule[]
}

function ownerIndex(rules: readonly PolicyRule[]): OwnerIndex {
  const byResource = new Map<string, PolicyRule[]>()
  for (const rule of rules) {
    for (const resource of new Set(rule.resources)) {
      const list = byResource.get(resource)
      if (list === undefined) byResource.set(resource, [rule])
      else list.push(rule)
    }
  }
  return { byResource, paths: rules.filter(({ nonResourceURLs = [] }) => nonResourceURLs.length > 0) }
}

/** How many rules of the owner may give the right. */
function candidates({ byResource, paths }: OwnerIndex, right: Right): number {
  if ('path' in right) return paths.length
  return keysFor(right.resource).reduce((sum, key) => sum + (byResource.get(key)?.length ?? 0), 0)
}

function keysFor(resource: string): readonly string[] {
  const slash = resource.indexOf('/')
  return ['*', resource, ...(slash < 0 ? [] : [`*${resource.slice(slash)}`])]
}

function isCovered({ byResource, paths }: OwnerIndex, right: Right): boolean {
  if ('path' in right) {
    const covers = (url: string) => coversPath(url, right.path)
    return paths.some(
      ({ verbs, nonResourceURLs = [] }) => includesOrAll(verbs, right.verb) && nonResourceURLs.some(covers),
    )
  }
  const { verb, group, resource, name } = right
  return keysFor(resource).some((key) =>
    byResource.get(key)?.some(({ verbs, apiGroups, resourceNames = [] }) => {
      const isNamed = resourceNames.length === 0 || (name !== undefined && resourceNames.includes(name))
      return isNamed && includesOrAll(verbs, verb) && includesOrAll(apiGroups, group)
    }),
  )
}

/** Verbs on one resource in one line, sorted; a bounded number of lines (CompactRules, CompactString). */
function missingTexts(missing: readonly Right[]): readonly string[] {
  const verbs = new Map<string, string[]>()
  for (const right of missing) {
    const what =
      'path' in right
        ? `NonResourceURLs:[${JSON.stringify(right.path)}], Verbs:[${JSON.stringify(right.verb)}]`
        : `APIGroups:[${JSON.stringify(right.group)}], Resources:[${JSON.stringify(right.resource)}]` +
          (right.name === undefined ? '' : `, ResourceNames:[${JSON.stringify(right.name)}]`)
    const named = verbs.get(what) ?? []
    verbs.set(what, named)
    if (!('path' in right)) named.push(JSON.stringify(right.verb))
  }
  const lines = [...verbs].map(([what, list]) => `{${what}${list.length === 0 ? '' : `, Verbs:[${list.join(' ')}]`}}`)
  return lines.sort().slice(0, mostLines)
}

const mostLines = 20

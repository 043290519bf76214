/**
 * Matches a request against the rules of a role (pkg/apis/rbac/v1/evaluation_helpers.go,
 * plugin/pkg/auth/authorizer/rbac/rbac.go).
 */
import type { PolicyRule } from '../../../../api/access/role.ts'
import type { Attributes } from '../../handlers/authorizer.ts'

const all = '*'

export function ruleAllows(rule: PolicyRule, attributes: Attributes): boolean {
  if (!includesOrAll(rule.verbs, attributes.verb)) return false
  if (attributes.kind === 'path') return (rule.nonResourceURLs ?? []).some((url) => coversPath(url, attributes.path))
  const { group, resource, subresource, name } = attributes
  return (
    includesOrAll(rule.apiGroups, group) &&
    coversResource(rule.resources ?? [], resource, subresource) &&
    coversName(rule, name)
  )
}

/** `pods`, `pods/log`, every resource with `*`, the subresource of every resource with `*` and a slash before it. */
export function coversResource(resources: readonly string[], resource: string, subresource: string): boolean {
  const wanted = subresource === '' ? resource : `${resource}/${subresource}`
  const ofAny = subresource === '' ? undefined : `*/${subresource}`
  return resources.some((one) => one === all || one === wanted || one === ofAny)
}

/** A rule that names no objects is for all of them. */
function coversName({ resourceNames = [] }: PolicyRule, name: string): boolean {
  return resourceNames.length === 0 || resourceNames.includes(name)
}

/** A star at the end of a path stands for any rest of it. */
export function coversPath(url: string, path: string): boolean {
  if (url === path) return true
  let end = url.length
  while (url[end - 1] === all) end-- // an expression for this takes the square of the time
  return end < url.length && path.startsWith(url.slice(0, end))
}

export function includesOrAll(list: readonly string[] = [], wanted: string): boolean {
  return list.includes(all) || list.includes(wanted)
}

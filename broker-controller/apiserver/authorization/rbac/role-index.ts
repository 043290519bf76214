/**
 * Which rules a user has: the bindings of a fleet by subject and namespace, and the roles that they name. Kept from
 * changes one by one, so that a decision looks at the rules of one user that name the resource, and at no other.
 */
import type { ClusterRole } from '../../../../api/access/cluster-role.ts'
import type { ClusterRoleBinding } from '../../../../api/access/cluster-role-binding.ts'
import type { PolicyRule, Role } from '../../../../api/access/role.ts'
import type { RoleBinding, RoleRef, Subject } from '../../../../api/access/role-binding.ts'
import { serviceAccountUser } from '../../../../api/access/service-account-names.ts'
import type { Identity } from '../../../../api/identity.ts'
import { keyText } from '../../../store/informer.ts'
import type { AccessDecision, Attributes, Authorizer } from '../../handlers/authorizer.ts'
import { ruleAllows } from './policy-rules.ts'

export interface RoleIndex extends Pick<Authorizer, 'rulesOf' | 'rulesOfRole'> {
  /** `present` undefined: it is gone. */
  updateRole(present: Role | ClusterRole | undefined, previous: Role | ClusterRole | undefined): void
  updateBinding(
    present: RoleBinding | ClusterRoleBinding | undefined,
    previous: RoleBinding | ClusterRoleBinding | undefined,
  ): void
  decide(identity: Identity, attributes: Attributes): AccessDecision
}

type Binding = RoleBinding | ClusterRoleBinding
type Grant = { readonly binding: Binding; readonly subject: Subject }
type SourcedRule = { readonly rule: PolicyRule; readonly grant: Grant }
/** The rules of one subject in one namespace, by what a request can ask for. A role counts once, with its first binding. */
type SubjectRules = {
  /** By the name in the rule: `pods`, `pods/log`, a star, or a star with a subresource. */
  readonly byResource: ReadonlyMap<string, readonly SourcedRule[]>
  readonly paths: readonly SourcedRule[]
  readonly all: readonly PolicyRule[]
  readonly missing: readonly string[]
}

export function roleIndex(): RoleIndex {
  const roles = new Map<string, readonly PolicyRule[]>()
  /** By namespace and subject, then by the binding's key. */
  const grants = new Map<string, Map<string, Grant>>()
  /** Worked out when they are asked for first; any change of a role or binding makes them void. */
  const worked = new Map<string, SubjectRules>()

  const rulesOfRole = ({ kind, name }: RoleRef, namespace: string) =>
    roles.get(roleKey(kind, kind === 'Role' ? namespace : '', name))

  const rulesAt = (place: string): SubjectRules | undefined => {
    const known = worked.get(place)
    if (known !== undefined) return known
    const granted = grants.get(place)
    if (granted === undefined) return undefined
    const rules = subjectRules([...granted.values()], rulesOfRole)
    worked.set(place, rules)
    return rules
  }

  function* rulesOfIdentity(identity: Identity, namespace: string): Generator<SubjectRules> {
    const subjects = subjectsOf(identity)
    for (const scope of namespace === '' ? [''] : ['', namespace]) {
      for (const subject of subjects) {
        const rules = rulesAt(placeKey(scope, subject))
        if (rules !== undefined) yield rules
      }
    }
  }

  return {
    updateRole(present, previous) {
      worked.clear()
      if (previous !== undefined) roles.delete(keyOfRole(previous))
      if (present !== undefined) roles.set(keyOfRole(present), present.rules ?? [])
    },
    updateBinding(present, previous) {
      worked.clear()
      for (const { place, key } of placesOf(previous)) {
        const there = grants.get(place)
        there?.delete(key)
        if (there?.size === 0) grants.delete(place)
      }
      for (const { place, key, grant } of placesOf(present)) {
        grants.set(place, (grants.get(place) ?? new Map<string, Grant>()).set(key, grant))
      }
    },
    rulesOfRole,
    rulesOf: (identity, namespace) => [...rulesOfIdentity(identity, namespace)].flatMap(({ all }) => all),
    decide(identity, attributes) {
      const namespace = attributes.kind === 'path' ? '' : attributes.namespace
      const missing = new Set<string>()
      for (const rules of rulesOfIdentity(identity, namespace)) {
        const found = ruleFor(rules, attributes)
        if (found !== undefined) return { allowed: true, reason: `RBAC: allowed by ${grantText(found.grant)}` }
        for (const role of rules.missing) missing.add(role)
      }
      return { allowed: false, reason: missingText([...missing]) }
    },
  }
}

/** The first rule that allows it, among those that name the resource or stand for every one. */
function ruleFor({ byResource, paths }: SubjectRules, attributes: Attributes): SourcedRule | undefined {
  const allows = ({ rule }: SourcedRule) => ruleAllows(rule, attributes)
  if (attributes.kind === 'path') return paths.find(allows)
  const { resource, subresource } = attributes
  const named = subresource === '' ? resource : `${resource}/${subresource}`
  // These only narrow the search: `allows` decides.
  for (const name of [named, '*', `*/${subresource}`]) {
    const found = byResource.get(name)?.find(allows)
    if (found !== undefined) return found
  }
  return undefined
}

function subjectRules(granted: readonly Grant[], rulesOfRole: RoleIndex['rulesOfRole']): SubjectRules {
  const byResource = new Map<string, SourcedRule[]>()
  const paths: SourcedRule[] = []
  const all: PolicyRule[] = []
  const missing: string[] = []
  const seen = new Set<string>()
  for (const grant of granted) {
    const { roleRef, metadata } = grant.binding
    const role = roleKey(roleRef.kind, '', roleRef.name)
    if (seen.has(role)) continue // the author of one long role could have any number of bindings for it
    seen.add(role)
    const rules = rulesOfRole(roleRef, metadata.namespace ?? '')
    if (rules === undefined)
      missing.push(`${roleRef.kind.toLowerCase()}.rbac.authorization.k8s.io "${roleRef.name}" not found`)
    for (const rule of rules ?? []) {
      all.push(rule)
      if (rule.nonResourceURLs !== undefined) paths.push({ rule, grant })
      addByResource(byResource, { rule, grant })
    }
  }
  return { byResource, paths, all, missing }
}

function addByResource(byResource: Map<string, SourcedRule[]>, sourced: SourcedRule): void {
  for (const name of new Set(sourced.rule.resources)) {
    const list = byResource.get(name)
    if (list === undefined) byResource.set(name, [sourced])
    else list.push(sourced)
  }
}

function subjectsOf({ user, groups }: Identity): readonly string[] {
  return [userKey(user), ...groups.map(groupKey)]
}

const userKey = (user: string) => `user ${user}`
const groupKey = (group: string) => `group ${group}`
const placeKey = (namespace: string, subject: string) => `${namespace}/${subject}`
const roleKey = (kind: string, namespace: string, name: string) => `${kind} ${namespace}/${name}`

function keyOfRole({ kind, metadata }: Role | ClusterRole): string {
  return roleKey(kind, metadata.namespace ?? '', metadata.name ?? '')
}

function* placesOf(binding: Binding | undefined): Generator<{ place: string; key: string; grant: Grant }> {
  if (binding === undefined) return
  const namespace = binding.metadata.namespace ?? ''
  const key = keyText(binding.metadata)
  for (const subject of binding.subjects ?? []) {
    const found = keyOfSubject(subject, namespace)
    if (found !== undefined) yield { place: placeKey(namespace, found), key, grant: { binding, subject } }
  }
}

/** undefined: the subject is not a user. A service account without a namespace is that of the binding's. */
function keyOfSubject({ kind, name, namespace: named = '' }: Subject, namespace: string): string | undefined {
  if (kind === 'User') return userKey(name)
  if (kind === 'Group') return groupKey(name)
  const own = named || namespace
  return kind === 'ServiceAccount' && own !== '' ? userKey(serviceAccountUser(own, name)) : undefined
}

function grantText({ binding, subject }: Grant): string {
  const { kind, metadata, roleRef } = binding
  const name = kind === 'RoleBinding' ? `${metadata.name}/${metadata.namespace}` : metadata.name
  const who =
    subject.kind === 'ServiceAccount'
      ? `${subject.name}/${subject.namespace || metadata.namespace || ''}`
      : subject.name
  return `${kind} "${name}" of ${roleRef.kind} "${roleRef.name}" to ${subject.kind} "${who}"`
}

/** The aggregate of several errors, as apimachinery prints it (util/errors). */
function missingText(missing: readonly string[]): string {
  if (missing.length === 0) return ''
  const named = missing.slice(0, mostNamed)
  return `RBAC: ${named.length === 1 ? named.join() : `[${named.join(', ')}]`}`
}

/** Missing roles that one refusal names. */
const mostNamed = 10

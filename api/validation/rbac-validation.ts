/** Roles and role bindings: their defaults, and what is wrong with them (pkg/apis/rbac/v1/defaults.go, validation/validation.go). */
import type { ClusterRole } from '../access/cluster-role.ts'
import type { ClusterRoleBinding } from '../access/cluster-role-binding.ts'
import { type PolicyRule, rbacGroup } from '../access/role.ts'
import type { RoleBinding, RoleRef, Subject } from '../access/role-binding.ts'
import { dnsSubdomainProblem, pathSegmentProblem } from '../names.ts'
import { invalid, notSupported, type Problem, required } from '../problem.ts'
import { problemsWith } from './metadata-validation.ts'
import { selectorProblems } from './scheduling-validation.ts'

/** `namespaced`: the rules of a Role, which are for resources of its namespace only. */
export function roleProblems(rules: readonly PolicyRule[] = [], namespaced: boolean): readonly Problem[] {
  return rules.flatMap((rule, index) => ruleProblems(`rules[${index}]`, rule, namespaced))
}

export function aggregationProblems({ aggregationRule }: ClusterRole): readonly Problem[] {
  if (aggregationRule === undefined) return []
  const { clusterRoleSelectors = [] } = aggregationRule
  const field = 'aggregationRule.clusterRoleSelectors'
  if (clusterRoleSelectors.length === 0) {
    return [required(field, 'at least one clusterRoleSelector required if aggregationRule is non-nil')]
  }
  return clusterRoleSelectors.flatMap((selector, index) => selectorProblems(`${field}[${index}]`, selector))
}

function ruleProblems(field: string, rule: PolicyRule, namespaced: boolean): readonly Problem[] {
  const { verbs = [], apiGroups = [], resources = [], resourceNames = [], nonResourceURLs = [] } = rule
  const unnamed = verbs.length === 0 ? [required(`${field}.verbs`, 'verbs must contain at least one value')] : []
  if (nonResourceURLs.length > 0) {
    const wrong = (because: string) => invalid(`${field}.nonResourceURLs`, nonResourceURLs, because)
    return [
      ...unnamed,
      ...(namespaced ? [wrong('namespaced rules cannot apply to non-resource URLs')] : []),
      ...(apiGroups.length + resources.length + resourceNames.length > 0
        ? [wrong('rules cannot apply to both regular resources and non-resource URLs')]
        : []),
    ]
  }
  return [
    ...unnamed,
    ...(apiGroups.length === 0
      ? [required(`${field}.apiGroups`, 'resource rules must supply at least one api group')]
      : []),
    ...(resources.length === 0
      ? [required(`${field}.resources`, 'resource rules must supply at least one resource')]
      : []),
  ]
}

type Binding = RoleBinding | ClusterRoleBinding

/** The binding with the API groups that its author left out. */
export function withBindingDefaults<B extends Binding>(binding: B): B {
  const { roleRef, subjects } = binding
  return {
    ...binding,
    roleRef: { ...roleRef, apiGroup: roleRef.apiGroup || rbacGroup },
    ...(subjects && { subjects: subjects.map(withSubjectDefaults) }),
  }
}

function withSubjectDefaults(subject: Subject): Subject {
  const isNamed = subject.kind === 'User' || subject.kind === 'Group'
  return isNamed && !subject.apiGroup ? { ...subject, apiGroup: rbacGroup } : subject
}

export function bindingProblems({ kind, roleRef, subjects = [] }: Binding): readonly Problem[] {
  const namespaced = kind === 'RoleBinding'
  const roles = namespaced ? ['Role', 'ClusterRole'] : ['ClusterRole']
  return [
    ...(roleRef.apiGroup === rbacGroup ? [] : [notSupported('roleRef.apiGroup', roleRef.apiGroup ?? '', [rbacGroup])]),
    ...(roles.includes(roleRef.kind) ? [] : [notSupported('roleRef.kind', roleRef.kind, roles)]),
    ...(roleRef.name === ''
      ? [required('roleRef.name')]
      : problemsWith('roleRef.name', roleRef.name, pathSegmentProblem)),
    ...subjects.flatMap((subject, index) => subjectProblems(`subjects[${index}]`, subject, namespaced)),
  ]
}

/** A binding is for one role: a user who may change its subjects must not give them another role. */
export function bindingChangeProblems(old: Binding, now: Binding): readonly Problem[] {
  return equalRoleRefs(old.roleRef, now.roleRef) ? [] : [invalid('roleRef', now.roleRef, 'cannot change roleRef')]
}

function equalRoleRefs(one: RoleRef, other: RoleRef): boolean {
  return one.apiGroup === other.apiGroup && one.kind === other.kind && one.name === other.name
}

const subjectKinds = ['ServiceAccount', 'User', 'Group']

function subjectProblems(field: string, subject: Subject, namespaced: boolean): readonly Problem[] {
  const { kind, name, namespace = '', apiGroup = '' } = subject
  const group = (wanted: string) => (apiGroup === wanted ? [] : [notSupported(`${field}.apiGroup`, apiGroup, [wanted])])
  const unnamed = name === '' ? [required(`${field}.name`)] : []
  if (!subjectKinds.includes(kind)) return [...unnamed, notSupported(`${field}.kind`, kind, subjectKinds)]
  if (kind !== 'ServiceAccount') return [...unnamed, ...group(rbacGroup)]
  return [
    ...unnamed,
    ...(name === '' ? [] : problemsWith(`${field}.name`, name, dnsSubdomainProblem)),
    ...group(''),
    ...(!namespaced && namespace === '' ? [required(`${field}.namespace`)] : []),
  ]
}

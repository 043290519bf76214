import { test } from 'tap'
import type { ClusterRole } from '../../../../api/access/cluster-role.ts'
import type { ClusterRoleBinding } from '../../../../api/access/cluster-role-binding.ts'
import type { Role } from '../../../../api/access/role.ts'
import type { RoleBinding } from '../../../../api/access/role-binding.ts'
import { isApiError } from '../../../../api/api-error.ts'
import { create, update } from '../../../testing/admitting.ts'

const apiVersion = 'rbac.authorization.k8s.io/v1'
const aRole = (rules: Role['rules'] = []): Role => ({
  apiVersion,
  kind: 'Role',
  metadata: { name: 'system:reader', namespace: 'default' },
  rules,
})
const aClusterRole = (more: Partial<ClusterRole>): ClusterRole => ({
  apiVersion,
  kind: 'ClusterRole',
  metadata: { name: 'reader' },
  ...more,
})
const aBinding = (more: Partial<RoleBinding> = {}): RoleBinding => ({
  apiVersion,
  kind: 'RoleBinding',
  metadata: { name: 'readers', namespace: 'default' },
  roleRef: { kind: 'Role', name: 'reader' },
  ...more,
})
const aClusterBinding = (more: Partial<ClusterRoleBinding> = {}): ClusterRoleBinding => ({
  apiVersion,
  kind: 'ClusterRoleBinding',
  metadata: { name: 'readers' },
  roleRef: { kind: 'ClusterRole', name: 'reader' },
  ...more,
})
const refusal = (attempt: () => unknown): string => {
  try {
    attempt()
    return ''
  } catch (error) {
    if (isApiError(error, 'Invalid')) return error.message
    throw error
  }
}

test('a rule is for resources of some group or for paths, and names verbs', async (t) => {
  const pods = { apiGroups: [''], resources: ['pods'], verbs: ['get'] }
  t.equal(
    refusal(() => create('roles', aRole([pods]))),
    '',
  )
  t.equal(
    refusal(() => create('roles', aRole())),
    '',
    'a role may have no rules',
  )
  const named = 'Role.rbac.authorization.k8s.io "system:reader" is invalid: '
  t.equal(
    refusal(() => create('roles', aRole([{ ...pods, verbs: [] }]))),
    `${named}rules[0].verbs: Required value: verbs must contain at least one value`,
  )
  t.equal(
    refusal(() => create('roles', aRole([pods, { verbs: ['get'] }]))),
    `${named}[rules[1].apiGroups: Required value: resource rules must supply at least one api group, ` +
      'rules[1].resources: Required value: resource rules must supply at least one resource]',
  )
  const paths = { nonResourceURLs: ['/metrics'], verbs: ['get'] }
  t.equal(
    refusal(() => create('roles', aRole([paths]))),
    `${named}rules[0].nonResourceURLs: Invalid value: ["/metrics"]: namespaced rules cannot apply to non-resource URLs`,
  )
  t.equal(
    refusal(() => create('clusterroles', aClusterRole({ rules: [paths] }))),
    '',
  )
  t.match(
    refusal(() => create('clusterroles', aClusterRole({ rules: [{ ...paths, resources: ['pods'] }] }))),
    'rules cannot apply to both regular resources and non-resource URLs',
  )
})

test('an aggregation rule selects cluster roles', async (t) => {
  const selecting = (...clusterRoleSelectors: NonNullable<ClusterRole['aggregationRule']>['clusterRoleSelectors'][]) =>
    refusal(() =>
      create(
        'clusterroles',
        aClusterRole({ aggregationRule: { clusterRoleSelectors: clusterRoleSelectors[0] ?? [] } }),
      ),
    )
  t.equal(selecting([{ matchLabels: { a: 'b' } }]), '')
  t.match(
    selecting([]),
    'aggregationRule.clusterRoleSelectors: Required value: at least one clusterRoleSelector required if aggregationRule is non-nil',
  )
  t.match(selecting([{ matchLabels: { 'a b': 'c' } }]), 'aggregationRule.clusterRoleSelectors[0].matchLabels')
})

test('a binding names a role and subjects; API groups that are left out are those of Kubernetes', async (t) => {
  const made = create(
    'rolebindings',
    aBinding({
      subjects: [
        { kind: 'User', name: 'eve' },
        { kind: 'ServiceAccount', name: 'ci' },
      ],
    }),
  )
  t.match(made, {
    roleRef: { apiGroup: 'rbac.authorization.k8s.io' },
    subjects: [
      { kind: 'User', apiGroup: 'rbac.authorization.k8s.io' },
      { kind: 'ServiceAccount', name: 'ci' },
    ],
  })
  const wrong = (more: Partial<RoleBinding>) => refusal(() => create('rolebindings', aBinding(more)))
  t.match(
    wrong({ roleRef: { kind: 'Group', name: 'x' } }),
    'roleRef.kind: Unsupported value: "Group": supported values: "Role", "ClusterRole"',
  )
  t.match(wrong({ roleRef: { kind: 'Role', name: '' } }), 'roleRef.name: Required value')
  t.match(
    wrong({ roleRef: { kind: 'Role', name: 'x', apiGroup: 'v1' } }),
    'roleRef.apiGroup: Unsupported value: "v1": supported values: "rbac.authorization.k8s.io"',
  )
  t.match(
    wrong({ subjects: [{ kind: 'Robot', name: 'x' }] }),
    'subjects[0].kind: Unsupported value: "Robot": supported values: "ServiceAccount", "User", "Group"',
  )
  t.match(wrong({ subjects: [{ kind: 'ServiceAccount', name: 'A_b' }] }), 'subjects[0].name: Invalid value: "A_b"')
  t.match(wrong({ subjects: [{ kind: 'User', name: '' }] }), 'subjects[0].name: Required value')
  const clusterWide = (more: Partial<ClusterRoleBinding>) =>
    refusal(() => create('clusterrolebindings', aClusterBinding(more)))
  t.equal(clusterWide({}), '')
  t.match(
    clusterWide({ roleRef: { kind: 'Role', name: 'x' } }),
    'roleRef.kind: Unsupported value: "Role": supported values: "ClusterRole"',
  )
  t.match(clusterWide({ subjects: [{ kind: 'ServiceAccount', name: 'ci' }] }), 'subjects[0].namespace: Required value')
})

test('the role of a binding cannot be changed', async (t) => {
  const present = create('rolebindings', aBinding())
  t.match(
    refusal(() => update('rolebindings', present, aBinding({ roleRef: { kind: 'ClusterRole', name: 'reader' } }))),
    /roleRef: Invalid value: .*: cannot change roleRef/,
  )
  t.equal(
    refusal(() => update('rolebindings', present, aBinding({ subjects: [{ kind: 'Group', name: 'x' }] }))),
    '',
  )
})

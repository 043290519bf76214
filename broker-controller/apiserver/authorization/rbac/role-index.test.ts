import { test } from 'tap'
import type { ClusterRole } from '../../../../api/access/cluster-role.ts'
import type { ClusterRoleBinding } from '../../../../api/access/cluster-role-binding.ts'
import type { PolicyRule, Role } from '../../../../api/access/role.ts'
import type { RoleBinding, Subject } from '../../../../api/access/role-binding.ts'
import type { Identity } from '../../../../api/identity.ts'
import type { Attributes } from '../../handlers/authorizer.ts'
import { roleIndex } from './role-index.ts'

const apiVersion = 'rbac.authorization.k8s.io/v1'
const clusterRole = (name: string, ...rules: readonly PolicyRule[]): ClusterRole => ({
  apiVersion,
  kind: 'ClusterRole',
  metadata: { name },
  rules,
})
const role = (namespace: string, name: string, ...rules: readonly PolicyRule[]): Role => ({
  apiVersion,
  kind: 'Role',
  metadata: { name, namespace },
  rules,
})
const clusterBinding = (name: string, roleName: string, ...subjects: readonly Subject[]): ClusterRoleBinding => ({
  apiVersion,
  kind: 'ClusterRoleBinding',
  metadata: { name },
  roleRef: { kind: 'ClusterRole', name: roleName },
  subjects,
})
const binding = (namespace: string, roleRef: RoleBinding['roleRef'], ...subjects: readonly Subject[]): RoleBinding => ({
  apiVersion,
  kind: 'RoleBinding',
  metadata: { name: `for-${roleRef.name}`, namespace },
  roleRef,
  subjects,
})
const user = (name: string): Subject => ({ kind: 'User', name })
const group = (name: string): Subject => ({ kind: 'Group', name })
const eve: Identity = { user: 'eve', groups: ['team', 'system:authenticated'] }
const on = (verbs: string, resources: string, more: Partial<PolicyRule> = {}): PolicyRule => ({
  verbs: verbs.split(' '),
  apiGroups: [''],
  resources: resources.split(' '),
  ...more,
})
const asking = (
  verb: string,
  text: string,
  more: { namespace?: string; name?: string; group?: string } = {},
): Attributes => {
  const [resource = '', subresource = ''] = text.split('/')
  return {
    kind: 'resource',
    verb,
    group: '',
    resource,
    subresource,
    namespace: '',
    name: '',
    fields: new Map(),
    ...more,
  }
}
const path = (path: string, verb = 'get'): Attributes => ({ kind: 'path', verb, path })

/** What `eve` may do with these rules. */
const withRules = (...rules: readonly PolicyRule[]) => {
  const index = roleIndex()
  index.updateRole(clusterRole('some', ...rules), undefined)
  index.updateBinding(clusterBinding('some', 'some', user('eve')), undefined)
  return (attributes: Attributes) => index.decide(eve, attributes).allowed
}

test('a rule is for its verbs, groups and resources', async (t) => {
  const may = withRules(on('get list', 'pods'), on('watch', 'leases', { apiGroups: ['coordination.k8s.io'] }))
  t.ok(may(asking('get', 'pods')))
  t.ok(may(asking('list', 'pods', { namespace: 'any' })), 'a cluster-wide binding is for every namespace')
  t.notOk(may(asking('delete', 'pods')))
  t.notOk(may(asking('get', 'secrets')))
  t.notOk(may(asking('get', 'pods/log')), 'a subresource is not part of its resource')
  t.notOk(may(asking('get', 'pods', { group: 'metrics.k8s.io' })))
  t.ok(may(asking('watch', 'leases', { group: 'coordination.k8s.io' })))
  t.notOk(may(path('/pods')))
})

test('a star stands for every verb, group, resource, or subresource of any resource', async (t) => {
  const everything = withRules({ verbs: ['*'], apiGroups: ['*'], resources: ['*'] })
  t.ok(everything(asking('impersonate', 'users', { group: 'any.example' })))
  t.ok(everything(asking('create', 'pods/exec')))
  t.notOk(everything(path('/metrics')), 'paths are not resources')
  const statuses = withRules(on('get', '*/status'))
  t.ok(statuses(asking('get', 'pods/status')))
  t.notOk(statuses(asking('get', 'pods/log')))
  t.notOk(statuses(asking('get', 'pods')))
})

test('a rule with names is for these objects only, and not for those that have no name yet', async (t) => {
  const may = withRules(on('get create', 'configmaps', { resourceNames: ['settings'] }))
  t.ok(may(asking('get', 'configmaps', { name: 'settings' })))
  t.notOk(may(asking('get', 'configmaps', { name: 'other' })))
  t.notOk(may(asking('create', 'configmaps')))
})

test('rules for paths', async (t) => {
  const may = withRules({ verbs: ['get'], nonResourceURLs: ['/metrics', '/healthz/*'] })
  t.ok(may(path('/metrics')))
  t.notOk(may(path('/metrics/fleet')))
  t.ok(may(path('/healthz/etcd')))
  t.notOk(may(path('/healthz')))
  t.notOk(may(path('/metrics', 'post')))
  t.ok(withRules({ verbs: ['*'], nonResourceURLs: ['*'] })(path('/anything', 'delete')))
})

test('bindings are to users, groups and service accounts, and a RoleBinding is for its namespace', async (t) => {
  const index = roleIndex()
  index.updateRole(clusterRole('reader', on('get', 'pods')), undefined)
  index.updateRole(role('a', 'writer', on('update', 'pods')), undefined)
  index.updateBinding(binding('a', { kind: 'ClusterRole', name: 'reader' }, group('team')), undefined)
  index.updateBinding(
    binding(
      'a',
      { kind: 'Role', name: 'writer' },
      { kind: 'ServiceAccount', name: 'ci' },
      { kind: 'ServiceAccount', name: 'cd', namespace: 'b' },
    ),
    undefined,
  )
  const may = (identity: Identity, verb: string, namespace: string) =>
    index.decide(identity, asking(verb, 'pods', { namespace })).allowed
  t.ok(may(eve, 'get', 'a'))
  t.notOk(may(eve, 'get', 'b'))
  t.notOk(may(eve, 'get', ''), 'all namespaces')
  t.notOk(may({ user: 'team', groups: [] }, 'get', 'a'), 'a user of the name of a group')
  const account = (name: string): Identity => ({ user: `system:serviceaccount:${name}`, groups: [] })
  t.ok(may(account('a:ci'), 'update', 'a'))
  t.ok(may(account('b:cd'), 'update', 'a'))
  t.notOk(may(account('b:ci'), 'update', 'a'))
  t.equal(
    index.decide(eve, asking('get', 'pods', { namespace: 'a' })).reason,
    'RBAC: allowed by RoleBinding "for-reader/a" of ClusterRole "reader" to Group "team"',
  )
})

test('changes of roles and bindings count at once, in any order', async (t) => {
  const index = roleIndex()
  const may = () => index.decide(eve, asking('get', 'pods')).allowed
  const given = clusterBinding('readers', 'reader', user('eve'))
  index.updateBinding(given, undefined)
  t.notOk(may(), 'the role is missing')
  t.equal(
    index.decide(eve, asking('get', 'pods')).reason,
    'RBAC: clusterrole.rbac.authorization.k8s.io "reader" not found',
  )
  const reader = clusterRole('reader', on('get', 'pods'))
  index.updateRole(reader, undefined)
  t.ok(may())
  const less = clusterRole('reader', on('get', 'nodes'))
  index.updateRole(less, reader)
  t.notOk(may())
  index.updateRole(reader, less)
  const other = clusterBinding('readers', 'reader', user('adam'))
  index.updateBinding(other, given)
  t.notOk(may())
  index.updateBinding(given, other)
  t.ok(may())
  index.updateBinding(undefined, given)
  t.notOk(may())
})

test('names of JavaScript’s own properties are names like any other', async (t) => {
  const index = roleIndex()
  index.updateRole(clusterRole('__proto__', on('get', 'constructor')), undefined)
  index.updateBinding(clusterBinding('toString', '__proto__', user('__proto__')), undefined)
  t.ok(index.decide({ user: '__proto__', groups: [] }, asking('get', 'constructor')).allowed)
  t.notOk(index.decide(eve, asking('get', 'toString')).allowed)
})

test('all rules of a user in a namespace', async (t) => {
  const index = roleIndex()
  index.updateRole(clusterRole('reader', on('get', 'pods')), undefined)
  index.updateRole(role('a', 'writer', on('update', 'pods')), undefined)
  index.updateBinding(clusterBinding('readers', 'reader', group('team')), undefined)
  index.updateBinding(binding('a', { kind: 'Role', name: 'writer' }, user('eve')), undefined)
  t.same(index.rulesOf(eve, 'a'), [on('get', 'pods'), on('update', 'pods')])
  t.same(index.rulesOf(eve, 'b'), [on('get', 'pods')])
  t.same(index.rulesOf(eve, ''), [on('get', 'pods')], 'outside any namespace')
  t.equal(index.rulesOfRole({ kind: 'Role', name: 'writer' }, 'b'), undefined)
})

test('a role that is missing, or has no list of rules, gives none', async (t) => {
  const index = roleIndex()
  index.updateRole({ ...clusterRole('empty'), rules: undefined }, undefined)
  index.updateBinding(clusterBinding('empty', 'empty', user('eve')), undefined)
  index.updateBinding(clusterBinding('missing', 'missing', user('eve')), undefined)
  t.same(index.rulesOf(eve, ''), [])
})

test('a RoleBinding grants no path, whatever its namespace is called', async (t) => {
  const index = roleIndex()
  index.updateRole(clusterRole('metrics', { verbs: ['get'], nonResourceURLs: ['/metrics'] }), undefined)
  for (const namespace of ['a', 'undefined', 'null'])
    index.updateBinding(binding(namespace, { kind: 'ClusterRole', name: 'metrics' }, user('eve')), undefined)
  t.notOk(index.decide(eve, path('/metrics')).allowed)
})

test('a binding that names a subject twice is revoked with its removal', async (t) => {
  const index = roleIndex()
  index.updateRole(clusterRole('reader', on('get', 'pods')), undefined)
  const twice = clusterBinding('readers', 'reader', user('eve'), user('eve'))
  index.updateBinding(twice, undefined)
  t.ok(index.decide(eve, asking('get', 'pods')).allowed)
  index.updateBinding(undefined, twice)
  t.notOk(index.decide(eve, asking('get', 'pods')).allowed)
})

test('a role that many bindings give to one user counts once', async (t) => {
  const index = roleIndex()
  index.updateRole(role('default', 'reader', on('get', 'pods')), undefined)
  const one = binding('default', { kind: 'Role', name: 'reader' }, user('eve'))
  for (const name of ['a', 'b', 'c']) index.updateBinding({ ...one, metadata: { ...one.metadata, name } }, undefined)
  t.equal(index.rulesOf(eve, 'default').length, 1)
  index.updateBinding(undefined, { ...one, metadata: { ...one.metadata, name: 'a' } })
  t.ok(index.decide(eve, asking('get', 'pods', { namespace: 'default' })).allowed, 'until the last of them is gone')
})

test('a reason names the binding, its role and its subject', async (t) => {
  const ci: Subject = { kind: 'ServiceAccount', name: 'ci' }
  const reasonFor = (given: ClusterRoleBinding | RoleBinding, identity: Identity) => {
    const index = roleIndex()
    index.updateRole(clusterRole('reader', on('get', 'pods')), undefined)
    index.updateBinding(given, undefined)
    return index.decide(identity, asking('get', 'pods', { namespace: 'a' })).reason
  }
  t.equal(
    reasonFor(clusterBinding('all', 'reader', user('eve')), eve),
    'RBAC: allowed by ClusterRoleBinding "all" of ClusterRole "reader" to User "eve"',
  )
  const reader = { kind: 'ClusterRole', name: 'reader' } as const
  const account = (name: string): Identity => ({ user: `system:serviceaccount:${name}`, groups: [] })
  t.equal(
    reasonFor(binding('a', reader, ci), account('a:ci')),
    'RBAC: allowed by RoleBinding "for-reader/a" of ClusterRole "reader" to ServiceAccount "ci/a"',
  )
  t.equal(
    reasonFor(binding('a', reader, { ...ci, namespace: 'b' }), account('b:ci')),
    'RBAC: allowed by RoleBinding "for-reader/a" of ClusterRole "reader" to ServiceAccount "ci/b"',
  )
})

// apimachinery's util/errors prints one error plainly and several in brackets.
test('a refusal names the missing roles of the bindings of this user, ten at most', async (t) => {
  const index = roleIndex()
  const reason = () => index.decide(eve, asking('get', 'pods')).reason
  t.equal(reason(), '', 'without bindings there is nothing to add')
  const text = (name: string) => `clusterrole.rbac.authorization.k8s.io "${name}" not found`
  index.updateBinding(clusterBinding('a', 'a', user('eve')), undefined)
  index.updateBinding(clusterBinding('b', 'b', user('eve')), undefined)
  t.equal(reason(), `RBAC: [${text('a')}, ${text('b')}]`)
  for (let more = 0; more < 20; more++)
    index.updateBinding(clusterBinding(`c${more}`, `c${more}`, user('eve')), undefined)
  t.equal(reason().split(',').length, 10)
  const other = roleIndex()
  other.updateRole(clusterRole('none'), undefined)
  other.updateBinding(clusterBinding('none', 'none', user('eve')), undefined)
  t.equal(other.decide(eve, asking('get', 'pods')).reason, '', 'a role without rules is there')
})

test('a service account without any namespace, or a subject of an unknown kind, matches no user', async (t) => {
  const index = roleIndex()
  index.updateRole(clusterRole('reader', on('get', 'pods')), undefined)
  const unmatched = [
    { kind: 'ServiceAccount', name: 'ci' },
    { kind: 'Robot', name: 'eve' },
    { kind: 'Robot', name: 'cd', namespace: 'a' },
  ]
  index.updateBinding(clusterBinding('readers', 'reader', ...unmatched), undefined)
  for (const account of ['system:serviceaccount::ci', 'system:serviceaccount:a:cd'])
    t.notOk(index.decide({ user: account, groups: [] }, asking('get', 'pods')).allowed, account)
  t.notOk(index.decide(eve, asking('get', 'pods')).allowed)
  t.doesNotThrow(() => index.updateBinding({ ...clusterBinding('empty', 'reader'), subjects: undefined }, undefined))
})

test('a role that is gone grants nothing, and paths are granted by cluster-wide bindings', async (t) => {
  const index = roleIndex()
  const reader = clusterRole('reader', on('get', 'pods'), { verbs: ['get'], nonResourceURLs: ['/metrics'] })
  index.updateRole(reader, undefined)
  index.updateBinding(clusterBinding('readers', 'reader', user('eve')), undefined)
  index.updateBinding(clusterBinding('others', 'reader', user('adam')), undefined)
  t.ok(index.decide(eve, path('/metrics')).allowed)
  t.ok(index.decide(eve, asking('get', 'pods')).allowed)
  index.updateRole(undefined, reader)
  t.notOk(index.decide(eve, path('/metrics')).allowed)
  t.notOk(index.decide(eve, asking('get', 'pods')).allowed)
})

test('several rules for one resource hold together, within their groups', async (t) => {
  const may = withRules(
    on('get', 'pods'),
    on('list', 'pods'),
    on('watch', '*', { apiGroups: ['apps'] }),
    on('get', 'pods/log'),
  )
  t.ok(may(asking('get', 'pods')))
  t.ok(may(asking('list', 'pods')))
  t.ok(may(asking('get', 'pods/log')))
  t.notOk(may(asking('list', 'pods/log')))
  t.ok(may(asking('watch', 'deployments', { group: 'apps' })))
  t.notOk(may(asking('watch', 'pods')), 'the star is for its group')
})

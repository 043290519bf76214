import { test } from 'tap'
import type { ClusterRole } from '../../api/access/cluster-role.ts'
import type { ClusterRoleBinding } from '../../api/access/cluster-role-binding.ts'
import { systemClock as clock } from '../../daemon/clock.ts'
import { memoryStore } from '../store/memory-store.ts'
import type { Store } from '../store/store.ts'
import { create } from '../testing/admitting.ts'
import { defaultClusterRoleBindings, defaultClusterRoles, defaultRoleBindings, defaultRoles } from './default-roles.ts'
import { ensureDefaultRoles, extendedBinding, extendedRole } from './reconcile-roles.ts'

const at = (name: string) => ({ namespace: '', name })

test('the default roles and bindings are ones that the API accepts', async (t) => {
  for (const role of defaultClusterRoles) t.doesNotThrow(() => create('clusterroles', role))
  for (const role of defaultRoles) t.doesNotThrow(() => create('roles', role))
  for (const one of defaultRoleBindings) {
    t.doesNotThrow(() => create('rolebindings', one))
    const isItsRole = ({ metadata }: (typeof defaultRoles)[number]) =>
      metadata.name === one.roleRef.name && metadata.namespace === one.metadata.namespace
    t.ok(defaultRoles.some(isItsRole), one.roleRef.name)
  }
  for (const one of defaultClusterRoleBindings) {
    t.doesNotThrow(() => create('clusterrolebindings', one))
    t.ok(
      defaultClusterRoles.some(({ metadata }) => metadata.name === one.roleRef.name),
      one.roleRef.name,
    )
  }
})

test('a start creates them, and the next start changes nothing', async (t) => {
  const store = memoryStore({ clock })
  await ensureDefaultRoles({ store, clock })
  const before = await store.version()
  t.equal((await store.list('clusterroles')).items.length, defaultClusterRoles.length)
  t.match((await store.list('roles')).items, [
    {
      metadata: { namespace: 'kube-system', name: 'bramble:home-assistant' },
      rules: [{ verbs: ['get', 'create', 'patch'], resourceNames: ['bramble-agent-rollout'] }],
    },
    {
      metadata: { namespace: 'kube-system', name: 'extension-apiserver-authentication-reader' },
      rules: [{ verbs: ['get', 'list', 'watch'], resourceNames: ['extension-apiserver-authentication'] }],
    },
  ])
  t.match((await store.list('rolebindings')).items, [{ subjects: [{ kind: 'User', name: 'bramble:home-assistant' }] }])
  t.equal((await store.list('clusterrolebindings')).items.length, defaultClusterRoleBindings.length)
  await ensureDefaultRoles({ store, clock })
  t.equal(await store.version(), before)
})

test('missing rights and subjects come back; what an operator added stays', async (t) => {
  const store = memoryStore({ clock })
  await ensureDefaultRoles({ store, clock })
  const role = await store.get('clusterroles', at('system:basic-user'))
  const own = { verbs: ['get'], apiGroups: [''], resources: ['nodes'] }
  if (role === undefined) throw new Error('no role')
  await store.update('clusterroles', { ...role, rules: [...(role.rules ?? []).slice(1), own] })
  const binding = await store.get('clusterrolebindings', at('system:discovery'))
  if (binding === undefined) throw new Error('no binding')
  const adam = { kind: 'User', apiGroup: 'rbac.authorization.k8s.io', name: 'adam' }
  await store.update('clusterrolebindings', { ...binding, subjects: [adam] })
  await ensureDefaultRoles({ store, clock })
  const rules = (await store.get('clusterroles', at('system:basic-user')))?.rules ?? []
  t.same(rules.length, 3)
  t.ok(rules.some(({ resources }) => resources?.includes('nodes')))
  t.same(
    (await store.get('clusterrolebindings', at('system:discovery')))?.subjects?.map(({ name }) => name),
    ['adam', 'system:authenticated'],
  )
})

test('a role that is not to be updated is left alone', async (t) => {
  const store = memoryStore({ clock })
  await ensureDefaultRoles({ store, clock })
  const role = await store.get('clusterroles', at('system:discovery'))
  if (role === undefined) throw new Error('no role')
  const annotations = { 'rbac.authorization.kubernetes.io/autoupdate': 'false' }
  await store.update('clusterroles', { ...role, metadata: { ...role.metadata, annotations }, rules: [] })
  await ensureDefaultRoles({ store, clock })
  t.same((await store.get('clusterroles', at('system:discovery')))?.rules, [])
})

const readPods = { verbs: ['get'], apiGroups: [''], resources: ['pods'] }
const aRole = (more: Partial<ClusterRole> = {}): ClusterRole => ({
  apiVersion: 'rbac.authorization.k8s.io/v1',
  kind: 'ClusterRole',
  metadata: { name: 'reader' },
  rules: [readPods],
  ...more,
})
const eve = { kind: 'User', name: 'eve' }
const aBinding = (more: Partial<ClusterRoleBinding> = {}): ClusterRoleBinding => ({
  apiVersion: 'rbac.authorization.k8s.io/v1',
  kind: 'ClusterRoleBinding',
  metadata: { name: 'readers' },
  roleRef: { kind: 'ClusterRole', name: 'reader' },
  subjects: [eve],
  ...more,
})

test('a role gets the rules, labels and aggregation that it lacks, and keeps its own', async (t) => {
  const labels = { a: 'default', b: 'default' }
  const annotations = { note: 'default' }
  const wanted = aRole({ metadata: { name: 'reader', labels, annotations } })
  t.equal(extendedRole(wanted, wanted), undefined)
  t.same(extendedRole(aRole({ metadata: { name: 'reader', labels: { a: 'own', c: 'own' }, annotations } }), wanted), {
    ...wanted,
    metadata: { name: 'reader', labels: { a: 'own', b: 'default', c: 'own' }, annotations },
  })
  t.match(extendedRole(aRole({ metadata: { name: 'reader', labels } }), wanted)?.metadata, { annotations })
  t.same(extendedRole(aRole({ rules: undefined }), aRole()), aRole())
  t.equal(extendedRole(aRole(), aRole({ rules: undefined })), undefined)
  const aggregationRule = { clusterRoleSelectors: [{ matchLabels: { a: 'b' } }] }
  t.same(extendedRole(aRole(), aRole({ aggregationRule })), aRole({ aggregationRule }))
  const own = { clusterRoleSelectors: [] }
  t.equal(extendedRole(aRole({ aggregationRule: own }), aRole({ aggregationRule })), undefined, 'it has one')
  t.equal(extendedRole(aRole({ aggregationRule: own }), aRole()), undefined, 'none is wanted')
  t.notOk('aggregationRule' in (extendedRole(aRole({ rules: [] }), aRole()) ?? {}))
})

test('a binding gets the subjects and labels that it lacks, unless it is to another role or left alone', async (t) => {
  t.equal(extendedBinding(aBinding(), aBinding()), undefined)
  t.same(extendedBinding(aBinding({ subjects: undefined }), aBinding()), aBinding())
  t.equal(extendedBinding(aBinding(), aBinding({ subjects: undefined })), undefined)
  const account = { kind: 'ServiceAccount', name: 'eve', namespace: 'a' }
  const wanted = aBinding({ subjects: [account] })
  t.same(extendedBinding(aBinding({ subjects: [{ ...account, namespace: 'b' }] }), wanted)?.subjects?.length, 2)
  const labels = { a: 'b' }
  const labelled = aBinding({ metadata: { name: 'readers', labels } })
  t.match(extendedBinding(aBinding(), labelled), { metadata: { labels }, subjects: [eve] })
  const roleRef = { kind: 'ClusterRole', name: 'other' }
  t.equal(extendedBinding(aBinding({ roleRef, subjects: [] }), aBinding()), undefined)
  const annotations = { 'rbac.authorization.kubernetes.io/autoupdate': 'false' }
  t.equal(
    extendedBinding(aBinding({ metadata: { name: 'readers', annotations }, subjects: [] }), aBinding()),
    undefined,
  )
})

test('an error of the store at the start is passed on', async (t) => {
  const store: Store = { ...memoryStore({ clock }), create: () => Promise.reject(new Error('the disk is full')) }
  await t.rejects(ensureDefaultRoles({ store, clock }), /the disk is full/)
})

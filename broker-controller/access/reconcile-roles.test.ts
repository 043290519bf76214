import { test } from 'tap'
import { systemClock as clock } from '../../daemon/clock.ts'
import { memoryStore } from '../store/memory-store.ts'
import { create } from '../testing/admitting.ts'
import { defaultClusterRoleBindings, defaultClusterRoles } from './default-roles.ts'
import { ensureDefaultRoles } from './reconcile-roles.ts'

const at = (name: string) => ({ namespace: '', name })

test('the default roles and bindings are ones that the API accepts', async (t) => {
  for (const role of defaultClusterRoles) t.doesNotThrow(() => create('clusterroles', role))
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

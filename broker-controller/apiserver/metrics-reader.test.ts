import { type Test, test } from 'tap'
import { type Identity, nodeIdentity } from '../../api/identity.ts'
import { systemClock } from '../../daemon/clock.ts'
import { ensureDefaultRoles } from '../default-roles/reconcile-roles.ts'
import { anApi } from '../testing/api-in-memory.ts'

const prometheus: Identity = {
  user: 'system:serviceaccount:default:prometheus',
  groups: ['system:serviceaccounts', 'system:serviceaccounts:default', 'system:authenticated'],
}

async function apiWithReader(t: Test) {
  const api = await anApi(t)
  await ensureDefaultRoles({ store: api.store, clock: systemClock })
  const binding = {
    apiVersion: 'rbac.authorization.k8s.io/v1',
    kind: 'ClusterRoleBinding',
    metadata: { name: 'prometheus' },
    roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name: 'bramble:metrics-reader' },
    subjects: [{ kind: 'ServiceAccount', name: 'prometheus', namespace: 'default' }],
  }
  t.match(await api.ask('POST', '/apis/rbac.authorization.k8s.io/v1/clusterrolebindings', { body: binding }), {
    code: 201,
  })
  return (path: string, as = prometheus, method = 'GET') => api.ask(method, path, { as })
}

test('a reader of metrics scrapes the controller, and finds the nodes', async (t) => {
  const get = await apiWithReader(t)
  for (const path of ['/metrics', '/api/v1/nodes']) t.match(await get(path), { code: 200 }, path)
})

test('a reader of metrics reads those of nodes through the proxy, and nothing else there', async (t) => {
  const get = await apiWithReader(t)
  const proxy = '/api/v1/nodes/pi-1/proxy'
  for (const path of ['/metrics', '/metrics/cadvisor', '/metrics/resource', '/metrics/probes', '/stats/summary']) {
    t.match(await get(`${proxy}${path}`), { code: 404, body: { message: 'nodes "pi-1" not found' } }, path)
  }
  for (const path of ['/pods', '/logs/', '/configz', '/metrics/../pods', '']) {
    t.match(await get(`${proxy}${path}`), { code: 403 }, path)
  }
  t.match(await get('/api/v1/nodes/pi-1:9100/proxy/metrics'), { code: 403 }, 'another server of the machine')
  t.match(await get(`${proxy}/metrics`, prometheus, 'POST'), { code: 403 })
})

test('the refusal names the right to the whole node', async (t) => {
  const get = await apiWithReader(t)
  const stranger = { ...prometheus, user: 'eve' }
  t.match(await get('/api/v1/nodes/pi-1/proxy/metrics', stranger), {
    code: 403,
    body: { message: /User "eve" cannot get resource "nodes\/proxy" in API group "" at the cluster scope/ },
  })
})

test('a reader of metrics sees no pods and no Secrets', async (t) => {
  const get = await apiWithReader(t)
  for (const path of ['/api/v1/pods', '/api/v1/secrets', '/api/v1/namespaces/default/secrets']) {
    t.match(await get(path), { code: 403 }, path)
  }
})

test('a node does not read metrics of nodes through the proxy', async (t) => {
  const get = await apiWithReader(t)
  t.match(await get('/api/v1/nodes/pi-1/proxy/metrics', nodeIdentity('pi-1')), { code: 403 })
})

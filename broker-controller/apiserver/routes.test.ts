import { test } from 'tap'
import { builtInKinds } from '../assembly/control-plane.ts'
import { routeOf } from './routes.ts'

const none = new URLSearchParams()
const routed = (method: string, path: string, query = none) => {
  const route = routeOf(method, path, query, builtInKinds)
  if (route.kind !== 'resource') return route
  const { resource, verb, namespace, name, subresource } = route
  return [verb, resource.name, namespace, name, subresource]
}

test('a path and a method give the resource and the verb', async (t) => {
  t.same(routed('GET', '/api/v1/nodes'), ['list', 'nodes', '', '', ''])
  t.same(routed('HEAD', '/api/v1/nodes/pi-01'), ['get', 'nodes', '', 'pi-01', ''])
  t.same(routed('GET', '/api/v1/pods'), ['list', 'pods', '', '', ''], 'of all namespaces')
  t.same(routed('POST', '/api/v1/namespaces/default/pods'), ['create', 'pods', 'default', '', ''])
  t.same(routed('DELETE', '/api/v1/namespaces/default/pods'), ['deletecollection', 'pods', 'default', '', ''])
  t.same(routed('PUT', '/api/v1/namespaces/default/pods/web/status'), ['update', 'pods', 'default', 'web', 'status'])
  t.same(routed('POST', '/api/v1/namespaces/default/pods/web/binding'), ['create', 'pods', 'default', 'web', 'binding'])
  const leases = '/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases'
  t.same(routed('PATCH', `${leases}/pi-01`), ['patch', 'leases', 'kube-node-lease', 'pi-01', ''])
})

test('a namespace is a resource, and contains others', async (t) => {
  t.same(routed('GET', '/api/v1/namespaces'), ['list', 'namespaces', '', '', ''])
  t.same(routed('GET', '/api/v1/namespaces/pods'), ['get', 'namespaces', '', 'pods', ''], 'whatever it is called')
  t.same(routed('PUT', '/api/v1/namespaces/team/status'), ['update', 'namespaces', '', 'team', 'status'])
})

test('watch=true makes a list a watch', async (t) => {
  for (const query of ['watch=true', 'watch=1', 'watch']) {
    t.same(routed('GET', '/api/v1/nodes', new URLSearchParams(query)), ['watch', 'nodes', '', '', ''], query)
  }
  t.same(routed('GET', '/api/v1/nodes', new URLSearchParams('watch=false')), ['list', 'nodes', '', '', ''])
})

test('a path that ends with a slash is the path without it', async (t) => {
  t.same(routed('GET', '/version/'), { kind: 'path', verb: 'get', path: '/version' })
  t.same(routed('GET', '/'), { kind: 'path', verb: 'get', path: '/' })
  t.same(routed('GET', '/api/v1/nodes/'), ['list', 'nodes', '', '', ''])
})

test('names may hold any character, encoded', async (t) => {
  const csr = '/apis/certificates.k8s.io/v1/certificatesigningrequests'
  t.match(routed('GET', `${csr}/system%3Anode%2Fa`), { 3: 'system:node/a' })
  t.match(routed('GET', `${csr}/100%`), { 3: '100%' }, 'an invalid encoding is taken as it is')
})

test('a URL of no resource is a plain path', async (t) => {
  for (const path of [
    '/version',
    '/api/v1',
    '/api/v1/deployments',
    '/apis/apps/v2/namespaces/default/deployments',
    '/api/v1/nodes/a/b/c',
    '/api/v1/nodes/a/log',
    '/api/v1/pods/web',
    '/api/v1/namespaces/default/nodes',
  ]) {
    t.match(routed('GET', path), { kind: 'path', verb: 'get', path })
  }
})

test('a path of no API group is a plain path, whatever follows', async (t) => {
  for (const path of [
    '/api',
    '/apis',
    '/apix/v1/nodes',
    '/apis/v1/nodes',
    '/x/policy/v1/poddisruptionbudgets',
    '/v1/nodes',
    '/pods',
    '/api/v1/namespace/default/pods',
  ]) {
    t.match(routed('GET', path), { kind: 'path', path })
  }
  t.match(routed('GET', '/api/v1/namespaces/default/pods/web/status/more'), { kind: 'path' })
  t.match(routed('GET', '/api/v1/namespaces/default/status/web'), { kind: 'path' })
})

test('HEAD is authorized as GET, other methods of a plain path as themselves', async (t) => {
  t.match(routed('HEAD', '/version'), { kind: 'path', verb: 'get' })
  t.match(routed('POST', '/version'), { kind: 'path', verb: 'post' })
})

test('usage, reviews, sessions and releases have paths of their own, and one method each', async (t) => {
  const usage = '/apis/metrics.k8s.io/v1beta1/namespaces/default/pods/web'
  t.match(routed('GET', usage), { kind: 'usage', verb: 'get', resource: 'pods', namespace: 'default', name: 'web' })
  t.same(routed('DELETE', usage), { kind: 'not-allowed', path: usage })
  const review = '/apis/authentication.k8s.io/v1/tokenreviews'
  t.match(routed('POST', review), { kind: 'review', verb: 'create', name: 'tokenReview', namespace: '' })
  t.same(routed('GET', review), { kind: 'not-allowed', path: review })
  const session = '/bramble/v1/sessions/abc'
  t.same(routed('GET', session), { kind: 'session', path: session, id: 'abc' })
  t.same(routed('POST', session), { kind: 'not-allowed', path: session })
  const digest = 'a'.repeat(64)
  const release = `/bramble/v1/releases/${digest}/release.json`
  t.match(routed('GET', release), { kind: 'release', wanted: { digest, file: 'release.json' } })
  t.same(routed('PUT', release), { kind: 'not-allowed', path: release })
})

test('a log is read only; a connection begins with GET or POST', async (t) => {
  const web = '/api/v1/namespaces/default/pods/web'
  t.same(routed('GET', `${web}/log`), ['get', 'pods', 'default', 'web', 'log'])
  t.same(routed('GET', `${web}/exec`), ['get', 'pods', 'default', 'web', 'exec'], 'WebSocket')
  t.same(routed('POST', `${web}/exec`), ['create', 'pods', 'default', 'web', 'exec'], 'SPDY')
  for (const [method, part] of [
    ['POST', 'log'],
    ['DELETE', 'log'],
    ['PUT', 'exec'],
    ['DELETE', 'exec'],
  ] as const) {
    t.match(routed(method, `${web}/${part}`), { kind: 'not-allowed' }, `${method} ${part}`)
  }
})

test('a proxy takes OPTIONS, which has no verb', async (t) => {
  const web = '/api/v1/namespaces/default/pods/web'
  t.same(routed('OPTIONS', `${web}/proxy/a`), ['', 'pods', 'default', 'web', 'proxy'])
  t.same(routed('OPTIONS', '/api/v1/nodes/pi-01/proxy'), ['', 'nodes', '', 'pi-01', 'proxy'])
  for (const path of [web, `${web}/exec`, `${web}/log`, `${web}/status`, `${web}/binding`, '/api/v1/pods']) {
    t.match(routed('OPTIONS', path), { kind: 'not-allowed' }, path)
  }
  t.match(routed('TRACE', `${web}/proxy`), { kind: 'not-allowed' })
})

test('a status is read, replaced and patched', async (t) => {
  const status = '/api/v1/nodes/pi-01/status'
  const verb = (method: string) => [routed(method, status)].flat()[0]
  t.same(['GET', 'PUT', 'PATCH'].map(verb), ['get', 'update', 'patch'])
  t.match(routed('POST', status), { kind: 'not-allowed' })
})

test('objects of all namespaces are listed and watched, not changed', async (t) => {
  t.match(routed('GET', '/api/v1/pods', new URLSearchParams('watch=1')), ['watch', 'pods', ''])
  t.match(routed('DELETE', '/api/v1/pods'), { kind: 'not-allowed' })
  t.match(routed('DELETE', '/api/v1/namespaces'), { kind: 'not-allowed' }, 'namespaces have no deletecollection')
})

test('verbs that a resource does not support are rejected', async (t) => {
  for (const [method, path] of [
    ['POST', '/api/v1/pods'],
    ['DELETE', '/api/v1/pods'],
    ['PUT', '/api/v1/nodes'],
    ['POST', '/api/v1/nodes/pi-01'],
    ['GET', '/api/v1/namespaces/default/pods/web/binding'],
    ['DELETE', '/api/v1/nodes/pi-01/status'],
    ['OPTIONS', '/api/v1/nodes'],
  ] as const) {
    t.match(routed(method, path), { kind: 'not-allowed' }, `${method} ${path}`)
  }
})

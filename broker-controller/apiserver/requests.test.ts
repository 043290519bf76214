import { test } from 'tap'
import { anApi, patchTypes } from '../testing/api-in-memory.ts'
import { configMapsPath, sentMap } from '../testing/sent-objects.ts'

test('an object is created, read, listed and deleted', async (t) => {
  const { ask } = await anApi(t)
  const created = await ask('POST', configMapsPath, { body: sentMap({ data: { a: '1' } }) })
  t.match(created, { code: 201, body: { kind: 'ConfigMap', metadata: { namespace: 'default', uid: /./ } } })
  t.match(await ask('GET', `${configMapsPath}/settings`), { code: 200, body: { data: { a: '1' } } })
  t.match(await ask('GET', configMapsPath), {
    body: { kind: 'ConfigMapList', apiVersion: 'v1', metadata: { resourceVersion: /^\d+$/ }, items: [{}] },
  })
  const gone = await ask('DELETE', `${configMapsPath}/settings`, { body: { kind: 'DeleteOptions', apiVersion: 'v1' } })
  t.match(gone, { code: 200, body: { status: 'Success', details: { name: 'settings', kind: 'configmaps', uid: /./ } } })
  t.match(await ask('GET', `${configMapsPath}/settings`), {
    code: 404,
    body: { kind: 'Status', reason: 'NotFound', message: 'configmaps "settings" not found' },
  })
})

test('a dry run gives the same answer and stores nothing', async (t) => {
  const { ask, store } = await anApi(t)
  t.match(await ask('POST', `${configMapsPath}?dryRun=All`, { body: sentMap() }), {
    code: 201,
    body: { kind: 'ConfigMap' },
  })
  t.match(await ask('GET', configMapsPath), { body: { items: [] } })
  await ask('POST', configMapsPath, { body: sentMap() })
  t.match(await ask('POST', `${configMapsPath}?dryRun=All`, { body: sentMap() }), {
    code: 409,
    body: { reason: 'AlreadyExists' },
  })
  const version = await store.version()
  const path = `${configMapsPath}/settings?dryRun=All`
  const patch = { type: patchTypes.merge, body: { data: { a: '1' } } }
  t.match(await ask('PATCH', path, patch), { body: { data: { a: '1' } } })
  t.match(await ask('DELETE', path), { code: 200 })
  const deletion = { kind: 'DeleteOptions', apiVersion: 'v1', dryRun: ['All'] }
  t.match(await ask('DELETE', `${configMapsPath}/settings`, { body: deletion }), { code: 200 }, 'as kubectl asks')
  t.match(await ask('DELETE', configMapsPath, { body: deletion }), { body: { items: [{}] } })
  t.match(await ask('DELETE', configMapsPath, { body: { ...deletion, dryRun: ['Some'] } }), { code: 400 })
  t.equal(await store.version(), version)
  t.match(await ask('POST', `${configMapsPath}?dryRun=maybe`, { body: sentMap() }), { code: 400 })
})

test('a user without permission gets 403, also an anonymous one; an invalid token gets 401', async (t) => {
  const { ask } = await anApi(t)
  const as = { user: 'eve', groups: [] }
  t.match(await ask('GET', '/api/v1/nodes', { as }), {
    code: 403,
    body: { details: { kind: 'nodes' }, message: /^nodes is forbidden: User "eve" cannot list resource "nodes"/ },
  })
  t.match(await ask('GET', '/api/v1/nodes', { as: 'anonymous' }), { code: 403, body: { message: /system:anonymous/ } })
  const authorization = 'Bearer abcdef.0123456789abcdef'
  t.match(await ask('GET', '/api/v1/nodes', { as: 'anonymous', headers: { authorization } }), { code: 401 })
  t.match(await ask('GET', '/version', { as, headers: { 'impersonate-user': 'root' } }), { code: 403 })
})

test('only a few paths are served beside the resources', async (t) => {
  const { ask } = await anApi(t)
  t.match(await ask('GET', '/version'), { body: { major: '1', minor: '32', gitVersion: 'v1.32.4-bramble.0.1.0' } })
  t.match(await ask('GET', '/healthz'), { code: 200, body: { text: 'ok' } })
  t.match(await ask('GET', '/livez?verbose'), { body: { text: '[+]ping ok\nlivez check passed\n' } })
  t.match(await ask('GET', '/metrics'), { body: { text: 'up 1\n' } })
  const proto = 'application/com.github.proto-openapi.spec.v2@v1.0+protobuf'
  t.match(await ask('GET', '/openapi/v2', { accept: proto }), { code: 200, body: { text: '' } })
  t.match(await ask('GET', '/openapi/v2', { accept: 'application/json' }), { body: { swagger: '2.0' } })
  t.match(await ask('GET', '/openapi/v3'), { code: 200, body: { paths: { 'api/v1': {} } } })
  t.match(await ask('GET', '/openapi/v3/apis/apps/v9'), {
    code: 404,
    body: { reason: 'NotFound', message: 'the server could not find the requested resource' },
  })
  t.match(await ask('GET', '/api/v1/namespaces/default/pods/web/proxy/index.html'), {
    code: 404,
    body: { message: 'pods "web" not found' },
  })
  t.match(await ask('POST', '/version'), { code: 405, body: { reason: 'MethodNotAllowed' } })
  t.match(await ask('GET', '/'), { body: { paths: /./ } })
})

test('an answer is YAML for a client that accepts that first, its errors too; a watch is not', async (t) => {
  const { ask } = await anApi(t)
  const form = async (path: string, accept: string) => {
    const { encoding, code } = await ask('GET', path, { accept })
    return [code, encoding]
  }
  t.same(await form('/api/v1/nodes', 'application/yaml'), [200, 'yaml'])
  t.same(await form('/version', 'application/yaml'), [200, 'yaml'])
  t.same(await form('/api/v1/nodes', 'application/json, application/yaml'), [200, 'json'])
  t.same(await form('/api/v1/nodes', '*/*'), [200, 'json'])
  t.same(await form('/api/v1/nodes/pi-1', 'application/yaml'), [404, 'yaml'])
  t.same(await form('/api/v1/nodes', 'text/html'), [406, 'json'])
  t.same(await form('/api/v1/nodes?watch=true', 'application/yaml'), [406, 'yaml'])
})

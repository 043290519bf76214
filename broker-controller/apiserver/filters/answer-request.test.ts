import { test } from 'tap'
import { ApiError } from '../../../api/api-error.ts'
import { type Identity, nodeIdentity } from '../../../api/identity.ts'
import { encodeToken } from '../../../api/node/bootstrap-token.ts'
import { quietLog } from '../../../daemon/testing/quiet-log.ts'
import { builtInKinds } from '../../assembly/control-plane.ts'
import type { StoredObject } from '../../store/store.ts'
import { anApi, patchTypes } from '../../testing/api-in-memory.ts'
import { aDefinition } from '../../testing/custom-api.ts'
import { configMapsPath, sentMap } from '../../testing/sent-objects.ts'
import { type ServiceAccountTokens, tokenIssuer } from '../authentication/tokens/service-account-tokens.ts'
import type { Replica } from '../forwarding/replica.ts'
import { liveKinds } from '../kinds/custom/live-kinds.ts'
import type { RequestNeeds } from './api-request.ts'

type Turns = NonNullable<RequestNeeds['flowControl']>

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
  t.match(await ask('DELETE', configMapsPath, { body: { ...deletion, dryRun: ['Some'] } }), { code: 422 })
  t.equal(await store.version(), version)
  t.match(await ask('POST', `${configMapsPath}?dryRun=maybe`, { body: sentMap() }), { code: 422 })
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

test('a standby accepts a token that was created with another controller a moment ago', async (t) => {
  let asked = 0
  const latest = async () => {
    if (asked++ === 0) {
      const token = { id: 'abcdef', secret: '0123456789abcdef', usages: ['authentication'] as const, groups: [] }
      await store.create('secrets', encodeToken(token))
    }
    return true
  }
  const replica: Replica = {
    isLeading: () => false,
    leader: () => undefined,
    freshness: { latest, until: async () => true },
    isController: async () => false,
    credentials: () => ({ ca: '', certificate: '', key: '' }),
  }
  const { ask, store } = await anApi(t, { replica })
  const asBearer = (token: string) =>
    ask('GET', '/api', { as: 'anonymous', headers: { authorization: `Bearer ${token}` } })
  t.match(await asBearer('abcdef.0123456789abcdef'), { code: 200 })
  t.equal(asked, 1)
  t.match(await asBearer('no-token'), { code: 401 })
  t.equal(asked, 1, 'the store is not asked for what is not a token')
})

test('a standby serves a kind that was defined with another controller a moment ago', async (t) => {
  const kinds = liveKinds(builtInKinds)
  const { metadata, ...content } = aDefinition({ type: 'object' })
  const stamps = { uid: '1', resourceVersion: '1', creationTimestamp: '', generation: 1 }
  const status = { conditions: [{ type: 'Established', status: 'True' }] }
  const definition = {
    ...content,
    metadata: { ...metadata, ...stamps },
    status,
  } as StoredObject<'customresourcedefinitions'>
  const steps: string[] = []
  const latest = async () => {
    steps.push('store')
    kinds.change(metadata.name, definition)
    return true
  }
  const flowControl: Turns = {
    async admitInTurn(_, streamWeight) {
      steps.push(`weight ${streamWeight}`)
      return { readBody: () => undefined, answered: () => undefined, release: () => steps.push('released') }
    },
  }
  const replica: Replica = {
    isLeading: () => false,
    leader: () => undefined,
    freshness: { latest, until: async () => true },
    isController: async () => false,
    credentials: () => ({ ca: '', certificate: '', key: '' }),
  }
  const { ask, watch } = await anApi(t, { kinds, replica, flowControl })
  t.match(await ask('GET', '/apis/example.com/v1/shops'), { code: 200, body: { kind: 'ShopList' } })
  t.equal(steps.shift(), 'weight 0', 'a request over its limit does not ask the store')
  steps.length = 0
  kinds.change(metadata.name, undefined)
  const events = watch('/apis/example.com/v1/shops?watch=1&timeoutSeconds=1', AbortSignal.abort())
  for await (const _ of events);
  t.same(steps.slice(0, 4), ['weight 0', 'store', 'released', 'weight 1'], 'a watch takes its place among streams')
})

test('only a few paths are served beside the resources', async (t) => {
  const { ask } = await anApi(t)
  t.match(await ask('GET', '/version'), { body: { major: '1', minor: '32', gitVersion: 'v1.32.4-bramble.0.1.0' } })
  t.match(await ask('GET', '/healthz'), { code: 200, body: { text: 'ok' } })
  t.match(await ask('GET', '/livez?verbose'), { body: { text: '[+]ping ok\n[+]log ok\nlivez check passed\n' } })
  t.match(await ask('GET', '/metrics'), { body: { text: 'up 1\n' } })
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

const eve: Identity = { user: 'eve', groups: [] }

test('a refusal names what was asked for: the resource with its group and scope, or the path', async (t) => {
  const { ask } = await anApi(t)
  const refusal = async (method: string, path: string) => (await ask(method, path, { as: eve })).body['message']
  const cases = [
    ['GET', '/api/v1/nodes/pi-1', 'cannot get resource "nodes" in API group "" at the cluster scope'],
    ['GET', '/api/v1/namespaces', 'cannot list resource "namespaces" in API group "" at the cluster scope'],
    ['GET', '/api/v1/namespaces/team', 'cannot get resource "namespaces" in API group "" in the namespace "team"'],
    ['GET', `${configMapsPath}/a`, 'cannot get resource "configmaps" in API group "" in the namespace "default"'],
    [
      'GET',
      '/apis/metrics.k8s.io/v1beta1/nodes',
      'cannot list resource "nodes" in API group "metrics.k8s.io" at the cluster scope',
    ],
    [
      'POST',
      '/apis/authorization.k8s.io/v1/namespaces/team/localsubjectaccessreviews',
      'cannot create resource "localsubjectaccessreviews" in API group "authorization.k8s.io" in the namespace "team"',
    ],
    ['GET', '/metrics', 'User "eve" cannot get path "/metrics"'],
    ['POST', '/version', 'User "eve" cannot post path "/version"'],
  ] as const
  for (const [method, path, message] of cases) {
    t.ok(String(await refusal(method, path)).endsWith(message), `${method} ${path}: ${message}`)
  }
})

test('a list of one name needs only the rights for this object; a create does not get them by a selector', async (t) => {
  const { ask } = await anApi(t)
  const rbac = '/apis/rbac.authorization.k8s.io/v1'
  const verbs = ['list', 'watch', 'deletecollection', 'create', 'get']
  const rules = [{ apiGroups: [''], resources: ['configmaps'], resourceNames: ['settings'], verbs }]
  await ask('POST', `${rbac}/clusterroles`, { body: { metadata: { name: 'one' }, rules } })
  const roleRef = { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name: 'one' }
  const subjects = [{ kind: 'User', name: 'eve' }]
  const binding = { metadata: { name: 'eve' }, roleRef, subjects }
  t.match(await ask('POST', `${rbac}/clusterrolebindings`, { body: binding }), { code: 201 })
  const code = async (method: string, path: string) => (await ask(method, path, { as: eve, body: {} })).code
  const named = (name: string) => `${configMapsPath}?fieldSelector=metadata.name%3D${name}`
  t.equal(await code('GET', named('settings')), 200)
  t.equal(await code('DELETE', named('settings')), 200)
  await t.rejects(code('GET', `${named('settings')}&watch=1`), /a stream/, 'a watch')
  for (const method of ['GET', 'DELETE']) {
    t.equal(await code(method, named('other')), 403)
    t.equal(await code(method, configMapsPath), 403)
  }
  t.equal(await code('POST', named('settings')), 403)
  t.equal(await code('GET', `${configMapsPath}/settings?fieldSelector=metadata.name%3Dother`), 404, 'the path counts')
  t.equal(await code('GET', `${configMapsPath}/other?fieldSelector=metadata.name%3Dsettings`), 403)
})

test('each request takes its share of its flow; watches and streams count as such', async (t) => {
  const admitted: unknown[] = []
  let bodyBytes = 0
  const flowControl: Turns = {
    async admitInTurn({ level, key }, streamWeight) {
      admitted.push([level, key, streamWeight])
      return { readBody: (bytes) => (bodyBytes += bytes), answered: () => undefined, release: () => undefined }
    },
  }
  const { ask } = await anApi(t, { flowControl })
  const flow = async (method: string, path: string, more: Parameters<typeof ask>[2] = {}) => {
    admitted.length = 0
    await ask(method, path, more).catch(() => undefined)
    return admitted
  }
  t.same(await flow('GET', '/api/v1/nodes'), [['exempt', 'admin', 0]])
  t.same(await flow('GET', '/version', { as: eve }), [['global-default', 'eve', 0]])
  t.same(await flow('GET', '/api/v1/nodes?watch=1'), [['exempt', 'admin', 1]])
  const web = '/api/v1/namespaces/default/pods/web'
  t.same(await flow('GET', `${web}/log`), [['exempt', 'admin', 2]])
  t.same(await flow('POST', `${web}/exec?command=ls`), [['exempt', 'admin', 2]])
  t.same(await flow('POST', `${web}/binding`), [['exempt', 'admin', 0]])
  t.same(await flow('GET', web), [['exempt', 'admin', 0]])
  const authorization = 'Bearer abcdef.0123456789abcdef'
  const stranger = await flow('GET', '/version', { as: 'anonymous', headers: { authorization } })
  t.same(stranger, [['catch-all', 'unknown', 0]], 'invalid credentials are a request of a stranger')
  t.same(await flow('GET', '/readyz?verbose', { as: 'anonymous' }), [['exempt', 'probes', 0]])
  t.same(await flow('POST', '/readyz', { as: 'anonymous' }), [['catch-all', 'unknown', 0]])
  bodyBytes = 0
  t.match(await ask('POST', configMapsPath, { body: '{"metadata":{"name":"a"}}' }), { code: 201 })
  t.equal(bodyBytes, 25)
})

test('who impersonates pays as itself, also where that is refused', async (t) => {
  const admitted: string[] = []
  const flowControl: Turns = {
    async admitInTurn({ level, key }) {
      admitted.push(`${level}/${key}`)
      return { readBody: () => undefined, answered: () => undefined, release: () => undefined }
    },
  }
  const { ask } = await anApi(t, { flowControl })
  const robot: Identity = { user: 'system:serviceaccount:shop:robot', groups: [] }
  for (const name of ['a', 'b']) {
    const headers = { 'impersonate-user': `system:serviceaccount:shop:${name}` }
    t.match(await ask('GET', '/version', { as: robot, headers }), { code: 403 })
    await ask('GET', '/version', { headers })
  }
  const [refused, allowed] = ['workload-low/system:serviceaccount:shop:robot', 'exempt/admin']
  t.same(admitted, [refused, allowed, refused, allowed])
})

test('a request over its limit is answered with 429', async (t) => {
  const flowControl: Turns = {
    async admitInTurn() {
      throw new ApiError('TooManyRequests', 'wait', { retryAfterSeconds: 3 })
    },
  }
  const { ask } = await anApi(t, { flowControl })
  t.match(await ask('GET', '/version'), { code: 429, retryAfterSeconds: 3 })
})

test('a service account is known by its token, and a TokenReview names it for the audience that is asked for', async (t) => {
  const robot: Identity = { user: 'system:serviceaccount:default:robot', groups: ['system:serviceaccounts'] }
  const asked: (readonly string[])[] = []
  const tokens: ServiceAccountTokens = {
    publicKeys: () => [],
    issue: () => '',
    async identify(token, audiences) {
      asked.push(audiences)
      return token === 'a.b.c' ? { identity: robot, audiences: ['vault'] } : undefined
    },
  }
  const { ask, store } = await anApi(t, { tokens })
  const as = 'anonymous'
  const authorization = 'Bearer a.b.c'
  const self = await ask('POST', '/apis/authentication.k8s.io/v1/selfsubjectreviews', {
    as,
    headers: { authorization },
    body: {},
  })
  t.match(self, { code: 403, body: { message: /User "system:serviceaccount:default:robot"/ } })
  t.same(asked, [[]], 'for this API')
  t.match(await ask('GET', '/api/v1/nodes', { as, headers: { authorization: 'Bearer x.y.z' } }), { code: 401 })

  const review = (spec: object) => ask('POST', '/apis/authentication.k8s.io/v1/tokenreviews', { body: { spec } })
  asked.length = 0
  t.match(await review({ token: 'a.b.c', audiences: ['vault'] }), {
    code: 201,
    body: { status: { authenticated: true, user: { username: robot.user }, audiences: ['vault'] } },
  })
  t.same(asked, [['vault']])

  const usages = ['authentication'] as const
  await store.create('secrets', encodeToken({ id: 'abcdef', secret: '0123456789abcdef', usages, groups: [] }))
  const token = 'abcdef.0123456789abcdef'
  const joining = { authenticated: true, audiences: [tokenIssuer] }
  t.match(await review({ token }), { body: { status: joining } })
  t.match(await review({ token, audiences: ['vault', tokenIssuer] }), { body: { status: joining } })
  const { body } = await review({ token, audiences: ['vault'] })
  t.match(body, { status: { error: /is invalid for the target audiences \["vault"\]/ } })
  t.match(await review({ token: 'fedcba.0123456789abcdef' }), { body: { status: { error: /./ } } })
})

test('a revoked certificate is answered with the reason', async (t) => {
  const because = (user: string) => (user === 'eve' ? 'the certificate of eve is revoked' : undefined)
  const { ask } = await anApi(t, { revocations: { because } })
  t.match(await ask('GET', '/version', { as: eve }), {
    code: 401,
    body: { message: 'the certificate of eve is revoked' },
  })
  t.match(await ask('GET', '/version'), { code: 200 })
})

test('for a while after its end the certificate of a node serves to ask for a new one, if so configured', async (t) => {
  const node = nodeIdentity('pi-1')
  for (const [lapsedWindowMs, code] of [
    [undefined, 401],
    [0, 401],
    [60_000, 403],
  ] as const) {
    const { ask, clock } = await anApi(t, lapsedWindowMs === undefined ? {} : { lapsedWindowMs })
    const validUntilMs = clock.wallMs() - 1000
    t.match(await ask('GET', '/api/v1/nodes', { as: node, validUntilMs }), { code }, `${lapsedWindowMs} ms`)
  }
})

test('an error of the program is answered with 500 and logged once, with the request and its user', async (t) => {
  const metrics = () => Promise.reject(new Error('the disk is full'))
  const log = quietLog(t, 'Request failed')
  const { ask } = await anApi(t, { metrics, log })
  t.match(await ask('GET', '/metrics'), { code: 500, body: { reason: 'InternalError' } })
  t.match(log.lines, [
    { message: 'Request failed', facts: { method: 'GET', path: '/metrics', user: 'admin', error: /the disk is full/ } },
  ])
  const limitedLines: unknown[] = []
  const note = (key: string, message: string) => void limitedLines.push([key, message])
  const limited = { error: note, warn: note, info: note, debug: note, close: () => undefined }
  const other = await anApi(t, { metrics, limited })
  t.match(await other.ask('GET', '/metrics'), { code: 500 })
  t.same(limitedLines, [['admin', 'Request failed']], 'a client cannot fill the log')
})

test('what is not an API object is answered in its own form, whatever the client accepts', async (t) => {
  const { ask } = await anApi(t)
  const accept = 'application/yaml'
  t.match(await ask('GET', '/metrics', { accept }), { body: { text: 'up 1\n' }, encoding: 'json' })
  const aggregated = 'application/yaml,application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList'
  t.match(await ask('GET', '/api', { accept: aggregated }), {
    body: { kind: 'APIGroupDiscoveryList' },
    encoding: 'json',
  })
})

test('reviews, usage and sessions are answered beside the objects', async (t) => {
  const { ask } = await anApi(t)
  t.match(await ask('POST', '/apis/authentication.k8s.io/v1/selfsubjectreviews', { body: {} }), {
    code: 201,
    body: { status: { userInfo: { username: 'admin' } } },
  })
  t.match(await ask('GET', '/apis/metrics.k8s.io/v1beta1/nodes'), {
    code: 200,
    body: { kind: 'NodeMetricsList', items: [] },
  })
  const session = '/bramble/v1/sessions/a-session'
  t.match(await ask('GET', session), { code: 403, body: { message: 'sessions are connected by nodes only' } })
  t.match(await ask('POST', session), { code: 405, body: { reason: 'MethodNotAllowed' } })
})

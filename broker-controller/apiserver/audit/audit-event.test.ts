import { test } from 'tap'
import { builtInKinds } from '../../assembly/control-plane.ts'
import type { ResourceRoute, Verb } from '../handlers/strategy.ts'
import { type AuditFacts, auditLine, isAudited, isLeftOut } from './audit-event.ts'

function aRoute(
  resource: 'pods' | 'leases' | 'events' | 'roles' | 'nodes',
  more: Partial<ResourceRoute> = {},
): ResourceRoute {
  const found = builtInKinds.get(resource)
  if (found === undefined) throw new Error(resource)
  return { kind: 'resource', verb: 'create', resource: found, namespace: 'default', name: '', subresource: '', ...more }
}

function facts(more: Partial<AuditFacts> = {}): AuditFacts {
  return {
    id: 'one',
    stage: 'ResponseComplete',
    route: aRoute('pods'),
    sender: { identity: { user: 'ada', groups: ['dev'] }, decision: 'allow' },
    uri: '/api/v1/namespaces/default/pods',
    address: '192.0.2.7',
    userAgent: 'kubectl/v1.32',
    code: 201,
    body: { kind: 'Pod', metadata: { name: 'web-1', uid: 'u', resourceVersion: '7' }, spec: { secret: 'hidden' } },
    receivedMs: Date.UTC(2026, 0, 2, 3, 4, 5, 6) + 0.25,
    tookMs: 1.5,
    ...more,
  }
}

const eventOf = (more: Partial<AuditFacts> = {}) => JSON.parse(auditLine(facts(more)))

test('a line is an Event of audit.k8s.io/v1 without anything of the body', async (t) => {
  const line = auditLine(facts())
  t.ok(line.endsWith('}\n'))
  t.notMatch(line, 'hidden')
  t.same(JSON.parse(line), {
    kind: 'Event',
    apiVersion: 'audit.k8s.io/v1',
    level: 'Metadata',
    auditID: 'one',
    stage: 'ResponseComplete',
    requestURI: '/api/v1/namespaces/default/pods',
    verb: 'create',
    user: { username: 'ada', groups: ['dev'] },
    sourceIPs: ['192.0.2.7'],
    userAgent: 'kubectl/v1.32',
    objectRef: {
      resource: 'pods',
      namespace: 'default',
      name: 'web-1',
      uid: 'u',
      apiVersion: 'v1',
      resourceVersion: '7',
    },
    responseStatus: { metadata: {}, code: 201 },
    requestReceivedTimestamp: '2026-01-02T03:04:05.006250Z',
    stageTimestamp: '2026-01-02T03:04:05.007750Z',
    annotations: { 'authorization.k8s.io/decision': 'allow' },
  })
})

test('the impersonated user is beside the one who acts, and extra values are kept', async (t) => {
  const identity = { user: 'ada', groups: ['dev'], uid: 'a', extra: { key: ['v'] } }
  const { user, impersonatedUser } = eventOf({ sender: { identity, impersonated: { user: 'bob', groups: [] } } })
  t.same(user, { username: 'ada', uid: 'a', groups: ['dev'], extra: { key: ['v'] } })
  t.same(impersonatedUser, { username: 'bob', groups: [] })
})

test('a refusal has its reason and no message', async (t) => {
  const body = { kind: 'Status', status: 'Failure', reason: 'Forbidden', message: 'quotes a value', code: 403 }
  const route = aRoute('roles', { verb: 'update', name: 'r', subresource: 'status' })
  const event = eventOf({ route, body, code: 403, sender: {}, address: undefined, userAgent: undefined })
  t.same(event.responseStatus, { metadata: {}, status: 'Failure', reason: 'Forbidden', code: 403 })
  t.same(event.objectRef, {
    resource: 'roles',
    namespace: 'default',
    name: 'r',
    apiGroup: 'rbac.authorization.k8s.io',
    apiVersion: 'v1',
    subresource: 'status',
  })
  t.same(event.user, {})
  t.same(event.annotations, {})
  t.notOk('sourceIPs' in event || 'userAgent' in event || 'impersonatedUser' in event)
})

test('annotations of admission are kept, and what a client can make long is cut', async (t) => {
  t.same(eventOf({ sender: { annotations: { 'w/k': 'v' } } }).annotations, { 'w/k': 'v' })
  const groups = Array.from({ length: 101 }, (_, at) => `g${at}`)
  const event = eventOf({
    uri: 'x'.repeat(2049),
    userAgent: 'x'.repeat(257),
    sender: { identity: { user: 'a', groups } },
  })
  t.equal(event.requestURI.length, 2048)
  t.equal(event.userAgent.length, 256)
  t.equal(event.user.groups.length, 100)
})

test('what answers with another kind names no object, nor does one with a field of another type', async (t) => {
  t.same(eventOf({ body: { kind: 'TokenRequest', metadata: { name: 'x' } } }).objectRef.name, undefined)
  t.same(eventOf({ body: { kind: 'Pod', metadata: { name: 1, uid: {}, resourceVersion: [] } } }).objectRef, {
    resource: 'pods',
    namespace: 'default',
    apiVersion: 'v1',
  })
  t.same(eventOf({ body: { kind: 'Status', status: 1, reason: {} } }).responseStatus, { metadata: {}, code: 201 })
  t.same(eventOf({ body: undefined }).responseStatus, { metadata: {}, code: 201 })
})

test('writes and connections are audited, reading is not', async (t) => {
  const verbs: readonly Verb[] = ['create', 'update', 'patch', 'delete', 'deletecollection']
  for (const verb of verbs) t.ok(isAudited(aRoute('pods', { verb })), verb)
  for (const verb of ['get', 'list', 'watch'] as const) t.notOk(isAudited(aRoute('pods', { verb })), verb)
  t.ok(isAudited(aRoute('pods', { verb: 'get', name: 'p', subresource: 'exec' })))
  t.notOk(isAudited(aRoute('pods', { verb: 'get', name: 'p', subresource: 'log' })))
})

test('Leases and Events are left out unless the sender was refused', async (t) => {
  for (const kind of ['leases', 'events'] as const) {
    for (const code of [200, 201, 404, 409, 500]) t.ok(isLeftOut(aRoute(kind), code), `${kind} ${code}`)
    for (const code of [401, 403]) t.notOk(isLeftOut(aRoute(kind), code), `${kind} ${code}`)
  }
  for (const kind of ['pods', 'nodes'] as const) t.notOk(isLeftOut(aRoute(kind), 200), kind)
})

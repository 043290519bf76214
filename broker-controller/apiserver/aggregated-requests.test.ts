import { test } from 'tap'
import { fakeClock } from '../../daemon/testing/fake-clock.ts'
import { quietLog } from '../../daemon/testing/quiet-log.ts'
import { builtInKinds } from '../assembly/control-plane.ts'
import { memoryStore } from '../store/memory-store.ts'
import { anApi } from '../testing/api-in-memory.ts'
import { followApiServices } from './aggregator/api-services.ts'
import type { AggregatedRequest, ExtensionProxy } from './aggregator/extension-proxy.ts'
import { isAnsweredHere } from './forwarding/replica.ts'
import { routeOf } from './routes.ts'
import { objectAnswer } from './wire/answers.ts'

const base = '/apis/wardle.example.com/v1'

async function aWardleApi(t: Parameters<typeof quietLog>[0] & { teardown(end: () => Promise<void>): void }) {
  const registered = memoryStore({ clock: fakeClock() })
  await registered.create('apiservices', {
    apiVersion: 'apiregistration.k8s.io/v1',
    kind: 'APIService',
    metadata: { name: 'v1.wardle.example.com' },
    spec: {
      ...{ group: 'wardle.example.com', version: 'v1', groupPriorityMinimum: 2000, versionPriority: 10 },
      service: { namespace: 'wardle', name: 'api', port: 443 },
    },
  })
  const needs = { store: registered, clock: fakeClock(), log: quietLog(t) }
  const { apiServices, loop } = await followApiServices(needs)
  t.teardown(() => loop.run(AbortSignal.abort()))
  const asked: AggregatedRequest[] = []
  const extensionProxy: ExtensionProxy = {
    async answer(request) {
      asked.push(request)
      return objectAnswer({ kind: 'FlunderList' })
    },
  }
  return { ...(await anApi(t, { apiServices, extensionProxy })), apiServices, asked }
}

test('a request for an extension server is authorized here, by what it asks for', async (t) => {
  const { ask, asked, store } = await aWardleApi(t)
  const jane = { user: 'jane', groups: ['system:authenticated'] }
  t.match(await ask('GET', `${base}/namespaces/default/flunders`, { as: jane }), {
    code: 403,
    body: {
      message:
        /User "jane" cannot list resource "flunders" in API group "wardle\.example\.com" in the namespace "default"/,
    },
  })
  t.equal(asked.length, 0)
  await store.create('roles', {
    apiVersion: 'rbac.authorization.k8s.io/v1',
    kind: 'Role',
    metadata: { namespace: 'default', name: 'one' },
    rules: [
      { apiGroups: ['wardle.example.com'], resources: ['flunders'], resourceNames: ['x'], verbs: ['get', 'list'] },
    ],
  })
  await store.create('rolebindings', {
    apiVersion: 'rbac.authorization.k8s.io/v1',
    kind: 'RoleBinding',
    metadata: { namespace: 'default', name: 'one' },
    roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'Role', name: 'one' },
    subjects: [{ kind: 'User', apiGroup: 'rbac.authorization.k8s.io', name: 'jane' }],
  })
  const codeOf = async (path: string) =>
    (await ask('GET', `${base}/namespaces/default/flunders${path}`, { as: jane })).code
  t.equal(await codeOf('/x'), 200)
  t.equal(await codeOf('?fieldSelector=metadata.name%3Dx'), 200)
  t.equal(await codeOf('/x/status'), 403)
  t.equal(await codeOf('/y'), 403)
  t.equal(await codeOf(''), 403)
  t.same(
    asked.map(({ identity }) => identity.user),
    ['jane', 'jane'],
  )
})

test('an extension server gets the user that a client acts as', async (t) => {
  const { ask, asked } = await aWardleApi(t)
  await ask('GET', `${base}/flunders`, {
    headers: { 'impersonate-user': 'joe', 'impersonate-group': 'system:masters' },
  })
  t.match(asked[0]?.identity, { user: 'joe', groups: ['system:masters', 'system:authenticated'] })
})

test('discovery of a version is asked of its server, that of the group is answered here', async (t) => {
  const { ask, asked } = await aWardleApi(t)
  t.match(await ask('GET', base), { code: 200, body: { kind: 'FlunderList' } })
  t.match(await ask('GET', `/openapi/v3${base}`), { code: 200 })
  t.equal(asked.length, 2)
  t.match(await ask('GET', '/apis/wardle.example.com'), { body: { kind: 'APIGroup' } })
  t.match(await ask('GET', '/apis/wardle.example.com/v2'), { code: 404 })
  t.equal(asked.length, 2)
})

test('of several controllers the one that leads asks extension servers', async (t) => {
  const { apiServices } = await aWardleApi(t)
  const route = routeOf('GET', `${base}/flunders`, new URLSearchParams(), builtInKinds, apiServices)
  t.equal(route.kind, 'aggregated')
  t.notOk(isAnsweredHere(route))
  t.ok(isAnsweredHere(routeOf('GET', '/apis/apps/v1', new URLSearchParams(), builtInKinds, apiServices)))
})

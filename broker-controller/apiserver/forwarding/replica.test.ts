import { test } from 'tap'
import { isApiError } from '../../../api/api-error.ts'
import { builtInKinds } from '../../assembly/control-plane.ts'
import { convertedDefinition } from '../../testing/conversion-webhook.ts'
import { aCustomApi } from '../../testing/custom-api.ts'
import type { KindRegistry } from '../handlers/strategy.ts'
import { routeOf } from '../routes.ts'
import { isAnsweredHere, leaderAddress, refuseStale, waitUntilReadable } from './replica.ts'

function routeTo(request: string) {
  const [method = '', url = ''] = request.split(' ')
  const { pathname, searchParams } = new URL(url, 'https://localhost')
  return { route: routeOf(method, pathname, searchParams, builtInKinds), query: searchParams }
}

test('reads and watches of stored objects are answered by every controller', async (t) => {
  const here = [
    'GET /api/v1/pods',
    'GET /api/v1/namespaces/default/pods/a',
    'GET /api/v1/namespaces/default/pods/a/status',
    'GET /apis/apps/v1/namespaces/default/deployments/a/scale',
    'GET /api/v1/pods?watch=true',
    'GET /apis',
    'GET /readyz',
    'GET /metrics',
    'POST /apis/authorization.k8s.io/v1/selfsubjectaccessreviews',
  ]
  for (const request of here) t.equal(isAnsweredHere(routeTo(request).route), true, request)
})

test('everything with state in the leader is passed on to it', async (t) => {
  const there = [
    'POST /api/v1/namespaces/default/pods',
    'PUT /api/v1/namespaces/default/pods/a',
    'PATCH /api/v1/namespaces/default/pods/a/status',
    'DELETE /api/v1/namespaces/default/pods/a',
    'DELETE /api/v1/namespaces/default/pods',
    'POST /api/v1/namespaces/default/pods/a/eviction',
    'POST /api/v1/namespaces/default/pods/a/binding',
    'GET /api/v1/namespaces/default/pods/a/log',
    'GET /api/v1/namespaces/default/pods/a/exec',
    'POST /api/v1/namespaces/default/pods/a/exec',
    'GET /api/v1/namespaces/default/pods/a/portforward',
    'GET /api/v1/nodes/a/proxy/metrics',
    'GET /apis/metrics.k8s.io/v1beta1/nodes',
    'GET /apis/coordination.k8s.io/v1/leases',
    'GET /apis/coordination.k8s.io/v1/leases?watch=1',
    'GET /apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases/a',
  ]
  for (const request of there) t.equal(isAnsweredHere(routeTo(request).route), false, request)
})

test('a kind whose versions a Service converts is read where the nodes are', async (t) => {
  const kindsBy = async (clientConfig: object) => {
    const { define, kinds } = await aCustomApi(t)
    await define(convertedDefinition('v1', { clientConfig }))
    return kinds
  }
  const isHere = (kinds: KindRegistry, path: string) =>
    isAnsweredHere(routeOf('GET', path, new URLSearchParams(), kinds))
  const byService = await kindsBy({ service: { namespace: 'default', name: 'converter' } })
  const byURL = await kindsBy({ url: 'https://example.com/' })
  for (const path of ['/apis/example.com/v1/shops', '/apis/example.com/v2/namespaces/default/shops/a']) {
    t.equal(isHere(byService, path), false, path)
    t.equal(isHere(byURL, path), true, path)
  }
})

test('a read waits for what it may expect', async (t) => {
  const waits: string[] = []
  const freshness = {
    latest: async () => waits.push('latest') > 0,
    until: async (version: number) => waits.push(`until ${version}`) > 0,
  }
  const reads = [
    'GET /api/v1/pods',
    'GET /api/v1/pods?resourceVersion=0',
    'GET /api/v1/pods?resourceVersion=17',
    'GET /api/v1/pods?watch=1&resourceVersion=18',
    'GET /api/v1/pods?limit=1&continue=abc',
    'GET /api/v1/pods?resourceVersion=x',
    'GET /version',
    'POST /apis/authorization.k8s.io/v1/subjectaccessreviews',
  ]
  for (const request of reads) {
    const { route, query } = routeTo(request)
    await waitUntilReadable(route, query, { freshness }, { debug: () => undefined })
  }
  t.same(
    waits,
    ['latest', 'until 17', 'until 18', 'latest', 'latest'],
    'pages and questions about access, too: what was before may be of another controller',
  )
})

test('a client that has seen a version is not led back behind it', async (t) => {
  const freshness = { latest: async () => false, until: async () => false }
  const read = async (request: string) => {
    const { route, query } = routeTo(request)
    return waitUntilReadable(route, query, { freshness }, { debug: () => undefined })
  }
  for (const request of ['GET /api/v1/pods?resourceVersion=17', 'GET /api/v1/pods?watch=1&resourceVersion=17']) {
    const error = await read(request).catch((refused: unknown) => refused)
    t.ok(isApiError(error, 'Timeout') && error.message === 'Too large resource version: 17', String(error))
  }
  await t.resolves(read('GET /api/v1/pods'))
})

test('a controller that is cut off from the store passes nothing on', async (t) => {
  const latest = async () => true
  await t.resolves(refuseStale({ freshness: { latest, until: latest } }))
  const away = async () => {
    throw new Error('away')
  }
  for (const behind of [async () => false, away]) {
    const error = await refuseStale({ freshness: { latest: behind, until: latest } }).catch((one: unknown) => one)
    t.ok(isApiError(error, 'ServiceUnavailable') && error.details?.retryAfterSeconds === 1, String(error))
  }
})

test('a read is answered from memory where the store does not answer', async (t) => {
  const fail = async () => {
    throw new Error('away')
  }
  const { route, query } = routeTo('GET /api/v1/pods')
  await waitUntilReadable(route, query, { freshness: { latest: fail, until: fail } }, { debug: () => undefined })
  t.pass()
})

test('without a leader a client is asked to try again', async (t) => {
  t.equal(leaderAddress({ leader: () => 'https://10.0.0.1:6443' }), 'https://10.0.0.1:6443')
  try {
    leaderAddress({ leader: () => undefined })
    t.fail('No error')
  } catch (error) {
    t.ok(isApiError(error, 'ServiceUnavailable') && error.details?.retryAfterSeconds === 1)
  }
})

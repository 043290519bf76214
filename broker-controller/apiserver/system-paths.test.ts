import { test } from 'tap'
import { fakeClock } from '../../daemon/testing/fake-clock.ts'
import { readMetrics } from '../../daemon/testing/prometheus-parser.ts'
import { builtInKinds } from '../assembly/control-plane.ts'
import { memoryStore } from '../store/memory-store.ts'
import { checkWithin, type ReadinessCheck, readinessMetrics, type SystemNeeds, systemAnswer } from './system-paths.ts'

const get = (
  path: string,
  readiness: readonly ReadinessCheck[] = [],
  more: Partial<SystemNeeds> = {},
  verb = 'get',
  host?: string,
) => {
  const [at = '', query = ''] = path.split('?')
  const needs: SystemNeeds = {
    version: '0.1.0',
    store: memoryStore({ clock: fakeClock() }),
    clock: fakeClock(),
    metrics: async () => ({ text: '', contentType: 'text/plain' }),
    readiness,
    kinds: builtInKinds,
    ...more,
  }
  return systemAnswer({ verb, path: at, query: new URLSearchParams(query), accept: undefined, host }, needs)
}

test('readyz is ok when every check passes; until then it lists each check', async (t) => {
  const well: ReadinessCheck = { name: 'store', check: async () => undefined }
  const broken: ReadinessCheck = { name: 'broker', check: () => Promise.reject(new Error('the port is not open yet')) }
  t.match(await get('/readyz', [well]), { code: 200, text: 'ok' })
  t.match(await get('/readyz', [well, broken]), {
    code: 500,
    text: '[+]ping ok\n[+]log ok\n[+]store ok\n[-]broker failed: the port is not open yet\nreadyz check failed\n',
  })
  t.match(await get('/livez', [broken]), { code: 200 }, 'a server that is not ready is not restarted')
})

test('a warning is a line of the verbose answer, and fails nothing', async (t) => {
  const warned: ReadinessCheck = { name: 'etcd', check: async () => undefined, warnings: () => ['it is nearly full'] }
  t.match(await get('/readyz', [warned]), { code: 200, text: 'ok' })
  t.match(await get('/readyz?verbose', [warned]), {
    code: 200,
    text: '[+]ping ok\n[+]log ok\n[+]etcd ok\n[!]etcd warning: it is nearly full\nreadyz check passed\n',
  })
})

test('one check by its path, and all but those that the query excludes', async (t) => {
  const broken: ReadinessCheck = { name: 'broker', check: () => Promise.reject(new Error('the port is not open yet')) }
  t.match(await get('/readyz/ping', [broken]), { code: 200, text: 'ok' })
  t.match(await get('/readyz/broker', [broken]), {
    code: 500,
    text: 'internal server error: the port is not open yet\n',
  })
  t.match(await get('/readyz?exclude=broker', [broken]), { code: 200, text: 'ok' })
  await t.rejects(get('/readyz/store', [broken]), { code: 404 })
  t.match(await get('/healthz/ping'), { code: 200, text: 'ok' })
  const hook: ReadinessCheck = { ...broken, name: 'poststarthook/rbac/bootstrap-roles', of: ['healthz'] }
  t.match(await get('/healthz/poststarthook/rbac/bootstrap-roles', [hook]), { code: 500 })
  t.match(await get('/healthz', [hook]), { code: 500 })
  t.match(await get('/livez', [hook]), { code: 200, text: 'ok' })
  await t.rejects(get('/readyz/poststarthook/rbac/bootstrap-roles', [hook]), { code: 404 })
})

test('verbose shows a check that the query excludes, and names one that does not exist', async (t) => {
  const broken: ReadinessCheck = { name: 'broker', check: () => Promise.reject(new Error('the port is not open yet')) }
  t.match(await get('/readyz?verbose&exclude=broker&exclude=z&exclude=a', [broken]), {
    code: 200,
    text: '[+]ping ok\n[+]log ok\n[+]broker excluded: ok\nwarn: some health checks cannot be excluded: no matches for "a", "z"\nreadyz check passed\n',
  })
})

test('a check that does not answer in time has failed', async (t) => {
  const clock = fakeClock()
  const asked = get('/readyz', [checkWithin('store', () => new Promise(() => undefined), clock, 2000)])
  await clock.advance(2000)
  t.match(await asked, { code: 500, text: /\[-\]store failed: no answer within 2 s/ })
})

test('the results of the checks are a metric', async (t) => {
  const well: ReadinessCheck = { name: 'store', check: async () => undefined }
  const broken: ReadinessCheck = { name: 'etcd', check: () => Promise.reject(new Error('no leader')) }
  t.same(readMetrics(await readinessMetrics([well, broken])).get('kubernetes_healthcheck')?.samples, [
    { labels: { name: 'store', type: 'readyz' }, value: 1 },
    { labels: { name: 'etcd', type: 'readyz' }, value: 0 },
  ])
  t.match(await get('/metrics/slis', [broken]), {
    code: 200,
    text: /^kubernetes_healthcheck{name="etcd",type="readyz"} 0$/m,
    contentType: /^text\/plain/,
  })
})

test('verbose lists passed checks; a passed endpoint is marked so', async (t) => {
  const well: ReadinessCheck = { name: 'store', check: async () => undefined }
  t.match(await get('/readyz?verbose', [well]), {
    code: 200,
    text: '[+]ping ok\n[+]log ok\n[+]store ok\nreadyz check passed\n',
  })
})

const tokens = {
  publicKeys: () => [],
  issue: () => '',
  identify: async () => undefined,
}

test('the root lists every path, those of tokens only where tokens are issued', async (t) => {
  const paths = async (needs: Partial<SystemNeeds>) => {
    const answer = await get('/', [], needs)
    return answer.kind === 'object' ? (answer.body as { readonly paths: readonly string[] }).paths : []
  }
  const plain = await paths({})
  for (const path of [
    '/api/v1',
    '/fleet/http_sd',
    '/fleet/summary',
    '/fleet/volumes',
    '/apis/apps',
    '/healthz',
    '/healthz/ping',
    '/livez/log',
    '/livez',
    '/readyz',
    '/metrics',
    '/metrics/fleet',
    '/metrics/slis',
    '/openapi/v2',
    '/openapi/v3',
    '/version',
  ]) {
    t.ok(plain.includes(path), path)
  }
  t.same(plain, plain.toSorted())
  const own = ['/.well-known/openid-configuration', '/openid/v1/jwks']
  t.same(
    (await paths({ tokens })).filter((path) => !plain.includes(path)),
    own,
  )
})

test('the version names the platform as Go does', async (t) => {
  const answer = await get('/version')
  t.match(answer, {
    kind: 'object',
    code: 200,
    body: {
      major: '1',
      minor: '32',
      gitVersion: /^v1\.32\.\d+-bramble\./,
      gitTreeState: 'clean',
      compiler: 'v8',
      platform: `${process.platform}/${process.arch === 'x64' ? 'amd64' : process.arch}`,
    },
  })
})

test('metrics are text with the content type of their producer; those of the fleet come in pieces', async (t) => {
  const metrics = async () => ({ text: 'up 1\n', contentType: 'text/plain; version=0.0.4' })
  t.same(await get('/metrics', [], { metrics }), {
    kind: 'text',
    code: 200,
    text: 'up 1\n',
    contentType: 'text/plain; version=0.0.4',
  })
  const store = memoryStore({ clock: fakeClock() })
  await store.create('namespaces', { apiVersion: 'v1', kind: 'Namespace', metadata: { name: 'shop' } })
  const fleet = await get('/metrics/fleet', [], { store })
  t.match(fleet, { kind: 'pieces', code: 200, contentType: /^text\/plain; version=0\.0\.4/ })
  let text = ''
  if (fleet.kind === 'pieces') for await (const piece of fleet.pieces) text += piece
  t.match(text, /^kube_namespace_created{namespace="shop"} /m)
})

test('where tokens are issued, others verify them by the published keys', async (t) => {
  const configuration = '/.well-known/openid-configuration'
  t.match(await get('/openid/v1/jwks', [], { tokens }), {
    kind: 'text',
    code: 200,
    text: '{"keys":[]}',
    contentType: 'application/jwk-set+json',
  })
  const keysAt = async (needs: Partial<SystemNeeds>) => {
    const answer = await get(configuration, [], { tokens, ...needs })
    t.match(answer, { kind: 'text', code: 200, contentType: 'application/json' })
    return (JSON.parse(answer.kind === 'text' ? answer.text : '{}') as { readonly jwks_uri: string }).jwks_uri
  }
  t.equal(await keysAt({ serverUrl: () => 'https://pi:6443' }), 'https://pi:6443/openid/v1/jwks')
  t.equal(await keysAt({}), 'https://kubernetes.default.svc.cluster.local/openid/v1/jwks')
  for (const path of [configuration, '/openid/v1/jwks']) await t.rejects(get(path), { code: 404 })
})

test('documents of OpenAPI and discovery are served, other paths are not found', async (t) => {
  t.match(await get('/openapi/v3'), { kind: 'document', code: 200 })
  t.match(await get('/apis'), { kind: 'object', body: { kind: 'APIGroupList' } })
  for (const path of ['/openapi', '/openapi/v4', '/x/healthz', '/healthz/ping/more', '/readyzz', '/metrics/x']) {
    await t.rejects(get(path), { code: 404 }, path)
  }
})

test('nothing but GET is allowed on these paths; an unknown one is not found first', async (t) => {
  await t.rejects(get('/version', [], {}, 'post'), { code: 405 })
  await t.rejects(get('/nowhere', [], {}, 'post'), { code: 404 })
})

const textOf = async (answer: Awaited<ReturnType<typeof get>>) => {
  let text = ''
  if (answer.kind === 'pieces') for await (const piece of answer.pieces) text += piece
  return text
}

test('the targets of Prometheus are at the address of the request, or of the API', async (t) => {
  const store = memoryStore({ clock: fakeClock() })
  for (let i = 0; i < 300; i++) {
    await store.create('nodes', { apiVersion: 'v1', kind: 'Node', metadata: { name: `pi-${i}` }, spec: {} })
  }
  const groups = async (host?: string, query = '') =>
    JSON.parse(
      await textOf(
        await get(`/fleet/http_sd${query}`, [], { store, serverUrl: () => 'https://own:6443' }, 'get', host),
      ),
    ) as { targets: string[]; labels: { job: string } }[]
  t.equal((await groups('controller:6443')).length, 2 + 300 * 4, 'in several pieces')
  t.same((await groups('controller:6443'))[0]?.targets, ['controller:6443'])
  t.same((await groups())[0]?.targets, ['own:6443'])
  t.equal((await groups('a', '?job=node-exporter&job=apiserver')).length, 301)
  await t.rejects(get('/fleet/http_sd'), { code: 400 })
})

test('the summary is a flat object, the badge an image that is not kept', async (t) => {
  t.match(await get('/fleet/summary'), { kind: 'object', code: 200, body: { status: 'ok', nodes: 0 } })
  t.match(await get('/fleet/badge.svg'), {
    kind: 'plain',
    code: 200,
    headers: { 'content-type': 'image/svg+xml; charset=utf-8', 'cache-control': /no-store/ },
  })
  const answer = await get('/fleet/volumes')
  let text = ''
  if (answer.kind === 'pieces') for await (const piece of answer.pieces) text += piece
  t.same(JSON.parse(text), { pools: [], volumes: [], trash: [] })
  await t.rejects(get('/fleet/other'), { code: 404 })
  await t.rejects(get('/fleet/summary', [], {}, 'post'), { code: 405 })
})

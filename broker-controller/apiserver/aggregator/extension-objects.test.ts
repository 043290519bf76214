import { test } from 'tap'
import { isApiError } from '../../../api/api-error.ts'
import type { ExtensionEvent, ExtensionKind } from '../../../api/registration/extension-object.ts'
import { fakeClock } from '../../../daemon/testing/fake-clock.ts'
import { budgetMs, turnCost } from '../../../daemon/testing/turn-budget.ts'
import type { DiscoveredVersion } from './discovery-needs.ts'
import { extensionObjects } from './extension-objects.ts'
import type { AskOptions, ExtensionAnswer } from './extension-servers.ts'

const flunders: ExtensionKind = {
  ...{ group: 'wardle.example.com', version: 'v1', resource: 'flunders', kind: 'Flunder', namespaced: true },
}
const verbs = ['delete', 'get', 'list', 'watch']
const listed = { resource: 'flunders', scope: 'Namespaced', responseKind: { kind: 'Flunder' }, verbs }
const path = '/apis/wardle.example.com/v1'
const key = { namespace: 'default', name: 'a' }
const { signal } = new AbortController()

type Asked = { readonly method: string; readonly path: string; readonly body: unknown }
type World = {
  readonly answer?: (asked: Asked) => ExtensionAnswer
  /** Parts of the body of a watch, or its status. */
  readonly watched?: readonly Buffer[] | number
  readonly versions?: { readonly [name: string]: DiscoveredVersion }
}

const json = (code: number, body: unknown): ExtensionAnswer => ({ code, body: Buffer.from(JSON.stringify(body)) })
const current = (...resources: DiscoveredVersion['resources']): DiscoveredVersion => ({
  freshness: 'Current',
  resources,
})
const notFound = (name = 'a') => json(404, { kind: 'Status', code: 404, reason: 'NotFound', details: { name } })

function opened({ answer, watched = [], versions = { 'wardle.example.com/v1': current(listed) } }: World) {
  const asked: Asked[] = []
  const clock = fakeClock()
  const remotes = Object.keys(versions).map((name) => {
    const [group = '', version = ''] = name.split('/')
    const priority = version === 'v1' ? 20 : 10
    const spec = { group, version, groupPriorityMinimum: 1_000, versionPriority: priority, service: { name: group } }
    const metadata = { name: `${version}.${group}`, uid: name, resourceVersion: '1', creationTimestamp: '' }
    return { apiVersion: 'apiregistration.k8s.io/v1' as const, kind: 'APIService' as const, metadata, spec }
  })
  const objects = extensionObjects({
    clock,
    apiServices: {
      remotes: () => remotes,
      remoteAt: ({ group, version }) => remotes.find(({ metadata }) => metadata.name === `${version}.${group}`),
    },
    discovery: {
      versionOf: ({ spec }) => versions[`${spec.group}/${spec.version}`] ?? { freshness: 'Stale', resources: [] },
      onChange: () => () => undefined,
    },
    servers: {
      async ask(_, at: string, { method = 'GET', body }: AskOptions) {
        asked.push({ method, path: at, body })
        return answer?.({ method, path: at, body }) ?? json(200, {})
      },
      async stream(_, at, { take }) {
        asked.push({ method: 'WATCH', path: at, body: undefined })
        if (typeof watched === 'number') return { code: watched }
        for (const part of watched) await take(part)
        return { code: 200 }
      },
    },
  })
  return { objects, asked, clock }
}

test('kinds that can be listed, watched and deleted are followed, each in the first version of its group', async (t) => {
  const figures = { ...listed, resource: 'figures', verbs: ['get', 'list'] }
  const odd = { ...listed, resource: 'r/../pods' }
  const nodes = { ...listed, resource: 'nodes', scope: 'Cluster', responseKind: { kind: 'Node' } }
  const many = Array.from({ length: 100 }, (_, at) => ({ ...listed, resource: `many${at}` }))
  const { objects } = opened({
    versions: {
      'wardle.example.com/v1': current(figures, odd, listed),
      'wardle.example.com/v1beta1': current(listed, nodes),
      'stale.example.com/v1': { freshness: 'Stale', resources: [listed] },
      'many.example.com/v1': current(...many),
    },
  })
  const found = objects.kinds()
  t.same(
    found.filter(({ group }) => group === flunders.group),
    [flunders, { ...flunders, version: 'v1beta1', resource: 'nodes', kind: 'Node', namespaced: false }],
  )
  t.ok(
    found.some(({ group }) => group === 'stale.example.com'),
    'a server that does not answer keeps its kinds',
  )
  t.equal(found.filter(({ group }) => group === 'many.example.com').length, 64)
})

test('an owner is absent only where its server states it', async (t) => {
  const answers: readonly (readonly [string, ExtensionAnswer, boolean])[] = [
    ['a Status that states it', notFound(), true],
    ['of another object', notFound('b'), false],
    ['a page of a server without such a path', { code: 404, body: Buffer.from('404 page not found\n') }, false],
    ['a Status of another reason', json(404, { kind: 'Status', reason: 'Expired' }), false],
    ['an error', json(500, { kind: 'Status', reason: 'NotFound' }), false],
    ['an empty object', json(200, {}), false],
    ['an object without a uid', json(200, { metadata: { name: 'a' } }), false],
    ['no body', { code: 200, body: Buffer.alloc(0) }, false],
  ]
  for (const [what, answer, isAbsent] of answers) {
    const { objects, asked } = opened({ answer: () => answer })
    const found = objects.get(flunders, key, signal)
    if (isAbsent) t.equal(await found, undefined, what)
    else await t.rejects(found, what)
    t.equal(asked[0]?.path, `${path}/namespaces/default/flunders/a`)
  }
})

test('a server that does not answer is not asked', async (t) => {
  const { objects, asked } = opened({
    versions: { 'wardle.example.com/v1': { freshness: 'Stale', resources: [listed] } },
  })
  await t.rejects(objects.get(flunders, key, signal), /the server of wardle\.example\.com\/v1 does not answer/)
  t.throws(() => objects.kindOf('wardle.example.com/v1', 'Flunder'))
  t.ok(objects.serves('wardle.example.com/v1'))
  t.notOk(objects.serves('v1'))
  await t.rejects(objects.get({ ...flunders, version: 'v9' }, key, signal), /no extension server stands for/)
  t.same(asked, [])
})

test('an object is deleted by its uid, and changed in the version that was read', async (t) => {
  const { objects, asked } = opened({})
  const object = { metadata: { ...key, uid: 'u', resourceVersion: '7' } }
  await objects.remove(flunders, object, 'Background', signal)
  await objects.patch(flunders, object, { finalizers: [] }, signal)
  t.match(asked, [
    { method: 'DELETE', body: { preconditions: { uid: 'u' }, propagationPolicy: 'Background' } },
    { method: 'PATCH', body: { metadata: { uid: 'u', resourceVersion: '7', finalizers: [] } } },
  ])
  const conflict = opened({ answer: () => json(409, { kind: 'Status', message: 'a newer one' }) })
  await t.rejects(conflict.objects.patch(flunders, object, {}, signal), { reason: 'Conflict', message: 'a newer one' })
})

test('a list is read in parts, and given up where it has no end', async (t) => {
  const item = (name: string) => ({ metadata: { name, namespace: 'default', uid: name, resourceVersion: '1' } })
  const parts = opened({
    answer: ({ path: at }) =>
      at.includes('continue=t%2F1')
        ? json(200, { metadata: { resourceVersion: '9' }, items: [item('b'), { metadata: { name: 'x/y', uid: 'u' } }] })
        : json(200, { metadata: { resourceVersion: '9', continue: 't/1' }, items: [item('a')] }),
  })
  const { items, resourceVersion } = await parts.objects.list(flunders, signal)
  t.same([items.map(({ metadata }) => metadata.name), resourceVersion], [['a', 'b'], '9'])
  const endless = opened({ answer: () => json(200, { metadata: { continue: 'more' }, items: [] }) })
  await t.rejects(endless.objects.list(flunders, signal), /its list has more than 200 parts/)
  const full = Array.from({ length: 1_000 }, (_, at) => item(`n${at}`))
  const long = opened({ answer: () => json(200, { metadata: { continue: 'more' }, items: full }) })
  await t.rejects(long.objects.list(flunders, signal), /there are more than 10000 objects/)
  for (const body of [[], { items: 7 }, { metadata: { continue: 'x'.repeat(9_000) } }]) {
    await t.rejects(opened({ answer: () => json(200, body) }).objects.list(flunders, signal), /cannot be read/)
  }
  const old = opened({ answer: () => json(410, {}) }).objects.list(flunders, signal)
  t.ok(isApiError(await old.catch((error: unknown) => error), 'Expired'))
})

test('a watch gives its events as they come, however it is cut into parts', async (t) => {
  const metadata = { ...key, uid: 'u', resourceVersion: '8', finalizers: ['orphan'] }
  const lines = [
    { type: 'ADDED', object: { metadata: { ...metadata, managedFields: [{}], labels: { a: 'b' } }, spec: {} } },
    { type: 'BOOKMARK', object: { metadata: { resourceVersion: '9' } } },
    { type: 'DELETED', object: { metadata } },
  ]
  const bytes = Buffer.from(lines.map((line) => `${JSON.stringify(line)}\n`).join('\n'))
  const watched = [bytes.subarray(0, 150), bytes.subarray(150, 151), bytes.subarray(151)]
  const { objects, asked } = opened({ watched })
  const events: ExtensionEvent[] = []
  await objects.watch(flunders, { resourceVersion: '7', take: (event) => events.push(event) }, signal)
  t.same(events, [
    { type: 'ADDED', object: { metadata } },
    { type: 'BOOKMARK', resourceVersion: '9' },
    { type: 'DELETED', object: { metadata } },
  ])
  t.match(asked[0]?.path, /flunders\?watch=1&allowWatchBookmarks=true&timeoutSeconds=[3-6]\d\d&resourceVersion=7$/)
})

test('a watch ends where its changes are gone, or a line is odd or too long', async (t) => {
  const take = () => undefined
  const watching = (watched: readonly Buffer[] | number) =>
    opened({ watched })
      .objects.watch(flunders, { resourceVersion: '7', take }, signal)
      .then(
        () => undefined,
        (error: unknown) => error,
      )
  const gone = Buffer.from('{"type":"ERROR","object":{"kind":"Status","code":410}}\n')
  t.ok(isApiError(await watching(410), 'Expired'))
  t.ok(isApiError(await watching([gone]), 'Expired'))
  t.match(await watching(500), { message: 'its server answers with status 500' })
  t.match(await watching([Buffer.from('{"type":"ADDED","object":{"metadata":{"name":"."}}}\n')]), Error)
  t.match(await watching([Buffer.from('nonsense\n')]), Error)
  t.match(await watching([Buffer.alloc(3_000_000, 'x')]), { message: /longer than 2097152 bytes/ })
})

test('a watch without end is read slowly', async (t) => {
  const line = Buffer.from(`${JSON.stringify({ type: 'BOOKMARK', object: { metadata: { resourceVersion: '9' } } })}\n`)
  const part = Buffer.concat(Array.from({ length: 500 }, () => line))
  const { objects, clock } = opened({ watched: Array.from({ length: 1_000 }, () => part) })
  let events = 0
  const ending = new AbortController()
  const watch = { resourceVersion: '7', take: () => void events++ }
  const watching = objects.watch(flunders, watch, ending.signal)
  await clock.advance(60_000)
  t.ok(events > 50_000 && events < 65_000, `${events} events in a minute`)
  ending.abort()
  await watching
})

test('the largest list and the largest lines of a watch are read within a turn', async (t) => {
  const owners = Array.from({ length: 64 }, (_, at) => ({
    apiVersion: 'v1',
    kind: 'Pod',
    name: `p${at}`,
    uid: `u${at}`,
  }))
  const item = (name: string) => ({
    metadata: { name, namespace: 'default', uid: name, resourceVersion: '1', ownerReferences: owners },
  })
  const body = { metadata: { resourceVersion: '9' }, items: Array.from({ length: 150 }, (_, at) => item(`n${at}`)) }
  const text = JSON.stringify(body)
  const nested = JSON.stringify({
    metadata: {},
    items: Array.from({ length: 19_000 }, () => ({ metadata: { name: 1 } })),
  })
  const line = Buffer.from(`${JSON.stringify({ type: 'ADDED', object: item('a') })}\n`)
  const cases = [
    ...[text, nested].map((one) => ({
      what: 'a list',
      bytes: one.length,
      act: () =>
        opened({ answer: () => ({ code: 200, body: Buffer.from(one) }) })
          .objects.list(flunders, signal)
          .catch((error: Error) => t.fail(error.message)),
    })),
    {
      what: 'lines of a watch',
      bytes: 65_536,
      act: () =>
        opened({ watched: [Buffer.concat(Array.from({ length: 20 }, () => line))] }).objects.watch(
          flunders,
          { resourceVersion: '1', take: () => undefined },
          signal,
        ),
    },
  ]
  for (const one of cases) {
    const { ms } = await turnCost(one)
    t.ok(ms <= budgetMs, `${one.what} (${one.bytes} bytes): ${ms.toFixed(0)} ms`)
  }
})

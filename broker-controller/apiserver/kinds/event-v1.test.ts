import { test } from 'tap'
import { eventOfV1, eventV1Of } from '../../../api/event-v1.ts'
import { anApi, patchTypes } from '../../testing/api-in-memory.ts'

const core = '/api/v1/namespaces/default/events'
const path = '/apis/events.k8s.io/v1/namespaces/default/events'
const tables = 'application/json;as=Table;v=v1;g=meta.k8s.io'
const event = (name: string) => ({
  apiVersion: 'events.k8s.io/v1',
  kind: 'Event',
  metadata: { name, labels: { of: 'robot' } },
  eventTime: '2026-01-01T00:00:00.000000Z',
  reportingController: 'example.com/robot',
  reportingInstance: 'robot-1',
  action: 'Look',
  reason: 'Seen',
  regarding: { kind: 'Pod', namespace: 'default', name: 'web' },
  note: 'a note',
  type: 'Normal',
})

test('an Event of one version is the same Event of the other one', async (t) => {
  const { ask } = await anApi(t)
  t.match(await ask('POST', path, { body: event('one') }), {
    code: 201,
    body: { apiVersion: 'events.k8s.io/v1', note: 'a note' },
  })
  t.match(await ask('GET', `${core}/one`), {
    body: {
      apiVersion: 'v1',
      involvedObject: { name: 'web' },
      message: 'a note',
      reportingComponent: 'example.com/robot',
      reason: 'Seen',
    },
  })
  const old = {
    metadata: { name: 'two', namespace: 'default' },
    involvedObject: { kind: 'Node', name: 'pi-1' },
    message: 'of a node',
    source: { component: 'kubelet', host: 'pi-1' },
    firstTimestamp: '2026-01-01T00:00:00Z',
    lastTimestamp: '2026-01-01T00:00:01Z',
    count: 3,
    type: 'Warning',
  }
  await ask('POST', core, { body: old })
  const { body } = await ask('GET', path)
  t.match(body, {
    kind: 'EventList',
    apiVersion: 'events.k8s.io/v1',
    items: [
      { apiVersion: 'events.k8s.io/v1', metadata: { name: 'one' }, regarding: { name: 'web' } },
      {
        metadata: { name: 'two' },
        note: 'of a node',
        deprecatedSource: old.source,
        deprecatedFirstTimestamp: old.firstTimestamp,
        deprecatedLastTimestamp: old.lastTimestamp,
        deprecatedCount: 3,
      },
    ],
  })
  const table = (await ask('GET', `${path}?includeObject=Object`, { accept: tables })).body
  t.match(table, { rows: [{ cells: [/s$/, 'Normal', 'Seen', 'pod/web'], object: { regarding: { name: 'web' } } }, {}] })
})

test('Events are selected by the names of their version', async (t) => {
  const { ask } = await anApi(t)
  await ask('POST', path, { body: event('one') })
  const count = async (at: string, selector: string) => {
    const { code, body } = await ask('GET', `${at}?fieldSelector=${selector}`)
    return code === 200 && 'items' in body && Array.isArray(body['items']) ? body['items'].length : code
  }
  t.equal(await count(path, 'regarding.name=web,reportingController=example.com/robot'), 1)
  t.equal(await count(path, 'regarding.name=other'), 0)
  t.equal(await count(path, 'involvedObject.name=web'), 400)
  t.equal(await count(core, 'involvedObject.name=web,reportingComponent=example.com/robot'), 1)
  t.equal(await count(core, 'regarding.name=web'), 400)
  t.equal(await count(core, 'source=example.com/robot'), 1)
})

test('the series of an Event is patched, replaced and watched; nothing else of it changes', async (t) => {
  const { ask, watch } = await anApi(t)
  const made = await ask('POST', path, { body: event('one') })
  const series = { count: 2, lastObservedTime: '2026-01-01T00:00:05.000000Z' }
  for (const type of [patchTypes.strategic, patchTypes.merge]) {
    const body = { series: { ...series, count: type === patchTypes.merge ? 3 : 2 } }
    t.match(await ask('PATCH', `${path}/one`, { type, body }), { code: 200, body })
  }
  t.match(await ask('PATCH', `${path}/one`, { type: patchTypes.merge, body: { note: 'other' } }), {
    code: 422,
    body: { message: /Event.events.k8s.io "one" is invalid: message: Invalid value: "other": field is immutable$/ },
  })
  t.match(await ask('PUT', `${path}/one`, { body: { ...event('one'), series } }), { code: 200, body: { series } })
  t.match(await ask('POST', path, { body: { ...event('two'), deprecatedCount: 1 } }), { code: 422 })
  const stopping = new AbortController()
  const seen: unknown[] = []
  for await (const line of watch(`${path}?watch=1&fieldSelector=regarding.kind=Pod`, stopping.signal)) {
    seen.push(line)
    stopping.abort()
  }
  t.match(seen, [{ type: 'ADDED', object: { apiVersion: 'events.k8s.io/v1', regarding: { kind: 'Pod' }, series } }])
  t.equal(made.code, 201)
  t.match(await ask('DELETE', `${path}?labelSelector=of=robot`), {
    code: 200,
    body: { kind: 'EventList', items: { length: 1 } },
  })
  t.equal((await ask('GET', `${core}/one`)).code, 404)
})

test('discovery and OpenAPI have both versions', async (t) => {
  const { ask } = await anApi(t)
  t.match((await ask('GET', '/apis/events.k8s.io/v1')).body, {
    resources: [{ name: 'events', kind: 'Event', shortNames: ['ev'] }],
  })
  t.match((await ask('GET', '/apis/events.k8s.io')).body, { preferredVersion: { groupVersion: 'events.k8s.io/v1' } })
  t.match((await ask('GET', '/api/v1')).body, { groupVersion: 'v1' })
  const document = JSON.stringify((await ask('GET', '/openapi/v3/apis/events.k8s.io/v1')).body)
  t.match(document, '/apis/events.k8s.io/v1/namespaces/{namespace}/events')
  t.match(document, 'deprecatedFirstTimestamp')
})

test('what is converted there and back is the same', async (t) => {
  const all = {
    ...event('one'),
    apiVersion: 'events.k8s.io/v1',
    kind: 'Event',
    series: { count: 2, lastObservedTime: 'a' },
    related: { name: 'other' },
    deprecatedSource: { component: 'a' },
    deprecatedFirstTimestamp: 'b',
    deprecatedLastTimestamp: 'c',
    deprecatedCount: 4,
  } as const
  t.same(eventV1Of(eventOfV1(all)), all)
  const bare = { apiVersion: 'events.k8s.io/v1', kind: 'Event', metadata: {}, regarding: {} } as const
  t.same(eventV1Of(eventOfV1(bare)), bare)
})

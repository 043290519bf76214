import { setTimeout } from 'node:timers/promises'
import { test } from 'tap'
import type { ObjectReader } from '../../api/decode.ts'
import { ObjectMetaSchema } from '../../api/meta.ts'
import { PodTemplateSpecSchema } from '../../api/pod.ts'
import { invalid } from '../../api/problem.ts'
import { customResource, resourceRegistry } from '../../api/resources.ts'
import { bool, type Described, field, integer, list, object, oneOf, optional, pointer, text } from '../../api/schema.ts'
import { isObject } from '../../api/text/json.ts'
import { withTemplateDefaults } from '../../api/validation/pod-defaults.ts'
import { podTemplateProblems } from '../../api/validation/pod-validation.ts'
import { quietLog } from '../../daemon/testing/quiet-log.ts'
import { builtInKinds } from '../assembly/control-plane.ts'
import { garbageCollector } from '../controllers/garbage/garbage-collector.ts'
import { eventRecorder } from '../store/event-recorder.ts'
import { anApi, patchTypes } from '../testing/api-in-memory.ts'
import { configMapsPath } from '../testing/sent-objects.ts'
import { ageOf, tableColumns } from './handlers/cells.ts'
import { type KindStrategy, statusSubresource } from './handlers/strategy.ts'
import { namespaceDeletion } from './namespace-deletion.ts'

/** A workload that no other file refers to: a schema, a table row and a strategy are enough. */
const WidgetSchema = object({
  apiVersion: oneOf('example.com/v1'),
  kind: oneOf('Widget'),
  metadata: field(1, ObjectMetaSchema),
  spec: field(
    2,
    object({
      size: pointer(1, optional(integer)),
      color: field(2, optional(text)),
      template: field(3, optional(PodTemplateSpecSchema)),
    }),
  ),
  status: optional(object({ ready: optional(bool) })),
})
type Widget = Described<typeof WidgetSchema>

const widgetStrategy: KindStrategy<Widget> = {
  ...customResource('widgets', 'Widget', 'example.com', WidgetSchema, {
    namespaced: true,
    shortNames: ['wd'],
    counted: true,
  }),
  table: {
    columns: tableColumns('Name', 'Size', 'Age'),
    cells: ({ metadata, spec }, nowMs) => [
      metadata.name ?? '',
      spec.size ?? 0,
      ageOf(metadata.creationTimestamp, nowMs),
    ],
  },
  selectableFields: ['spec.color'],
  subresources: { status: statusSubresource },
  withDefaults: ({ spec, ...widget }) => {
    const template = spec.template && withTemplateDefaults(spec.template)
    return { ...widget, spec: { ...spec, size: spec.size ?? 1, ...(template && { template }) } }
  },
  prepareForCreate: ({ status: _, ...widget }) => widget,
  validateCreate: problems,
  validateUpdate: (_, now) => problems(now),
}

function problems({ spec: { size = 0, template } }: Widget) {
  return [
    ...(size < 1 ? [invalid('spec.size', size, 'must be greater than or equal to 1')] : []),
    ...(template === undefined ? [] : podTemplateProblems('spec.template', template)),
  ]
}

const kinds = resourceRegistry<KindStrategy>([...builtInKinds.all, widgetStrategy])
const path = '/apis/example.com/v1/namespaces/default/widgets'
const aWidget = (name: string, spec: object = {}, more: object = {}) => ({
  apiVersion: 'example.com/v1',
  kind: 'Widget',
  metadata: { name, ...more },
  spec,
})

test('a kind that is registered at run time is created, defaulted, validated and changed', async (t) => {
  const { ask } = await anApi(t, { kinds })
  const created = await ask('POST', path, { body: { ...aWidget('a', { color: 'red' }), status: { ready: true } } })
  t.match(created, {
    code: 201,
    body: { metadata: { generation: 1, namespace: 'default' }, spec: { size: 1, color: 'red' }, status: undefined },
  })
  t.match(await ask('POST', path, { body: aWidget('b', { size: 0 }) }), {
    code: 422,
    body: {
      message: 'Widget.example.com "b" is invalid: spec.size: Invalid value: 0: must be greater than or equal to 1',
    },
  })
  const template = { spec: { containers: [{ name: 'main', image: '' }] } }
  t.match(await ask('POST', path, { body: aWidget('b', { template }) }), {
    code: 422,
    body: { details: { causes: [{ field: 'spec.template.spec.containers[0].image' }] } },
  })
  t.match(await ask('POST', `${path}?fieldValidation=Strict`, { body: aWidget('b', { weight: 1 }) }), { code: 400 })
  const patched = await ask('PATCH', `${path}/a`, { type: patchTypes.merge, body: { spec: { size: 3 }, status: {} } })
  t.match(patched, { code: 200, body: { metadata: { generation: 2 }, spec: { size: 3, color: 'red' } } })
  const status = { type: patchTypes.merge, body: { spec: { size: 9 }, status: { ready: true } } }
  t.match(await ask('PATCH', `${path}/a/status`, status), {
    body: { metadata: { generation: 2 }, spec: { size: 3 }, status: { ready: true } },
  })
  t.match(await ask('GET', `${path}/b`), { code: 404, body: { message: 'widgets.example.com "b" not found' } })
})

test('it is discovered, listed by field, printed as a table and watched', async (t) => {
  const { ask, watch } = await anApi(t, { kinds })
  t.match(await ask('GET', '/apis/example.com/v1'), {
    body: { resources: [{ name: 'widgets', kind: 'Widget', shortNames: ['wd'] }, { name: 'widgets/status' }] },
  })
  await ask('POST', path, { body: aWidget('a', { color: 'red' }) })
  await ask('POST', path, { body: aWidget('b', { color: 'blue', size: 2 }) })
  t.match(await ask('GET', `${path}?fieldSelector=spec.color%3Dblue`), {
    body: { kind: 'WidgetList', items: [{ metadata: { name: 'b' } }] },
  })
  const accept = 'application/json;as=Table;v=v1;g=meta.k8s.io'
  t.match(await ask('GET', '/apis/example.com/v1/widgets', { accept }), {
    body: {
      columnDefinitions: [{ name: 'Name' }, { name: 'Size' }, { name: 'Age' }],
      rows: [{ cells: ['a', 1] }, { cells: ['b', 2] }],
    },
  })
  const stopping = new AbortController()
  const events = watch(`${path}?watch=1`, stopping.signal)
  const next = async () => (await events.next()).value
  t.match([await next(), await next()], [{ type: 'ADDED' }, { type: 'ADDED' }])
  const changed = next()
  await ask('PATCH', `${path}/a`, { type: patchTypes.merge, body: { spec: { size: 5 } } })
  t.match(await changed, { type: 'MODIFIED', object: { metadata: { name: 'a' }, spec: { size: 5 } } })
  const deleted = next()
  t.match(await ask('DELETE', `${path}/a`), { body: { status: 'Success', details: { kind: 'widgets' } } })
  t.match(await deleted, { type: 'DELETED', object: { metadata: { name: 'a' } } })
  stopping.abort()
})

test('it is read from protobuf by the numbers of its schema', async (t) => {
  const { ask } = await anApi(t, { kinds })
  const value = (number: number, content: string | Buffer) => {
    const bytes = Buffer.from(content)
    return Buffer.concat([Buffer.from([(number << 3) | 2, bytes.length]), bytes])
  }
  const typeMeta = Buffer.concat([value(1, 'example.com/v1'), value(2, 'Widget')])
  const spec = Buffer.concat([Buffer.from([1 << 3, 7]), value(2, 'green')])
  const raw = Buffer.concat([value(1, value(1, 'p')), value(2, spec)])
  const body = Buffer.concat([Buffer.from('k8s\0'), value(1, typeMeta), value(2, raw)])
  t.match(await ask('POST', path, { body, type: 'application/vnd.kubernetes.protobuf' }), {
    code: 201,
    body: { metadata: { name: 'p' }, spec: { size: 7, color: 'green' } },
  })
})

test('it is deleted with its owner, and with its namespace', async (t) => {
  const { ask, store, clock } = await anApi(t, { kinds })
  await ask('POST', '/api/v1/namespaces', { body: { apiVersion: 'v1', kind: 'Namespace', metadata: { name: 'team' } } })
  const inTeam = path.replace('default', 'team')
  const { body } = await ask('POST', path, { body: aWidget('owner') })
  const { uid = '' } = body['metadata'] as { uid?: string }
  const ownerReferences = [{ apiVersion: 'example.com/v1', kind: 'Widget', name: 'owner', uid }]
  await ask('POST', path, { body: aWidget('owned', {}, { ownerReferences }) })
  await ask('POST', inTeam, { body: aWidget('other') })
  const log = quietLog(t)
  const stopping = new AbortController()
  const loops = [
    garbageCollector({ store, resources: kinds, events: eventRecorder({ store, clock }), clock, log }),
    namespaceDeletion({ store, kinds, clock, log }),
  ]
  const running = Promise.all(loops.map((loop) => loop.run(stopping.signal)))
  t.teardown(async () => {
    stopping.abort()
    await running
  })
  await ask('DELETE', `${path}/owner`)
  await ask('DELETE', '/api/v1/namespaces/team')
  const left = async () => {
    const { items } = await store.list('widgets.example.com')
    const team = await store.get('namespaces', { namespace: '', name: 'team' })
    return [...items, ...(team === undefined ? [] : [team])].map(({ metadata }) => metadata.name)
  }
  // The namespace goes after what was in it.
  for (let waits = 0; (await left()).length > 0 && waits < 2_000; waits++) await setTimeout(10)
  t.same(await left(), [])
})

test('a kind may have a reader of its own: what it gives is stored, what it notes is a warning or a refusal', async (t) => {
  const schema = object({ apiVersion: oneOf('example.com/v1'), kind: oneOf('Note'), metadata: ObjectMetaSchema })
  const reader: ObjectReader = {
    read(body, { problems, unknownFields }) {
      if (!isObject(body)) return undefined
      const { extra, spec, ...rest } = body
      if (extra !== undefined) unknownFields.push('extra')
      if (spec === 'wrong') problems.push(invalid('spec', spec, 'is not this one'))
      return { ...rest, spec: spec ?? null }
    },
  }
  const notes = customResource('notes', 'Note', 'example.com', schema, { namespaced: true, reader })
  const { table, subresources, selectableFields } = widgetStrategy
  const noteKind: KindStrategy = { ...notes, table: { ...table, cells: () => [] }, subresources, selectableFields }
  const { ask } = await anApi(t, { kinds: resourceRegistry<KindStrategy>([...builtInKinds.all, noteKind]) })
  const at = path.replace('widgets', 'notes')
  const aNote = (name: string, more: object) => ({ metadata: { name }, ...more })
  const created = await ask('POST', at, { body: aNote('a', { spec: { any: [null, 1.5] }, extra: 1 }) })
  t.match(created, { code: 201, warnings: ['unknown field "extra"'] })
  t.strictSame(created.body['spec'], { any: [null, 1.5] }, 'no schema leaves anything out')
  t.notOk('extra' in created.body)
  t.match(await ask('POST', `${at}?fieldValidation=Strict`, { body: aNote('b', { extra: 1 }) }), {
    code: 400,
    body: { message: /strict decoding error: unknown field "extra"/ },
  })
  t.match(await ask('PUT', `${at}/a`, { body: aNote('a', { spec: 'wrong' }) }), {
    code: 422,
    body: { message: 'Note.example.com "a" is invalid: spec: Invalid value: "wrong": is not this one' },
  })
  t.match(await ask('PATCH', `${at}/a`, { type: patchTypes.merge, body: { spec: { more: true } } }), {
    body: { spec: { any: [null, 1.5], more: true } },
  })
})

test('a kind may have more fields and items than others, in each form of a write', async (t) => {
  const schema = object({
    apiVersion: oneOf('example.com/v1'),
    kind: oneOf('Wide'),
    metadata: ObjectMetaSchema,
    items: optional(list(integer)),
  })
  const { table, subresources, selectableFields } = widgetStrategy
  const wide: KindStrategy = {
    ...customResource('wides', 'Wide', 'example.com', schema, { namespaced: true }),
    ...{ table: { ...table, cells: () => [] }, subresources, selectableFields, mostValues: 20_000 },
  }
  const { ask } = await anApi(t, { kinds: resourceRegistry<KindStrategy>([...builtInKinds.all, wide]) })
  const at = path.replace('widgets', 'wides')
  const items = (count: number) => Array.from({ length: count }, () => 1)
  const aWide = (count: number) => ({ metadata: { name: 'a' }, items: items(count) })
  t.match(await ask('POST', at, { body: aWide(20_000) }), { code: 413 })
  t.match(await ask('POST', at, { body: aWide(17_000) }), { code: 201 })
  t.match(await ask('PUT', `${at}/a`, { body: aWide(18_000) }), { code: 200 })
  const merge = { type: patchTypes.merge, body: { items: items(19_000) } }
  t.match(await ask('PATCH', `${at}/a`, merge), { code: 200 })
  const applied = { type: patchTypes.apply, body: { apiVersion: 'example.com/v1', kind: 'Wide', ...aWide(19_500) } }
  t.match(await ask('PATCH', `${at}/a?fieldManager=m&force=true`, applied), { code: 200 })
  t.match(await ask('POST', configMapsPath, { body: { metadata: { name: 'b' }, x: items(17_000) } }), { code: 413 })
})

test('two kinds cannot share a path', async (t) => {
  t.throws(() => resourceRegistry([widgetStrategy, widgetStrategy]), { message: /widgets\.example\.com/ })
})

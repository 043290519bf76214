import { test } from 'tap'
import { ConfigMapSchema } from '../../../api/config-map.ts'
import type { AnyObject } from '../../../api/meta.ts'
import { PodSchema } from '../../../api/pod.ts'
import type { TSchema } from '../../../api/schema.ts'
import { leastCpuMs } from '../../../daemon/testing/growth.ts'
import { noFields, setOfPaths } from './field-set.ts'
import { type Manager, managedFieldsOf, managersOf, type Writer } from './managed-entries.ts'
import { afterApply, afterUpdate, applied } from './managers.ts'

const now = '2026-01-02T03:04:05Z'
const later = '2026-01-02T04:00:00Z'

const writer = (manager: string, operation: Writer['operation']): Writer => ({
  manager,
  operation,
  apiVersion: 'v1',
  subresource: '',
})

type State = { readonly object: AnyObject | undefined; readonly managers: readonly Manager[] }
const nothing: State = { object: undefined, managers: [] }

/** The example's objects are valid as they are: nothing decodes them here. */
const asObject = (value: unknown) => value as AnyObject

function apply(schema: TSchema, { object, managers }: State, manager: string, given: object, force = false): State {
  const write = { schema, writer: writer(manager, 'Apply'), now: object === undefined ? now : later, reset: noFields }
  const result = applied(object, given, managers, write)
  const next = asObject(result.object)
  return { object: next, managers: afterApply(object, next, result, write, force) }
}

function update(schema: TSchema, { object, managers }: State, manager: string, next: object): State {
  const write = { schema, writer: writer(manager, 'Update'), now: object === undefined ? now : later, reset: noFields }
  return { object: asObject(next), managers: afterUpdate(object, asObject(next), managers, write) }
}

const aMap = (data: object, metadata: object = {}) => ({
  apiVersion: 'v1',
  kind: 'ConfigMap',
  metadata: { name: 'settings', ...metadata },
  data,
})

const owned = ({ managers }: State, name: string) =>
  managedFieldsOf(managers).find(({ manager }) => manager === name)?.fieldsV1

test('an applier owns the fields that it names, and no other', async (t) => {
  const state = apply(ConfigMapSchema, nothing, 'ann', aMap({ a: '1', b: '2' }, { labels: { app: 'web' } }))
  t.same(managedFieldsOf(state.managers), [
    {
      manager: 'ann',
      operation: 'Apply',
      apiVersion: 'v1',
      time: now,
      fieldsType: 'FieldsV1',
      fieldsV1: { 'f:data': { 'f:a': {}, 'f:b': {} }, 'f:metadata': { 'f:labels': { 'f:app': {} } } },
    },
  ])
})

test('a field that an applier drops goes, unless another manager owns it', async (t) => {
  const first = apply(ConfigMapSchema, nothing, 'ann', aMap({ a: '1', b: '2', c: '3' }))
  const second = apply(ConfigMapSchema, first, 'bob', aMap({ b: '2' }))
  const third = apply(ConfigMapSchema, second, 'ann', aMap({ a: '1' }))
  t.match(third.object, { data: { a: '1', b: '2' } })
  t.notHas(third.object, { data: { c: '3' } })
  t.same(owned(third, 'ann'), { 'f:data': { 'f:a': {} } })
  const last = apply(ConfigMapSchema, third, 'ann', {
    apiVersion: 'v1',
    kind: 'ConfigMap',
    metadata: { name: 'settings' },
  })
  t.match(last.object, { data: { b: '2' } })
  t.equal(owned(last, 'ann'), undefined, 'a manager without fields is not listed')
})

test('an object whose last label its applier drops keeps its name', async (t) => {
  const first = apply(ConfigMapSchema, nothing, 'ann', aMap({ a: '1' }, { labels: { app: 'web' } }))
  const second = apply(ConfigMapSchema, first, 'ann', aMap({ a: '1' }))
  t.same(second.object, aMap({ a: '1' }))
  t.same(owned(second, 'ann'), { 'f:data': { 'f:a': {} } })
})

test('a field of another manager is a conflict where its value changes, unless it is forced', async (t) => {
  const first = update(ConfigMapSchema, nothing, 'bob', aMap({ a: '1', b: '2' }))
  t.doesNotThrow(() => apply(ConfigMapSchema, first, 'ann', aMap({ a: '1' })), 'the same value is shared')
  t.throws(() => apply(ConfigMapSchema, first, 'ann', aMap({ a: '9' })), {
    reason: 'Conflict',
    message: `Apply failed with 1 conflict: conflict with "bob" using v1 at ${now}: .data.a`,
    details: {
      causes: [{ reason: 'FieldManagerConflict', message: `conflict with "bob" using v1 at ${now}`, field: '.data.a' }],
    },
  })
  const byApplier = apply(ConfigMapSchema, nothing, 'cid', aMap({ a: '1', b: '2' }))
  t.throws(() => apply(ConfigMapSchema, byApplier, 'ann', aMap({ a: '9', b: '9' })), {
    message: 'Apply failed with 2 conflicts: conflicts with "cid":\n- .data.a\n- .data.b',
  })
  const forced = apply(ConfigMapSchema, first, 'ann', aMap({ a: '9' }), true)
  t.match(forced.object, { data: { a: '9', b: '2' } })
  t.same(owned(forced, 'bob'), { 'f:data': { '.': {}, 'f:b': {} } })
  t.same(owned(forced, 'ann'), { 'f:data': { 'f:a': {} } })
})

test('an update takes the fields that it changes, and only those', async (t) => {
  const first = apply(ConfigMapSchema, nothing, 'ann', aMap({ a: '1', b: '2' }))
  const changed = update(ConfigMapSchema, first, 'bob', aMap({ a: '9' }))
  t.same(owned(changed, 'ann'), undefined, 'a is another value, b is gone')
  t.same(owned(changed, 'bob'), { 'f:data': { 'f:a': {} } })
  const unchanged = update(ConfigMapSchema, changed, 'cid', aMap({ a: '9' }))
  t.same(managedFieldsOf(unchanged.managers), managedFieldsOf(changed.managers))
})

const aPod = (...containers: readonly object[]) => ({
  apiVersion: 'v1',
  kind: 'Pod',
  metadata: { name: 'web' },
  spec: { containers },
})

test('items of keyed lists are merged by their keys, and go with their applier', async (t) => {
  const main = { name: 'main', image: 'a', ports: [{ containerPort: 53 }, { containerPort: 53, protocol: 'UDP' }] }
  const first = apply(PodSchema, nothing, 'ann', aPod(main))
  const second = apply(PodSchema, first, 'bob', aPod({ name: 'side', image: 'b' }))
  t.match(second.object?.spec, { containers: [{ name: 'main' }, { name: 'side' }] })
  t.match(owned(second, 'ann'), {
    'f:spec': {
      'f:containers': {
        'k:{"name":"main"}': {
          '.': {},
          'f:image': {},
          'f:ports': {
            'k:{"containerPort":53,"protocol":"TCP"}': { '.': {}, 'f:containerPort': {} },
            'k:{"containerPort":53,"protocol":"UDP"}': { '.': {}, 'f:protocol': {} },
          },
        },
      },
    },
  })
  const third = apply(PodSchema, second, 'ann', { apiVersion: 'v1', kind: 'Pod', metadata: { name: 'web' } })
  t.same(third.object?.spec, { containers: [{ name: 'side', image: 'b' }] })
})

test('what was there before the first apply belongs to a manager of its own', async (t) => {
  const live = { object: asObject(aMap({ a: '1' })), managers: [] }
  t.throws(() => apply(ConfigMapSchema, live, 'ann', aMap({ a: '2' })), {
    message: /conflict with "before-first-apply"/,
  })
  const state = apply(ConfigMapSchema, live, 'ann', aMap({ b: '2' }))
  t.match(state.object, { data: { a: '1', b: '2' } })
  t.same(state.managers.map(({ manager }) => manager).sort(), ['ann', 'before-first-apply'])
})

test('the oldest of many update managers are joined', async (t) => {
  let state = nothing
  for (let at = 0; at < 15; at++) {
    const data = Object.fromEntries(Array.from({ length: at + 1 }, (_, key) => [`key-${key}`, '1']))
    state = update(ConfigMapSchema, state, `writer-${at}`, aMap(data))
  }
  t.equal(state.managers.length, 10)
  t.ok(state.managers.some(({ manager }) => manager === 'ancient-changes'))
  t.same(managersOf(managedFieldsOf(state.managers))?.length, 10, 'what is written can be read')
})

test('invalid managed fields are not read', async (t) => {
  const good = { manager: 'x', operation: 'Update', apiVersion: 'v1', fieldsType: 'FieldsV1', fieldsV1: { 'f:a': {} } }
  t.equal(managersOf([good])?.length, 1)
  let deep: object = {}
  for (let level = 0; level < 100; level++) deep = { 'f:a': deep }
  const { fieldsType: _, ...untyped } = good
  for (const bad of [
    { ...good, fieldsV1: { bad: {} } },
    { ...good, fieldsV1: deep },
    { ...good, fieldsV1: 7 },
    { ...good, operation: 'Patch' },
    { ...good, apiVersion: '' },
    { ...good, fieldsType: 'FieldsV2' },
    untyped,
  ]) {
    t.equal(managersOf([good, bad]), undefined, JSON.stringify(bad).slice(0, 200))
  }
})

test('5,000 fields are compared and applied in less than 100 ms of CPU time', async (t) => {
  const data = Object.fromEntries(Array.from({ length: 5000 }, (_, at) => [`key-${at}`, 'value']))
  const first = apply(ConfigMapSchema, nothing, 'ann', aMap(data))
  const tookMs = await leastCpuMs(() => apply(ConfigMapSchema, first, 'ann', aMap({ ...data, 'key-1': 'other' })))
  t.ok(tookMs < 100, `${tookMs} ms`)
})

test('an update of an object without managers tracks nothing; reset managers stay away', async (t) => {
  const untracked = { object: asObject(aMap({ a: '1' })), managers: [] }
  t.same(update(ConfigMapSchema, untracked, 'bob', aMap({ a: '2' })).managers, [])
})

test('the time of a manager moves with what it changes', async (t) => {
  const first = apply(ConfigMapSchema, nothing, 'ann', aMap({ a: '1' }))
  const times = ({ managers }: State) => managers.map(({ manager, time }) => [manager, time])
  t.same(times(apply(ConfigMapSchema, first, 'ann', aMap({ a: '1' }))), [['ann', now]], 'nothing changed')
  t.same(
    times(apply(ConfigMapSchema, first, 'ann', aMap({ a: '2' }))),
    [['ann', later]],
    'the same field, another value',
  )
  t.same(times(apply(ConfigMapSchema, first, 'bob', aMap({ a: '1' }))), [
    ['ann', now],
    ['bob', later],
  ])
  const updated = update(ConfigMapSchema, nothing, 'ann', aMap({ a: '1', b: '2' }))
  t.same(times(update(ConfigMapSchema, updated, 'ann', aMap({ a: '1' }))), [['ann', now]], 'a removal sets nothing')
  t.same(times(update(ConfigMapSchema, updated, 'ann', aMap({ a: '3', b: '2' }))), [['ann', later]])
})

test('an applier is the same in every version, an updater and another subresource are not', async (t) => {
  const first = apply(ConfigMapSchema, nothing, 'ann', aMap({ a: '1' }))
  const moved = { ...first, managers: first.managers.map((one) => ({ ...one, apiVersion: 'v1beta1' })) }
  const again = apply(ConfigMapSchema, moved, 'ann', aMap({ a: '2' }))
  t.same(
    again.managers.map(({ manager, apiVersion }) => [manager, apiVersion]),
    [['ann', 'v1']],
  )
  const updated = update(ConfigMapSchema, first, 'ann', aMap({ a: '3' }))
  t.same(
    updated.managers.map(({ operation }) => operation),
    ['Update'],
    'the update took the only field of the applier of that name',
  )
  const status = { ...first, managers: first.managers.map((one) => ({ ...one, subresource: 'status' })) }
  t.throws(() => apply(ConfigMapSchema, status, 'ann', aMap({ a: '2' })), {
    message: 'Apply failed with 1 conflict: conflict with "ann" with subresource "status": .data.a',
  })
})

test('fields that the path does not change do not belong to its writers', async (t) => {
  const reset = setOfPaths(['data'])
  const write = { schema: ConfigMapSchema, writer: writer('ann', 'Apply'), now, reset }
  const object = asObject(aMap({ a: '1' }, { labels: { app: 'web' } }))
  const result = applied(undefined, object, [], write)
  t.same(
    managedFieldsOf(afterApply(undefined, object, result, write, false)).map(({ fieldsV1 }) => fieldsV1),
    [{ 'f:metadata': { 'f:labels': { 'f:app': {} } } }],
  )
  const updating = { ...write, writer: writer('ann', 'Update') }
  t.same(
    managedFieldsOf(afterUpdate(undefined, object, [], updating)).map(({ fieldsV1 }) => fieldsV1),
    [{ 'f:metadata': { 'f:labels': { '.': {}, 'f:app': {} } } }],
  )
})

test('kubectl goes over from client-side apply without a conflict, save for what changed since', async (t) => {
  const configuration = aMap({ a: '1', b: '2' })
  const annotations = { 'kubectl.kubernetes.io/last-applied-configuration': JSON.stringify(configuration) }
  const first = update(ConfigMapSchema, nothing, 'kubectl-client-side-apply', aMap({ a: '1', b: '2' }, { annotations }))
  t.throws(() => apply(ConfigMapSchema, first, 'ann', aMap({ a: '9' })), { message: /^Apply failed/ })
  const moved = apply(ConfigMapSchema, first, 'kubectl', aMap({ a: '9', b: '2' }))
  t.match(moved.object, { data: { a: '9', b: '2' } })
  t.equal(
    moved.object?.metadata.annotations?.['kubectl.kubernetes.io/last-applied-configuration'],
    '{"apiVersion":"v1","data":{"a":"9","b":"2"},"kind":"ConfigMap","metadata":{"name":"settings"}}\n',
    'it is renewed',
  )
  t.match(owned(moved, 'kubectl-client-side-apply'), { 'f:metadata': { 'f:annotations': { '.': {} } } })
  const changed = update(ConfigMapSchema, first, 'bob', aMap({ a: '5', b: '2' }, { annotations }))
  t.throws(() => apply(ConfigMapSchema, changed, 'kubectl', aMap({ a: '9', b: '9' })), {
    message: `Apply failed with 1 conflict: conflict with "bob" using v1 at ${later}: .data.a`,
  })
  for (const text of ['no JSON', '7', '{"apiVersion":"v2"}', `${'['.repeat(200)}${']'.repeat(200)}`]) {
    const hostile = aMap({ a: '1' }, { annotations: { 'kubectl.kubernetes.io/last-applied-configuration': text } })
    const live = update(ConfigMapSchema, nothing, 'bob', hostile)
    t.throws(
      () => apply(ConfigMapSchema, live, 'kubectl', aMap({ a: '9' })),
      { message: /^Apply failed/ },
      text.slice(0, 20),
    )
  }
})

test('a set that does not change is written as the object that the store holds', async (t) => {
  const fieldsV1 = Object.freeze({ 'f:data': Object.freeze({ 'f:a': Object.freeze({}) }) })
  const entry = { manager: 'ann', operation: 'Update', apiVersion: 'v1', fieldsType: 'FieldsV1', fieldsV1 }
  const [written] = managedFieldsOf(managersOf([entry]) ?? [])
  t.equal(written?.fieldsV1, fieldsV1)
})

test('entries come appliers first, then by time and name; of one writer the last counts', async (t) => {
  const entry = (manager: string, operation: string, time: string, key: string) => ({
    manager,
    operation,
    apiVersion: 'v1',
    time,
    fieldsType: 'FieldsV1',
    fieldsV1: { 'f:data': { [`f:${key}`]: {} } },
  })
  const entries = [
    entry('b', 'Update', now, 'x'),
    entry('z', 'Apply', later, 'x'),
    entry('a', 'Update', now, 'x'),
    entry('c', 'Update', '2025-01-01T00:00:00Z', 'x'),
    entry('z', 'Apply', later, 'last'),
  ]
  const read = managedFieldsOf(managersOf(entries) ?? [])
  t.same(
    read.map(({ manager }) => manager),
    ['z', 'c', 'a', 'b'],
  )
  t.same(read[0]?.fieldsV1, { 'f:data': { 'f:last': {} } })
})

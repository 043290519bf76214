import { test } from 'tap'
import { administrator } from '../../../api/identity.ts'
import type { AnyObject } from '../../../api/meta.ts'
import { aLease, aNode } from '../../../api/testing/builders.ts'
import { kinds } from '../../assembly/control-plane.ts'
import { create, createdPod, fields, pod, update } from '../../testing/admitting.ts'
import { prepareForCreate, prepareForUpdate } from './admission.ts'
import type { KindStrategy } from './strategy.ts'

test('a new node is not ready until a controller has seen it Ready, whatever it reports', async (t) => {
  const notReady = { key: 'node.kubernetes.io/not-ready', effect: 'NoSchedule' } as const
  const camera = { key: 'camera', effect: 'NoExecute' } as const
  const { metadata, ...pi } = aNode({ ready: 'True', taints: [camera] })
  const node = { ...pi, metadata: { name: metadata.name } }
  t.match(create('nodes', node), { spec: { taints: [camera, notReady] } })
  t.match(create('nodes', { ...node, spec: { taints: [notReady] } }), { spec: { taints: [notReady] } })
  const tainted = aNode({ taints: [camera] })
  t.same(Object(update('nodes', aNode(), tainted)).spec, tainted.spec, 'only at its creation')
})

test('names, labels and annotations are checked', async (t) => {
  const named = (metadata: object) =>
    fields(() => create('pods', { ...pod(), metadata: { namespace: 'default', ...metadata } }))
  t.same(named({}), ['metadata.name'])
  t.same(named({ name: 'Web' }), ['metadata.name'])
  t.same(named({ name: 'web', labels: { 'a/b/c': 'x', ok: '-x' } }), ['metadata.labels', 'metadata.labels'])
  t.same(named({ name: 'web', annotations: { 'Upper.example/ok': 'any text at all' } }), [])
  t.same(named({ name: 'web', annotations: { 'a b': '', big: 'x'.repeat(262145) } }), [
    'metadata.annotations',
    'metadata.annotations',
  ])
  t.same(named({ name: 'web', namespace: '' }), ['metadata.namespace'])
  const node = aNode()
  const fresh = (metadata: object) => ({ ...node, metadata: { name: 'pi', ...metadata } })
  t.same(
    fields(() => create('nodes', fresh({ namespace: 'default' }))),
    ['metadata.namespace'],
  )
  const spaceNamed = (name: string) => ({ apiVersion: 'v1', kind: 'Namespace', metadata: { name } }) as const
  t.same(
    fields(() => create('namespaces', spaceNamed('a.b'))),
    ['metadata.name'],
  )
})

test('fields that the server sets are ignored in what a client sends', async (t) => {
  const claimed = {
    uid: 'mine',
    creationTimestamp: '2000-01-01T00:00:00Z',
    generation: 9,
    deletionTimestamp: '2000-01-01T00:00:00Z',
  }
  const made = create('pods', {
    ...pod(),
    metadata: { name: 'web', namespace: 'default', ...claimed },
    status: { phase: 'Running' },
  })
  const { annotations: _recorded, ...metadata } = made.metadata
  t.same(metadata, { name: 'web', namespace: 'default' })
  t.match(made, { status: { phase: 'Pending' } })
  t.throws(() => create('pods', { ...pod(), metadata: { name: 'web', namespace: 'default', resourceVersion: '5' } }), {
    message: 'resourceVersion should not be set on objects to be created',
  })
  const old = {
    ...createdPod(),
    metadata: { name: 'web', namespace: 'default', uid: 'u', deletionTimestamp: '2026-01-01T00:00:00Z' },
  }
  const now = { ...old, metadata: { name: 'web', namespace: 'default', labels: { a: 'b' } } }
  t.same(update('pods', old, now).metadata, { ...now.metadata, uid: 'u', deletionTimestamp: '2026-01-01T00:00:00Z' })
  t.same(
    fields(() => update('pods', old, { ...now, metadata: { ...now.metadata, finalizers: ['a/b'] } })),
    ['metadata.finalizers'],
  )
})

test('defaults and validation of the other kinds', async (t) => {
  const space = create('namespaces', { apiVersion: 'v1', kind: 'Namespace', metadata: { name: 'edge' } })
  t.match(space, {
    metadata: { labels: { 'kubernetes.io/metadata.name': 'edge' } },
    spec: { finalizers: ['kubernetes'] },
    status: { phase: 'Active' },
  })
  const lease = aLease({ spec: { leaseDurationSeconds: 0, leaseTransitions: -1 } })
  const fresh = { ...lease, metadata: { name: 'pi', namespace: 'kube-node-lease' } }
  t.same(
    fields(() => create('leases', fresh)),
    ['spec.leaseDurationSeconds', 'spec.leaseTransitions'],
  )
})

test('an object that is too large with the managers of its fields is stored without them where they are dispensable', async (t) => {
  const kind = { ...kinds.configmaps, largestBytes: 1000 }
  const facts = { nowMs: 0, requester: administrator }
  const map = (length: number) => ({
    apiVersion: 'v1',
    kind: 'ConfigMap',
    metadata: { name: 'settings', namespace: 'default' },
    data: { text: 'x'.repeat(length) },
  })
  const entry = {
    manager: 'kubectl',
    operation: 'Update',
    apiVersion: 'v1',
    fieldsType: 'FieldsV1',
    fieldsV1: {},
  } as const
  const managers = (areDispensable?: true) => ({
    managedFields: () => [entry],
    ...(areDispensable && { areDispensable }),
  })
  const entries = (length: number, areDispensable?: true) =>
    prepareForCreate(kind, map(length), facts, managers(areDispensable)).metadata.managedFields
  t.same(entries(10), [entry])
  t.same(entries(10, true), [entry])
  t.throws(() => entries(800), /too large/i)
  t.equal(entries(800, true), undefined)
  t.throws(() => entries(1000, true), /too large/i, 'too large by itself')
  t.equal(prepareForCreate(kind, map(10), facts).metadata.managedFields, undefined)
  t.throws(() => prepareForCreate(kind, map(1000), facts), /too large/i)
  const refusal = new Error('the managers cannot be read')
  const failing = {
    managedFields: () => {
      throw refusal
    },
  }
  t.throws(() => prepareForCreate(kind, map(10), facts, failing), refusal)
  const old = { ...map(10), metadata: { ...map(10).metadata, managedFields: [entry] } }
  t.same(prepareForUpdate(kind, old, map(20)).metadata, old.metadata, 'they stay where an update names none')
  t.equal(prepareForUpdate(kind, old, map(800)).metadata.managedFields, undefined)
})

test('a subresource prepares and validates its part in place of the kind', async (t) => {
  const seen: string[] = []
  const note = (what: string) => (_: AnyObject, now: AnyObject) => {
    seen.push(what)
    return now
  }
  const check = (what: string) => () => {
    seen.push(what)
    return []
  }
  const { prepareForUpdate: _, validateUpdate: __, validateCreate: ___, ...plain } = kinds.configmaps
  const part = { access: 'update', writes: 'spec', change: (stored: AnyObject) => stored } as const
  const kind: KindStrategy = {
    ...plain,
    prepareForUpdate: note('prepare'),
    validateUpdate: check('validate'),
    subresources: {
      own: { ...part, prepareForUpdate: note('prepare own'), validateUpdate: check('validate own') },
      bare: part,
    },
  }
  const map = { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'settings', namespace: 'default' } }
  const steps = (subresource?: string) => {
    seen.length = 0
    prepareForUpdate(kind, map, map, subresource)
    return [...seen]
  }
  t.same(steps(), ['prepare', 'validate'])
  t.same(steps('own'), ['prepare own', 'validate own'])
  t.same(steps('bare'), ['prepare', 'validate'])
  t.same(prepareForUpdate(plain, map, map), map, 'a kind without rules of its own')
  t.same(prepareForCreate(plain, map, { nowMs: 0, requester: administrator }), map)
})

test('a field of the metadata that the server does not set is left out', async (t) => {
  const map = { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'settings', namespace: 'default' } }
  t.same(Object.keys(create('configmaps', map).metadata), ['name', 'namespace'])
})

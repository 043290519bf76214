import { test } from 'tap'
import { aLease, aNode } from '../../../api/testing/builders.ts'
import { create, createdPod, fields, pod, update } from '../../testing/admitting.ts'

test('a new node is not ready until a controller has seen it Ready, whatever it reports', async (t) => {
  const notReady = { key: 'node.kubernetes.io/not-ready', effect: 'NoSchedule' } as const
  const camera = { key: 'camera', effect: 'NoExecute' } as const
  const { metadata, ...pi } = aNode({ ready: 'True', taints: [camera] })
  const node = { ...pi, metadata: { name: metadata.name } }
  t.match(create('nodes', node), { spec: { taints: [camera, notReady] } })
  t.match(create('nodes', { ...node, spec: { taints: [notReady] } }), { spec: { taints: [notReady] } })
  t.same(update('nodes', aNode(), aNode({ taints: [camera] })), aNode({ taints: [camera] }), 'only at its creation')
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

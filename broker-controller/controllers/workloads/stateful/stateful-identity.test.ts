import { test } from 'tap'
import type { StatefulSet } from '../../../../api/workloads/stateful-set.ts'
import { hasIdentity, ordinalOf, ordinalRange, revisionOf, statefulPod, withIdentity } from './stateful-identity.ts'

const template = { metadata: { labels: { app: 'db' } }, spec: { containers: [{ name: 'main', image: 'db:1' }] } }
const set = (spec: Partial<StatefulSet['spec']> = {}) => ({
  apiVersion: 'apps/v1' as const,
  kind: 'StatefulSet' as const,
  metadata: {
    name: 'db',
    namespace: 'default',
    uid: 'u',
    resourceVersion: '1',
    creationTimestamp: '2026-01-01T00:00:00Z',
  },
  spec: { template, ...spec },
})

test('a name belongs to the set by its beginning and its number', async (t) => {
  t.equal(ordinalOf('db', 'db-0'), 0)
  t.equal(ordinalOf('db', 'db-12'), 12)
  t.equal(ordinalOf('db-1', 'db-1-2'), 2)
  for (const other of ['db', 'db-', 'db-x', 'db-1-2', 'web-1', 'db-01', 'db--1', 'db-1x', 'xdb-1', `db-${2 ** 60}`]) {
    t.equal(ordinalOf('db', other), undefined, other)
  }
})

test('ordinals begin where the set wants them', async (t) => {
  t.same(ordinalRange(set()), { first: 0, end: 1 })
  t.same(ordinalRange(set({ replicas: 3, ordinals: { start: 5 } })), { first: 5, end: 8 })
  t.same(ordinalRange(set({ replicas: 0, ordinals: {} })), { first: 0, end: 0 })
})

test('a pod has a name that stays, and a host name in the domain of its Service', async (t) => {
  const pod = statefulPod(set({ serviceName: 'dbs' }), 2, { name: 'db-6f7c', template })
  t.match(pod, {
    metadata: {
      name: 'db-2',
      namespace: 'default',
      generateName: 'db-',
      labels: {
        app: 'db',
        'statefulset.kubernetes.io/pod-name': 'db-2',
        'apps.kubernetes.io/pod-index': '2',
        'controller-revision-hash': 'db-6f7c',
      },
      ownerReferences: [{ kind: 'StatefulSet', name: 'db', uid: 'u', controller: true, blockOwnerDeletion: true }],
    },
    spec: { hostname: 'db-2', subdomain: 'dbs' },
  })
  t.equal(revisionOf(pod), 'db-6f7c')
  t.notOk('subdomain' in statefulPod(set(), 0, { name: 'db-6f7c', template }).spec)
  t.ok(hasIdentity(pod))
  const unlabelled = { ...pod, metadata: { ...pod.metadata, labels: { app: 'db' } } }
  t.notOk(hasIdentity(unlabelled))
  t.equal(revisionOf(unlabelled), '')
  t.match(withIdentity(unlabelled, 2).metadata.labels, {
    app: 'db',
    'statefulset.kubernetes.io/pod-name': 'db-2',
    'apps.kubernetes.io/pod-index': '2',
  })
})

test('a pod without labels has neither an identity nor a revision', async (t) => {
  const pod = { apiVersion: 'v1', kind: 'Pod', metadata: { name: 'db-0' }, spec: template.spec } as const
  t.equal(revisionOf(pod), '')
  t.notOk(hasIdentity(pod))
})

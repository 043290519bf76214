import { test } from 'tap'
import { aDeployment, aReplicaSet } from '../../../testing/replica-sets.ts'
import { byRevision, newAndOldSets, newReplicaSet, newSetAnnotations, nextRevision } from './deployment-revisions.ts'

const revision = 'deployment.kubernetes.io/revision'
const history = 'deployment.kubernetes.io/revision-history'
const withRevision = (name: string, text: string, day = 1) =>
  aReplicaSet(name, { annotations: { [revision]: text }, creationTimestamp: `2026-01-0${day}T00:00:00Z` })
const annotationsAfter = (present: { readonly [key: string]: string }, number: bigint, given = {}) =>
  newSetAnnotations(aDeployment({ annotations: given }), present, number)

test('the ReplicaSet of the present template is the oldest that has it', async (t) => {
  const sets = [
    aReplicaSet('late', { creationTimestamp: '2026-01-02T00:00:00Z' }),
    aReplicaSet('first'),
    aReplicaSet('other', { image: 'web:0' }),
  ]
  const { newSet, oldSets } = newAndOldSets(aDeployment(), sets)
  t.equal(newSet?.metadata.name, 'first')
  t.same(
    oldSets.map(({ metadata }) => metadata.name),
    ['other', 'late'],
    'the others by their age, as the failure of the oldest is shown',
  )
  t.match(newAndOldSets(aDeployment({ image: 'web:2' }), sets), { newSet: undefined, oldSets: { length: 3 } })
})

test('the next revision is one more than the highest, also above what a double can count', async (t) => {
  t.equal(nextRevision([]), 1n)
  t.equal(nextRevision([withRevision('a', '3'), withRevision('b', '7'), withRevision('c', '5')]), 8n)
  t.equal(nextRevision([withRevision('a', '9007199254740993')]), 9007199254740994n)
  t.equal(nextRevision([aReplicaSet('a'), withRevision('b', 'x'), withRevision('c', '9223372036854775808')]), 1n)
  for (const text of ['x7', '7x', '7.5']) t.equal(nextRevision([withRevision('a', text)]), 1n, text)
  t.equal(nextRevision([withRevision('a', '+2'), withRevision('b', '1 ')]), 3n)
})

test('ReplicaSets are ordered by revision, and by age where one of them has none', async (t) => {
  const ordered = (...sets: readonly ReturnType<typeof aReplicaSet>[]) =>
    sets.toSorted(byRevision).map(({ metadata }) => metadata.name)
  t.ok(byRevision(withRevision('ten', '10'), withRevision('nine', '9', 2)) > 0)
  t.ok(byRevision(withRevision('nine', '9', 2), withRevision('ten', '10')) < 0)
  t.same(ordered(withRevision('ten', '10'), withRevision('nine', '9', 2)), ['nine', 'ten'])
  t.same(ordered(withRevision('late', '4', 2), withRevision('first', '4')), ['first', 'late'])
  t.same(ordered(withRevision('late', '1', 2), withRevision('first', 'x')), ['first', 'late'])
  t.same(ordered(withRevision('late', 'x', 2), withRevision('first', '9')), ['first', 'late'])
})

test('a ReplicaSet gets the annotations of its Deployment, except its own', async (t) => {
  const given = {
    'kubernetes.io/change-cause': 'because',
    'kubectl.kubernetes.io/last-applied-configuration': '{}',
    [revision]: '9',
    [history]: '1,2',
    'deployment.kubernetes.io/desired-replicas': '1',
    'deployment.kubernetes.io/max-replicas': '1',
    'deprecated.deployment.rollback.to': '3',
  }
  t.same(annotationsAfter({ kept: 'a' }, 1n, given), {
    kept: 'a',
    'kubernetes.io/change-cause': 'because',
    [revision]: '1',
  })
  t.same(Object.entries(newSetAnnotations(aDeployment(), {}, 2n)), [[revision, '2']])
})

test('a template that comes back has a new revision, and those before it', async (t) => {
  t.same(annotationsAfter({ [revision]: '2' }, 4n), { [revision]: '4', [history]: '2' })
  t.same(annotationsAfter({ [revision]: '4', [history]: '2' }, 6n), { [revision]: '6', [history]: '2,4' })
  t.same(annotationsAfter({ [revision]: '4' }, 4n), { [revision]: '4' })
  t.same(annotationsAfter({ [revision]: '5' }, 4n), { [revision]: '5' })
  t.same(annotationsAfter({ [revision]: 'x' }, 4n), { [revision]: 'x' }, 'one that is not a number stays')
  t.match(annotationsAfter({ [revision]: '' }, 4n), { [revision]: '4' })
})

test('a history of 2,000 characters drops its first revisions', async (t) => {
  const full = Array.from({ length: 500 }, (_, index) => 100 + index).join()
  t.equal(full.length, 1999)
  const after = (present: string) => annotationsAfter({ [revision]: '7', [history]: present }, 8n)[history] ?? ''
  t.equal(after(full.slice(0, -4)), `${full.slice(0, -4)},7`)
  t.equal(after(full.slice(0, -1)).length, 2000)
  t.equal(after(full), `${full.slice(4)},7`)
  t.equal(after('9'.repeat(2001)), '7')
})

test('a new ReplicaSet has the hash of its template in its name, labels and selector, and its first size', async (t) => {
  const deployment = aDeployment({ minReadySeconds: 5, status: { collisionCount: 1 }, annotations: { a: 'b' } })
  const set = newReplicaSet(deployment, [aReplicaSet('old', { replicas: 10 })], 3n)
  const hash = set.metadata.labels?.['pod-template-hash'] ?? ''
  t.match(hash, /^[a-z0-9]+$/)
  t.match(set, {
    metadata: {
      name: `web-${hash}`,
      namespace: 'default',
      labels: { app: 'web', 'pod-template-hash': hash },
      ownerReferences: [{ kind: 'Deployment', name: 'web', controller: true }],
      annotations: {
        a: 'b',
        [revision]: '3',
        'deployment.kubernetes.io/desired-replicas': '10',
        'deployment.kubernetes.io/max-replicas': '13',
      },
    },
    spec: {
      replicas: 3,
      minReadySeconds: 5,
      selector: { matchLabels: { app: 'web', 'pod-template-hash': hash } },
      template: { metadata: { labels: { app: 'web', 'pod-template-hash': hash } } },
    },
  })
  t.not(newReplicaSet(aDeployment(), [], 3n).metadata.name, set.metadata.name, 'a collision makes another name')
  t.equal(newReplicaSet(aDeployment(), [], 3n).spec.replicas, 10)
  t.notOk('minReadySeconds' in newReplicaSet(aDeployment(), [], 3n).spec)
})

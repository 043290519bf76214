import { test } from 'tap'
import { aDeployment, aReplicaSet } from '../../../testing/replica-sets.ts'
import {
  byAge,
  countIn,
  proportionalSizes,
  rollingLimits,
  sizeAnnotations,
  sizeOf,
  sizeOfNewSet,
  sumOf,
  sumOfSizes,
} from './deployment-sizes.ts'

const rolling = (maxSurge: number | string, maxUnavailable: number | string, replicas = 10) =>
  aDeployment({ replicas, strategy: { type: 'RollingUpdate', rollingUpdate: { maxSurge, maxUnavailable } } })
const maxReplicas = (count: number) => ({ 'deployment.kubernetes.io/max-replicas': String(count) })

test('shares of the limits are rounded so that there is room to update: more pods up, missing ones down', async (t) => {
  t.same(rollingLimits(rolling('25%', '25%')), { maxSurge: 3, maxUnavailable: 2 })
  t.same(rollingLimits(rolling(1, 0)), { maxSurge: 1, maxUnavailable: 0 })
})

test('an update whose limits round to nothing may have one pod missing', async (t) => {
  t.same(rollingLimits(rolling(0, '1%')), { maxSurge: 0, maxUnavailable: 1 })
  t.same(rollingLimits(rolling(0, 0)), { maxSurge: 0, maxUnavailable: 1 })
  t.same(rollingLimits(rolling(0, 2)), { maxSurge: 0, maxUnavailable: 2 })
})

test('at most as many pods can be missing as are wanted', async (t) => {
  t.same(rollingLimits(rolling(1, 5, 3)), { maxSurge: 1, maxUnavailable: 3 })
  t.same(rollingLimits(rolling(0, 0, 0)), { maxSurge: 0, maxUnavailable: 0 })
})

test('Recreate has no limits, and its new ReplicaSet its whole size at once', async (t) => {
  const recreate = aDeployment({ strategy: { type: 'Recreate' } })
  t.same(rollingLimits(recreate), { maxSurge: 0, maxUnavailable: 0 })
  const newSet = aReplicaSet('new')
  t.equal(sizeOfNewSet(recreate, [newSet, aReplicaSet('old', { replicas: 10 })], newSet), 10)
})

test('a new ReplicaSet grows by what the surge leaves, and never above what is wanted', async (t) => {
  const sizeBeside = (old: number, size = 0) => {
    const newSet = aReplicaSet('new', { replicas: size })
    return sizeOfNewSet(rolling(3, 0), [aReplicaSet('old', { replicas: old }), newSet], newSet)
  }
  t.equal(sizeBeside(10), 3)
  t.equal(sizeBeside(8, 3), 5)
  t.equal(sizeBeside(0), 10)
  t.equal(sizeBeside(0, 4), 10)
  t.equal(sizeBeside(12), 1)
  t.equal(sizeBeside(13), 0)
  t.equal(sizeBeside(20, 2), 2, 'it does not shrink for the others')
  const newSet = aReplicaSet('new')
  const plain = aDeployment({ strategy: { type: 'RollingUpdate' } })
  t.equal(sizeOfNewSet(plain, [newSet, aReplicaSet('old', { replicas: 9 })], newSet), 1)
})

test('one pod is wanted where no number is given', async (t) => {
  t.equal(sizeOf({ spec: {} }), 1)
  t.equal(sizeOf({ spec: { replicas: 0 } }), 0)
})

test('sizes are added up, and counts of those that report them', async (t) => {
  const sets = [
    aReplicaSet('a', { replicas: 2, status: { readyReplicas: 1 } }),
    aReplicaSet('b', { replicas: 3, status: { readyReplicas: 2 } }),
    aReplicaSet('c', { replicas: 1 }),
  ]
  t.equal(sumOfSizes(sets), 6)
  t.equal(sumOf('readyReplicas', sets), 3)
  t.equal(sumOf('availableReplicas', sets), 0)
})

test('the annotations of sizes are numbers of 32 bits, and anything else is ignored', async (t) => {
  t.same(sizeAnnotations(rolling('25%', 0)), {
    'deployment.kubernetes.io/desired-replicas': '10',
    'deployment.kubernetes.io/max-replicas': '13',
  })
  const read = (text: string) => countIn(aReplicaSet('a', { annotations: { count: text } }), 'count')
  t.equal(read('13'), 13)
  t.equal(read('2147483647'), 2_147_483_647)
  for (const wrong of ['2147483648', '12345678901', '-1', '1.5', 'x13', '13x', ''])
    t.equal(read(wrong), undefined, wrong)
  t.equal(countIn(aReplicaSet('a'), 'count'), undefined)
})

const scaled = (
  replicas: number,
  sets: readonly { readonly name: string; readonly size: number; readonly day?: number; readonly most?: number }[],
  more: { readonly status?: { readonly replicas: number } } = {},
) => {
  const deployment = aDeployment({ ...rolling(3, 2, replicas).spec, ...more })
  const active = sets.map(({ name, size, day = 1, most = 13 }) =>
    aReplicaSet(name, {
      replicas: size,
      creationTimestamp: `2026-01-0${day}T00:00:00Z`,
      ...(most > 0 && { annotations: maxReplicas(most) }),
    }),
  )
  return Object.fromEntries(proportionalSizes(deployment, active).map(({ set, size }) => [set.metadata.name, size]))
}

test('in the middle of a rollout each ReplicaSet keeps its share', async (t) => {
  t.same(
    scaled(20, [
      { name: 'old', size: 8 },
      { name: 'new', size: 5 },
    ]),
    { old: 14, new: 9 },
  )
  t.same(
    scaled(5, [
      { name: 'old', size: 8 },
      { name: 'new', size: 5 },
    ]),
    { old: 5, new: 3 },
  )
  t.same(
    scaled(10, [
      { name: 'old', size: 8 },
      { name: 'new', size: 5 },
    ]),
    { old: 8, new: 5 },
    'nothing to share',
  )
})

test('what rounding leaves goes to the largest, of those as large to the newest', async (t) => {
  t.same(
    scaled(11, [
      { name: 'old', size: 5 },
      { name: 'new', size: 5, day: 2 },
      { name: 'small', size: 3 },
    ]),
    { new: 6, old: 5, small: 3 },
  )
  t.same(
    scaled(30, [
      { name: 'a', size: 1 },
      { name: 'b', size: 1, day: 2 },
    ]),
    { b: 30, a: 3 },
  )
})

test('fewer replicas are taken from the largest first, of those as large from the oldest', async (t) => {
  t.same(
    scaled(9, [
      { name: 'new', size: 5, day: 2 },
      { name: 'old', size: 5 },
      { name: 'small', size: 3 },
    ]),
    { old: 4, new: 5, small: 3 },
  )
})

test('without replicas all are taken', async (t) => {
  t.same(
    scaled(0, [
      { name: 'old', size: 8 },
      { name: 'new', size: 5 },
    ]),
    { old: 0, new: 0 },
  )
})

test('without the annotation the share is of what the Deployment had, and nothing of an unknown number', async (t) => {
  const sets = [
    { name: 'old', size: 8, most: 0 },
    { name: 'new', size: 5, most: 0 },
  ]
  t.same(scaled(20, sets, { status: { replicas: 13 } }), { old: 14, new: 9 })
  t.same(scaled(20, sets), { old: 18, new: 5 })
  t.same(scaled(5, sets), { old: 3, new: 5 })
})

test('a share is never more than what is left to add or to take', async (t) => {
  const sets = (most: number, other: number) => [
    { name: 'a', size: 5, day: 2, most },
    { name: 'b', size: 5, most: other },
  ]
  t.same(scaled(10, sets(10, 5)), { a: 7, b: 6 })
  t.same(
    scaled(5, [
      { name: 'a', size: 5, most: 10 },
      { name: 'b', size: 5, day: 2, most: 20 },
    ]),
    { a: 4, b: 4 },
  )
  t.same(scaled(7, sets(5, 5)), { a: 5, b: 5 }, 'nothing is to be added, whatever the annotations')
})

test('ReplicaSets are ordered by their age, then by their name', async (t) => {
  const sets = [aReplicaSet('b'), aReplicaSet('late', { creationTimestamp: '2026-01-02T00:00:00Z' }), aReplicaSet('a')]
  t.ok(byAge(aReplicaSet('a'), aReplicaSet('b')) < 0)
  t.ok(byAge(aReplicaSet('b'), aReplicaSet('a')) > 0)
  t.same(
    sets.toSorted(byAge).map(({ metadata }) => metadata.name),
    ['a', 'b', 'late'],
  )
})

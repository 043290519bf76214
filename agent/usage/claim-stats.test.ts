import { test } from 'tap'
import type { Summary } from '../../api/node/stats.ts'
import { aPod } from '../../api/testing/builders.ts'
import { withClaims } from './claim-stats.ts'

const time = '2026-01-01T00:00:00Z'
const summary = (...uids: readonly string[]): Summary => ({
  node: { nodeName: 'pi-1' },
  pods: uids.map((uid) => ({
    podRef: { name: uid, namespace: 'shop', uid },
    containers: [],
    volume: [{ name: 'tmp', time, usedBytes: 1 }],
  })),
})
const pod = aPod({
  ...{ name: 'db-0', namespace: 'shop', uid: 'u-1' },
  spec: {
    volumes: [
      { name: 'tmp', emptyDir: {} },
      { name: 'data', persistentVolumeClaim: { claimName: 'db' } },
      { name: 'cache', ephemeral: {} },
      { name: 'nas', persistentVolumeClaim: { claimName: 'photos' } },
    ],
  },
})
const pool = { id: 'p', capacityBytes: 100, availableBytes: 40 }
const other = { id: 'q', capacityBytes: 900, availableBytes: 80 }

test('the summary has the volumes of claims with their claims, and the space of their pools', async (t) => {
  const volumes = [
    { claim: 'shop/db', pool: 'p', usedBytes: 7 },
    { claim: 'shop/db-0-cache', pool: 'q', usedBytes: 3 },
    { claim: 'other/photos', pool: 'p', usedBytes: 9 },
  ]
  const { pods } = withClaims(summary('u-1', 'u-2'), [pod], { pools: [pool, other], volumes }, time)
  const space = { time, capacityBytes: 100, availableBytes: 40 }
  t.same(pods[0]?.volume, [
    { name: 'tmp', time, usedBytes: 1 },
    { ...space, name: 'data', usedBytes: 7, pvcRef: { name: 'db', namespace: 'shop' } },
    {
      time,
      capacityBytes: 900,
      availableBytes: 80,
      name: 'cache',
      usedBytes: 3,
      pvcRef: { name: 'db-0-cache', namespace: 'shop' },
    },
  ])
  t.same(pods[1]?.volume, [{ name: 'tmp', time, usedBytes: 1 }])
})

test('without a pool the summary stays as it is', async (t) => {
  const before = summary('u-1')
  t.equal(
    withClaims(before, [pod], { pools: [], volumes: [{ claim: 'shop/db', pool: 'p', usedBytes: 7 }] }, time),
    before,
  )
})

test('the summary has what drivers state about the volumes of their pods', async (t) => {
  const bytes = { available: 60, total: 100, used: 40 }
  const inodes = { available: 5, total: 9, used: 4 }
  const condition = { abnormal: false, message: '' }
  const drivers = [
    { podUID: 'u-1', volume: 'pv', claim: 'shop/photos', bytes, inodes, condition },
    { podUID: 'u-1', volume: 'inline', bytes },
    { podUID: 'u-1', volume: 'old', claim: 'shop/gone', bytes },
  ]
  const { pods } = withClaims(summary('u-1', 'u-2'), [pod], { pools: [], volumes: [], drivers }, time)
  const space = { time, availableBytes: 60, capacityBytes: 100, usedBytes: 40 }
  t.same(pods[0]?.volume?.slice(1), [
    {
      ...{ ...space, name: 'nas', pvcRef: { name: 'photos', namespace: 'shop' } },
      ...{ inodesFree: 5, inodes: 9, inodesUsed: 4, volumeHealthStats: { abnormal: false } },
    },
    { ...space, name: 'inline' },
  ])
})

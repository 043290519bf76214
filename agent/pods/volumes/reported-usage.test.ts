import { test } from 'tap'
import { reportedUsage } from './reported-usage.ts'

const mib = 2 ** 20
const id = 'p'
const pool = (availableBytes: number, more: object = {}) => ({
  id,
  capacityBytes: 10_000 * mib,
  availableBytes,
  ...more,
})
const used = (uid: string, usedBytes: number) => ({ uid, usedBytes })

test('the first sizes are reported, and none where there are none', async (t) => {
  t.same(reportedUsage({}, { pools: [], volumes: [], trash: [] }), {})
  const first = { pools: [pool(5000 * mib)], volumes: [used('a', 1)] }
  t.same(reportedUsage({}, { pools: [pool(5000 * mib)], volumes: [used('a', 1)], trash: [] }), first)
})

test('changes below 64 MiB or 1 % are not reported', async (t) => {
  const before = { pools: [pool(5000 * mib)], volumes: [used('a', 100 * mib), used('b', 20_000 * mib)] }
  const after = (available: number, a: number, b: number) =>
    reportedUsage(before, {
      pools: [pool(available * mib)],
      volumes: [used('a', a * mib), used('b', b * mib)],
      trash: [],
    })
  const same = after(5063, 163, 20_199)
  t.equal(same.pools, before.pools)
  t.equal(same.volumes, before.volumes)
  t.same(after(5064, 100, 20_000).pools, [pool(5064 * mib)])
  t.same(after(5000, 164, 20_000).volumes?.[0], used('a', 164 * mib))
  t.same(after(5000, 100, 20_200).volumes?.[1], used('b', 20_200 * mib))
})

test('a pool or a volume that comes or goes is reported', async (t) => {
  const before = { pools: [pool(5000)], volumes: [used('a', 1)] }
  t.same(reportedUsage(before, { pools: [], volumes: [], trash: [] }), { pools: [], volumes: [] })
  t.same(reportedUsage(before, { pools: [pool(5000, { inTrash: 1 })], volumes: [used('b', 1)], trash: [] }), {
    pools: [pool(5000, { inTrash: 1 })],
    volumes: [used('b', 1)],
  })
})

test('what is in the trash is reported when it changes, and every six hours as it gets older', async (t) => {
  const entry = (uid: string, keptSeconds: number, more: object = {}) => {
    return { ...{ uid, pool: 'p', volume: uid, folder: uid, keptSeconds, keepSeconds: 7 * 86_400 }, ...more }
  }
  const after = (...trash: readonly ReturnType<typeof entry>[]) =>
    reportedUsage(before, { pools: [], volumes: [], trash }).trash
  const before = { trash: [entry('b', 0), entry('a', 3600)] }
  t.equal(after(entry('b', 3600), entry('a', 3600 + 6 * 3600 - 1)), before.trash)
  t.same(after(entry('b', 3600), entry('a', 3600 + 6 * 3600)), [entry('b', 3600), entry('a', 7 * 3600)])
  t.same(after(entry('b', 0)), [entry('b', 0)])
  t.same(after(entry('c', 0), entry('a', 3600))?.[0]?.uid, 'c')
  t.same(after(entry('b', 0, { usedBytes: 5 }), entry('a', 3600))?.[0], entry('b', 0, { usedBytes: 5 }))
  t.same(after(), [])
})

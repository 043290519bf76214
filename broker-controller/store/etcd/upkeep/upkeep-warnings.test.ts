import { test } from 'tap'
import { compactionWarning, isMarkDue, spaceWarning } from './upkeep-warnings.ts'

const mebibyte = 2 ** 20
const hourMs = 3_600_000

test('a database at 80 % of its quota gets a warning with both sizes', (t) => {
  const quota = 2_000 * mebibyte
  const at = (allocated: number, used = allocated) =>
    spaceWarning({ allocated: allocated * mebibyte, used: used * mebibyte, quota })
  t.equal(at(1_599), undefined)
  t.same(at(1_600), {
    reason: 'Space',
    message:
      'the database of etcd has 1.6 GiB of its quota of 2.0 GiB, and at the quota etcd refuses writes. ' +
      'Compact and defragment it, or raise --quota-backend-bytes of etcd',
  })
  t.end()
})

test('where less than half of the file is in use, defragmenting is enough', (t) => {
  const warning = (used: number) => spaceWarning({ allocated: 100, used, quota: 100 })?.message
  t.match(warning(49), /refuses writes\. Defragment it \(etcdctl defrag\)$/)
  t.match(warning(50), /Compact and defragment it/)
  t.end()
})

test('a revision that is still there after two hours gets a warning after 10,000 more', (t) => {
  const mark = { revision: 7, atMs: 1_000 }
  t.equal(isMarkDue(mark, 1_000 + 2 * hourMs - 1), false)
  t.equal(isMarkDue(mark, 1_000 + 2 * hourMs), true)
  const atMs = 1_000 + 3.5 * hourMs
  t.equal(compactionWarning(mark, { revision: 10_007, atMs }), undefined)
  t.same(compactionWarning(mark, { revision: 10_008, atMs }), {
    reason: 'Compaction',
    message:
      'etcd keeps all 10001 revisions of the last 3 h, so its database grows. ' +
      'Start it with --auto-compaction-mode=periodic --auto-compaction-retention=5m',
  })
  t.end()
})

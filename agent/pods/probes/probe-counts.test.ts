import { test } from 'tap'
import { countProbe, nothingProbed, probeDurationBuckets } from './probe-counts.ts'

test('each result is counted, and the time of those that succeeded', async (t) => {
  const after = [
    ['success', 25],
    ['success', 30],
    ['failure', 20_000],
    ['unknown', 1],
    ['success', 20_000],
  ] as const
  const counts = after.reduce((sum, [result, ms]) => countProbe(sum, result, ms), nothingProbed)
  t.same(counts.results, { success: 3, failure: 1, unknown: 1 })
  t.equal(counts.seconds, 20.055)
  const at = (bucket: (typeof probeDurationBuckets)[number]) => counts.within[probeDurationBuckets.indexOf(bucket)]
  t.same([at(0.01), at(0.025), at(0.05), at(10)], [0, 1, 2, 2], 'a bucket holds all that took no longer')
})

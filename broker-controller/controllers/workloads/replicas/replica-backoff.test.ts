import { test } from 'tap'
import type { Pod } from '../../../../api/pod.ts'
import { replacementWaitMs } from './replica-backoff.ts'

const nowMs = Date.parse('2026-01-01T12:00:00Z')
const pod = (createdMs: number): Pod => ({
  apiVersion: 'v1',
  kind: 'Pod',
  metadata: { name: 'web', creationTimestamp: new Date(createdMs).toISOString() },
  spec: { containers: [] },
})
/** As many that failed, the last one now. */
const failed = (count: number) => Array.from({ length: count }, (_, index) => pod(nowMs - index))

test('as many failed pods as replicas are replaced at once, and each further round waits twice as long', async (t) => {
  const waits = (replicas: number, ...counts: readonly number[]) =>
    Promise.all(counts.map((count) => replacementWaitMs(failed(count), replicas, nowMs)))
  t.same(await waits(3, 0, 1, 3), [0, 0, 0])
  t.same(await waits(3, 4, 6, 7, 9, 10), [1_000, 1_000, 2_000, 2_000, 4_000])
  t.same(await waits(1, 1, 2, 3, 10, 11, 500), [0, 1_000, 2_000, 256_000, 300_000, 300_000])
  t.same(await waits(0, 1, 2), [0, 1_000])
})

test('pods that ran for long do not delay their replacements', async (t) => {
  const long = Array.from({ length: 50 }, () => pod(nowMs - 1_800_000))
  t.equal(await replacementWaitMs(long, 1, nowMs), 0)
  t.equal(await replacementWaitMs([...long, ...failed(2)], 1, nowMs), 1_000)
})

test('the wait is counted from the newest pod, and a clock that was set back does not prolong it', async (t) => {
  t.equal(await replacementWaitMs([pod(nowMs - 400), pod(nowMs - 5_000)], 1, nowMs), 600)
  t.equal(await replacementWaitMs([pod(nowMs - 1_000), pod(nowMs - 5_000)], 1, nowMs), 0)
  t.equal(await replacementWaitMs([pod(nowMs + 3_600_000), pod(nowMs + 3_600_000)], 1, nowMs), 0)
  t.equal(await replacementWaitMs([pod(nowMs + 3_600_000), pod(nowMs), pod(nowMs)], 1, nowMs), 1_000)
})

test('of replicas that are rejected for a day a bounded number fails', async (t) => {
  const pods: Pod[] = []
  let clockMs = nowMs
  const countAt = new Map<number, number>()
  for (const endMs of [600_000, 86_400_000]) {
    while (clockMs < nowMs + endMs) {
      clockMs += Math.max(200, await replacementWaitMs(pods, 3, clockMs))
      for (let replica = 0; replica < 3; replica++) pods.push(pod(clockMs))
    }
    countAt.set(endMs, pods.length)
  }
  t.ok((countAt.get(600_000) ?? 0) <= 36, `${countAt.get(600_000)} in ten minutes`)
  t.ok((countAt.get(86_400_000) ?? 0) <= 1_500, `${countAt.get(86_400_000)} in a day`)
})

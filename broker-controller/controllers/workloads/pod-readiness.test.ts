import { test } from 'tap'
import type { Pod } from '../../../api/pod.ts'
import { availableAtMs, isAvailablePod, nextAvailableMs } from './pod-readiness.ts'

const readySince = (ms: number | undefined, status: 'True' | 'False' = 'True'): Pod => ({
  ...{ apiVersion: 'v1', kind: 'Pod', metadata: { name: 'a' }, spec: { containers: [] } },
  status: {
    conditions: [
      { type: 'Ready', status, ...(ms !== undefined && { lastTransitionTime: new Date(ms).toISOString() }) },
    ],
  },
})
const next = (pods: readonly Pod[], seconds: number, nowMs: number): number | undefined => {
  const steps = nextAvailableMs(pods, seconds, nowMs)
  for (;;) {
    const { done, value } = steps.next()
    if (done) return value
  }
}

test('a pod is available when it has been ready for minReadySeconds', async (t) => {
  for (const [what, pod, seconds, nowMs, isAvailable] of [
    ['ready, and no time is asked', readySince(5_000), 0, 5_000, true],
    ['ready, at an unknown time', readySince(undefined), 0, 5_000, true],
    ['ready for less', readySince(5_000), 10, 14_999, false],
    ['ready for exactly as long', readySince(5_000), 10, 15_000, false],
    ['ready for longer', readySince(5_000), 10, 15_001, true],
    ['ready since an unknown time', readySince(undefined), 10, 15_001, false],
    ['not ready', readySince(5_000, 'False'), 0, 15_001, false],
    ['without conditions', { ...readySince(0), status: {} }, 0, 15_001, false],
  ] as const) {
    t.equal(isAvailablePod(pod, seconds, nowMs), isAvailable, what)
  }
  t.equal(availableAtMs(readySince(5_000), 10), 15_000)
})

test('the next time that one becomes available', async (t) => {
  const pods = [readySince(9_000), readySince(5_000), readySince(7_000), readySince(1_000, 'False')]
  t.equal(next(pods, 10, 10_000), 15_000, 'the first')
  t.equal(next(pods, 10, 15_000), 15_000, 'at its time it is not available yet')
  t.equal(next(pods, 10, 15_001), 17_000)
  t.equal(next(pods, 10, 19_001), undefined, 'all are')
  t.equal(next(pods, 0, 0), undefined, 'no time is asked')
})

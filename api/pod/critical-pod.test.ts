import { test } from 'tap'
import { aPod } from '../testing/builders.ts'
import { isCriticalPod } from './critical-pod.ts'

test('the machine needs its own pods, and those of the system’s priorities', async (t) => {
  t.equal(isCriticalPod(aPod()), false)
  t.equal(isCriticalPod(aPod({ priority: 1_000_000_000 })), false)
  t.equal(isCriticalPod(aPod({ priority: 2_000_000_000 })), true)
  t.equal(isCriticalPod(aPod({ annotations: { 'kubernetes.io/config.source': 'api' } })), false)
  t.equal(isCriticalPod(aPod({ annotations: { 'kubernetes.io/config.source': 'file' } })), true)
  t.equal(isCriticalPod(aPod({ annotations: { 'kubernetes.io/config.mirror': 'x' } })), true)
})

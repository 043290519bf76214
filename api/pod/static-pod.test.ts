import { test } from 'tap'
import { aPod } from '../testing/builders.ts'
import { isCriticalPod } from './critical-pod.ts'
import { configSourceAnnotation, isMirrorPod, isStaticPod, mirroredHash } from './static-pod.ts'

test('what a machine runs of its own accord, its mirror, and what is above all others are critical', async (t) => {
  const plain = aPod({ priority: 1_999_999_999 })
  const fromApi = aPod({ annotations: { [configSourceAnnotation]: 'api' } })
  const fromFile = aPod({ annotations: { [configSourceAnnotation]: 'file' } })
  const mirror = aPod({ annotations: { 'kubernetes.io/config.mirror': 'abc' } })
  t.same([plain, fromApi, fromFile].map(isStaticPod), [false, false, true])
  t.same([fromFile, mirror].map(isMirrorPod), [false, true])
  t.equal(mirroredHash(mirror), 'abc')
  const system = aPod({ priority: 2_000_000_000 })
  t.same([plain, fromApi, fromFile, mirror, system].map(isCriticalPod), [false, false, true, true, true])
})

import { test } from 'tap'
import type { PodSpec } from '../pod.ts'
import { isSignificantPodUpdate } from './significant-update.ts'

test('a change of a pod is judged where it brings another image or container', async (t) => {
  const old: PodSpec = {
    initContainers: [{ name: 'i', image: 'a' }],
    containers: [{ name: 'c', image: 'a' }],
    ephemeralContainers: [{ name: 'e', image: 'a' }],
  }
  const isJudged = (change: Partial<PodSpec>) => isSignificantPodUpdate(old, { ...old, ...change })
  t.notOk(isJudged({}))
  t.notOk(isJudged({ tolerations: [{ operator: 'Exists' }], activeDeadlineSeconds: 1 }))
  t.ok(isJudged({ containers: [{ name: 'c', image: 'b' }] }))
  t.ok(isJudged({ initContainers: [{ name: 'i', image: 'b' }] }))
  t.ok(isJudged({ containers: [...old.containers, { name: 'd', image: 'a' }] }))
  t.ok(isJudged({ initContainers: [] }))
  t.ok(
    isJudged({
      ephemeralContainers: [
        { name: 'e', image: 'a' },
        { name: 'f', image: 'a' },
      ],
    }),
  )
  t.ok(isJudged({ ephemeralContainers: [{ name: 'e', image: 'b' }] }))
  t.notOk(isJudged({ ephemeralContainers: [] }))
})

test('of several containers each is compared, and lists may be missing', async (t) => {
  const old: PodSpec = {
    containers: [
      { name: 'a', image: 'a' },
      { name: 'b', image: 'b' },
    ],
  }
  t.notOk(isSignificantPodUpdate(old, { containers: [...old.containers] }))
  t.ok(
    isSignificantPodUpdate(old, {
      containers: [
        { name: 'a', image: 'a' },
        { name: 'b', image: 'c' },
      ],
    }),
  )
  t.ok(isSignificantPodUpdate(old, { ...old, ephemeralContainers: [{ name: 'e', image: 'a' }] }))
  t.ok(isSignificantPodUpdate(old, { ...old, initContainers: [{ name: 'i', image: 'a' }] }))
})

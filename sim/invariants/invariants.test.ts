import { test } from 'tap'
import type { Fact } from '../story/facts.ts'
import { answeredIsStored } from './answered-is-stored.ts'
import { completedStaysCompleted } from './completed-stays-completed.ts'
import { healthyIsNotEvicted } from './healthy-is-not-evicted.ts'
import { type Invariant, judgeOf } from './invariant.ts'
import { onePodOfAName } from './one-pod-of-a-name.ts'
import { programsRun } from './programs-run.ts'
import { watchIsWhole } from './watch-is-whole.ts'

/** The violations of these facts, each a second after the one before unless it has a time. */
function violationsOf<S>(invariant: Invariant<S>, ...facts: readonly (Fact & { readonly atMs?: number })[]) {
  const judge = judgeOf(invariant)
  return facts.flatMap((fact, i) => judge({ atMs: i * 1000, ...fact }) ?? [])
}

const container = (node: string, podUID: string, pod = 'db-0') => ({
  ...{ node, pod, podUID, container: 'main', id: `${node}/${podUID}` },
})
const stored = (version: number) => ({
  ...({ kind: 'stored', resource: 'pods', namespace: 'default', name: 'web', version, body: undefined } as const),
})
const watched = (version: number) => ({
  ...({ kind: 'watched', resource: 'pods', namespace: 'default', name: 'web', version } as const),
})
const answered = (version: number) => ({
  ...({ kind: 'answered', resource: 'pods', namespace: 'default', name: 'web', uid: 'u', version } as const),
})

test('a second pod of a name is found while the first one runs, and not after its end', async (t) => {
  const invariant = onePodOfAName((pod) => pod.startsWith('db'))
  const first = { kind: 'started', ...container('node-1', 'a') } as const
  const second = { kind: 'started', ...container('node-2', 'b') } as const
  const end = { kind: 'ended', exitCode: 0, ...container('node-1', 'a') } as const
  t.same(violationsOf(invariant, first, second), [
    'at most one pod of the name of a StatefulSet runs: db-0 starts on node-2 (b) and runs on node-1 (a)',
  ])
  t.same(violationsOf(invariant, first, end, second), [])
  t.same(violationsOf(invariant, first, end, first), [], 'a container is restarted')
  const web = (node: string, uid: string) => ({ kind: 'started', ...container(node, uid, 'web') }) as const
  t.same(violationsOf(invariant, web('node-1', 'a'), web('node-2', 'b')), [])
})

test('a container that starts after it has completed is found, and not one that failed', async (t) => {
  const invariant = completedStaysCompleted((pod) => pod.startsWith('sums'))
  const start = { kind: 'started', ...container('node-1', 'a', 'sums-x') } as const
  const end = (exitCode: number) => ({ kind: 'ended', exitCode, ...container('node-1', 'a', 'sums-x') }) as const
  t.same(violationsOf(invariant, start, end(0), start).length, 1)
  t.same(violationsOf(invariant, start, end(255), start), [])
})

test('a write that was answered before it was on the disk is found', async (t) => {
  t.same(violationsOf(answeredIsStored(), stored(4), answered(5)).length, 1)
  t.same(violationsOf(answeredIsStored(), answered(5)).length, 1)
  t.same(violationsOf(answeredIsStored(), stored(5), answered(5)), [])
  t.same(violationsOf(answeredIsStored(), stored(6), answered(5)), [], 'it was changed since')
})

test('a watch that misses, repeats or goes back is found', async (t) => {
  const listed = { kind: 'listed', resource: 'pods', version: 2 } as const
  const all = [stored(1), stored(2), listed, stored(3), stored(5)]
  t.same(violationsOf(watchIsWhole(), ...all, watched(3), watched(5)), [])
  t.match(violationsOf(watchIsWhole(), ...all, watched(5)), [/version 3 is missing between 2 and 5/])
  t.match(violationsOf(watchIsWhole(), ...all, watched(3), watched(3)), [/version 3 follows 3/])
  t.same(violationsOf(watchIsWhole(), ...all, { ...listed, version: 5 }), [], 'a new list covers what came before')
})

test('an eviction from a node that has been healthy is found, and not one soon after it is back', async (t) => {
  const health = (isHealthy: boolean, atMs: number) => ({ kind: 'health', node: 'node-1', isHealthy, atMs }) as const
  const evicted = (atMs: number) => ({ kind: 'evicted', node: 'node-1', pod: 'web', atMs }) as const
  t.same(violationsOf(healthyIsNotEvicted, health(true, 0), evicted(200_000)).length, 1)
  t.same(violationsOf(healthyIsNotEvicted, health(true, 0), health(false, 1_000), evicted(400_000)), [])
  t.same(violationsOf(healthyIsNotEvicted, health(false, 0), health(true, 390_000), evicted(400_000)), [])
  t.same(
    violationsOf(healthyIsNotEvicted, health(false, 0), health(true, 9_000), health(true, 300_000), evicted(310_000))
      .length,
    1,
  )
})

test('a program that ends by itself is found', async (t) => {
  t.same(violationsOf(programsRun, { kind: 'crashed', program: 'node-1', because: 'Loop failed' }), [
    'no program ends by itself: node-1: Loop failed',
  ])
})

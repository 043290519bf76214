import { test } from 'tap'
import { secretManifest } from '../people/secrets.ts'
import type { Fact } from '../story/facts.ts'
import { answeredIsStored } from './answered-is-stored.ts'
import { budgetsHold } from './budgets-hold.ts'
import { claimDataStays } from './claim-data-stays.ts'
import { completedStaysCompleted } from './completed-stays-completed.ts'
import { deletedStaysDeleted } from './deleted-stays-deleted.ts'
import { evictionsAreLimited } from './evictions-are-limited.ts'
import { healthyIsNotEvicted } from './healthy-is-not-evicted.ts'
import { type Invariant, judgeOf } from './invariant.ts'
import { leaderWrites } from './leader-writes.ts'
import { oneMachineWrites } from './one-machine-writes.ts'
import { onePodOfAName } from './one-pod-of-a-name.ts'
import { programsRun } from './programs-run.ts'
import { readsAreCurrent } from './reads-are-current.ts'
import { secretsStay } from './secrets-stay.ts'
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
const watched = (version: number, type = 'MODIFIED', uid = 'u') => ({
  ...({ kind: 'watched', resource: 'pods', namespace: 'default', name: 'web', version, type, uid } as const),
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

test('a completed container that a person removes does not run again if the agent could save its end', async (t) => {
  const invariant = completedStaysCompleted((pod) => pod.startsWith('sums'))
  const name = container('node-1', 'a', 'sums-x')
  const of = (removedMs: number, savesMs: number) =>
    violationsOf(
      invariant,
      { kind: 'ended', exitCode: 0, ...name, atMs: 0 },
      { kind: 'health', node: 'node-1', isHealthy: true, canSave: true, atMs: savesMs },
      { kind: 'forgotten', ...name, atMs: removedMs },
      { kind: 'started', ...name, atMs: 200_000 },
    ).length
  t.equal(of(40_000, 0), 1)
  t.equal(of(20_000, 0), 0, 'it was removed too early')
  t.equal(of(40_000, 30_000), 0, 'the disk was full until then')
})

test('a container may run again that completed seconds before the power of its node was cut', async (t) => {
  const invariant = completedStaysCompleted((pod) => pod.startsWith('sums'))
  const name = container('node-1', 'a', 'sums-x')
  const of = (cutMs: number, target: string) =>
    violationsOf(
      invariant,
      { kind: 'ended', exitCode: 0, ...name, atMs: 0 },
      { kind: 'fault', number: 1, what: 'the power is cut', target, seconds: 9, atMs: cutMs },
      { kind: 'started', ...name, atMs: 200_000 },
    ).length
  t.equal(of(5_000, 'node-1'), 0)
  t.equal(of(11_000, 'node-1'), 1)
  t.equal(of(5_000, 'controller'), 1, 'another machine')
})

test('a completed container whose pod was deleted may run again in a store that was restored after that', async (t) => {
  const invariant = completedStaysCompleted((pod) => pod.startsWith('sums'))
  const name = container('node-1', 'a', 'sums-x')
  const ended = { kind: 'ended', exitCode: 0, ...name } as const
  const started = { kind: 'started', ...name } as const
  const deleted = { kind: 'stored', resource: 'pods', namespace: 'default', name: 'sums-x', version: 9 } as const
  const restored = { kind: 'restored', rows: [], version: 20 } as const
  t.same(violationsOf(invariant, ended, { ...deleted, body: undefined }, restored, started), [])
  t.equal(violationsOf(invariant, ended, restored, started).length, 1, 'its node has it')
  t.equal(violationsOf(invariant, ended, { ...deleted, body: undefined }, started).length, 1, 'nothing was restored')
  t.equal(violationsOf(invariant, ended, restored, { ...deleted, body: undefined }, started).length, 1, 'later')
})

test('a write that was answered before it was on the disk is found', async (t) => {
  t.same(violationsOf(answeredIsStored(), stored(4), answered(5)).length, 1)
  t.same(violationsOf(answeredIsStored(), answered(5)).length, 1)
  t.same(violationsOf(answeredIsStored(), stored(5), answered(5)), [])
  t.same(violationsOf(answeredIsStored(), stored(6), answered(5)), [], 'it was changed since')
})

test('a watch that misses, repeats or goes back is found', async (t) => {
  const listed = { kind: 'listed', resource: 'pods', version: 2, uids: [] as readonly string[] } as const
  const all = [stored(1), stored(2), listed, stored(3), stored(5)]
  t.same(violationsOf(watchIsWhole(), ...all, watched(3), watched(5)), [])
  t.match(violationsOf(watchIsWhole(), ...all, watched(5)), [/version 3 is missing between 2 and 5/])
  t.match(violationsOf(watchIsWhole(), ...all, watched(3), watched(3)), [/version 3 follows 3/])
  t.same(violationsOf(watchIsWhole(), ...all, { ...listed, version: 5 }), [], 'a new list covers what came before')
})

test('an eviction from a node that has been healthy is found, and not one soon after it is back', async (t) => {
  const health = (isHealthy: boolean, atMs: number) =>
    ({ kind: 'health', node: 'node-1', isHealthy, canSave: true, atMs }) as const
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

test('an object that is there after a client saw it deleted is found, by a watch and by a list', async (t) => {
  const deleted = watched(3, 'DELETED')
  const listed = (...uids: readonly string[]) => ({ kind: 'listed', resource: 'pods', version: 9, uids }) as const
  t.match(violationsOf(deletedStaysDeleted(), deleted, watched(4, 'ADDED')), [
    /pods web \(u\) was deleted, and is there/,
  ])
  t.equal(violationsOf(deletedStaysDeleted(), deleted, listed('v', 'u')).length, 1)
  t.same(violationsOf(deletedStaysDeleted(), watched(2), deleted, listed('v'), watched(4, 'ADDED', 'v')), [])
})

test('a read that is older than the answer is found, and one of what was deleted', async (t) => {
  const name = { resource: 'pods', namespace: 'default', name: 'web' } as const
  const read = (version: number | undefined) => ({ kind: 'read', ...name, version }) as const
  const removed = { kind: 'removed', ...name } as const
  t.match(violationsOf(readsAreCurrent(), answered(5), read(4)), [/written in version 5, and is read in version 4/])
  t.match(violationsOf(readsAreCurrent(), answered(5), read(undefined)), [/written in version 5, and is not there/])
  t.match(violationsOf(readsAreCurrent(), answered(5), removed, read(5)), [/was deleted, and is read in version 5/])
  t.same(violationsOf(readsAreCurrent(), answered(5), read(5), read(8), removed, read(undefined)), [])
})

const storedAs = (resource: string, name: string, body: unknown, atMs: number) => ({
  ...({ kind: 'stored', resource, namespace: 'default', name, version: 1, body: JSON.stringify(body), atMs } as const),
})
const node = (name: string, atMs: number, { isReady = true, isTainted = false } = {}) =>
  storedAs(
    'nodes',
    name,
    {
      spec: { taints: isTainted ? [{ key: 'node.kubernetes.io/unreachable', effect: 'NoExecute' }] : [] },
      status: { conditions: [{ type: 'Ready', status: isReady ? 'True' : 'Unknown' }] },
    },
    atMs,
  )

test('an eviction before the tolerations end is found, and taints that come too fast', async (t) => {
  const lost = { isReady: false, isTainted: true }
  const evicted = (atMs: number) => ({ kind: 'evicted', node: 'a', pod: 'web', atMs }) as const
  const three = ['a', 'b', 'c'].map((name) => node(name, 0))
  const taintedA = [...three, node('a', 50_000, { isReady: false }), node('a', 60_000, lost)]
  t.same(violationsOf(evictionsAreLimited, ...taintedA, evicted(360_000)), [])
  t.match(violationsOf(evictionsAreLimited, ...taintedA, evicted(359_000)), [/web is evicted from a, .* for 299 s/])
  t.match(violationsOf(evictionsAreLimited, ...taintedA, node('a', 61_000), evicted(400_000)), [
    /a, which has no taint/,
  ])
  const back = [...taintedA, node('a', 360_500)]
  t.same(violationsOf(evictionsAreLimited, ...back, evicted(361_000)), [], 'it was decided before')
  t.equal(violationsOf(evictionsAreLimited, ...back, evicted(362_000)).length, 1)
  t.same(violationsOf(evictionsAreLimited, ...taintedA, node('b', 70_000, lost)), [])
  t.match(violationsOf(evictionsAreLimited, ...taintedA, node('b', 61_000, lost)), [/b gets .* 1 s after another node/])
})

test('a taint is found that a node gets after all have been lost for a while', async (t) => {
  const lost = ['a', 'b'].flatMap((name) => [node(name, 0), node(name, 1_000, { isReady: false })])
  const tainted = (atMs: number) => node('a', atMs, { isReady: false, isTainted: true })
  t.match(violationsOf(evictionsAreLimited, ...lost, tainted(60_000)), [/a gets .* while no node is ready/])
  t.same(violationsOf(evictionsAreLimited, ...lost, node('b', 50_000), tainted(60_000)), [])
})

test('an eviction that leaves too few healthy pods is found; one that was healthy seconds before counts', async (t) => {
  const pod = (name: string, atMs: number, { isReady = true, isEvicted = false } = {}) =>
    storedAs(
      'pods',
      name,
      {
        metadata: { labels: { app: 'shop' }, ...(isEvicted && { deletionTimestamp: '2026-01-01T00:00:00Z' }) },
        status: {
          conditions: [
            { type: 'Ready', status: isReady ? 'True' : 'False' },
            ...(isEvicted ? [{ type: 'DisruptionTarget', reason: 'EvictionByEvictionAPI' }] : []),
          ],
        },
      },
      atMs,
    )
  const rule = budgetsHold({ app: 'shop', minAvailable: 2 })
  const three = ['a', 'b', 'c'].map((name) => pod(name, 0))
  const evicted = (name: string, atMs: number) => pod(name, atMs, { isEvicted: true })
  t.same(violationsOf(rule, ...three, evicted('a', 20_000)), [])
  t.match(violationsOf(rule, ...three, evicted('a', 20_000), evicted('b', 40_000)), [/b is evicted, and 1 of 2/])
  const unready = pod('c', 20_000, { isReady: false })
  t.same(violationsOf(rule, ...three, unready, evicted('a', 29_000)), [])
  t.equal(violationsOf(rule, ...three, unready, evicted('a', 31_000)).length, 1)
  t.same(violationsOf(rule, ...three, unready, evicted('c', 31_000)), [], 'a pod that is not ready costs nothing')
  const two = [pod('a', 0), pod('c', 0), unready]
  const leaves = (atMs: number) =>
    violationsOf(rule, ...two, pod('c', atMs, { isReady: false, isEvicted: true })).length
  t.same([leaves(20_100), leaves(31_000)], [0, 1], 'it is counted still, as in Kubernetes')
})

test('a Secret on its way to a node whose pods do not name it is found', async (t) => {
  const pod = (nodeName: string) =>
    storedAs('pods', 'web', { spec: { nodeName, volumes: [{ secret: { secretName: 'key' } }], containers: [] } }, 0)
  const gone = { ...stored(2), atMs: 10_000 }
  const body = JSON.stringify({ secrets: [secretManifest('key')] })
  const sent = (atMs: number) => ({ kind: 'delivered', node: 'a', body, atMs }) as const
  t.same(violationsOf(secretsStay, pod('a'), sent(5_000)), [])
  t.match(violationsOf(secretsStay, pod('b'), sent(5_000)), [/a receives Secret key, which none of its pods names/])
  t.same(violationsOf(secretsStay, pod('a'), gone, sent(14_000)), [], 'the message follows')
  t.equal(violationsOf(secretsStay, pod('a'), gone, sent(16_000)).length, 1)
})

test('a write of a controller is found that does not lead by the store', async (t) => {
  const name = { resource: 'pods', namespace: 'default', name: 'web' } as const
  const wrote = (leader: string | undefined) => ({ kind: 'wrote', ...name, controller: 'a', leader }) as const
  t.same(violationsOf(leaderWrites, wrote('a')), [])
  t.same(violationsOf(leaderWrites, wrote('b')), ['only the leader writes: a writes pods web while b leads'])
  t.same(violationsOf(leaderWrites, wrote(undefined)), [
    'only the leader writes: a writes pods web while no controller leads',
  ])
})

const used = (node: string, podUID: string, data: string, claimUID: string) => ({
  ...({ kind: 'used', claim: 'default/data', claimUID, data, ...container(node, podUID) } as const),
})

test('the data of a claim goes to the trash when a person has deleted its last claim, and is never gone', async (t) => {
  const place = (where: 'volume' | 'trash' | 'gone') =>
    ({ kind: 'data', node: 'node-1', data: 'd', place: where }) as const
  const asked = (claimUID: string) => ({ kind: 'asked', claimUID }) as const
  const first = [place('volume'), used('node-1', 'a', 'd', 'one')]
  t.same(violationsOf(claimDataStays, ...first, asked('one'), place('trash')), [])
  t.same(violationsOf(claimDataStays, ...first, asked('other'), place('trash')), [
    'no data of a claim goes that was not asked for: d on node-1 goes to the trash, and its claim one was not deleted',
  ])
  const undeleted = [...first, asked('one'), place('trash'), place('volume'), used('node-1', 'b', 'd', 'two')]
  t.same(violationsOf(claimDataStays, ...undeleted, place('trash')).length, 1, 'another claim has it now')
  t.same(violationsOf(claimDataStays, ...first, asked('one'), place('gone')).length, 1)
})

test('two machines with one claim are found, and not two pods of one machine, nor a pod that was forced away', async (t) => {
  const one = used('node-1', 'a', 'd', 'one')
  t.same(violationsOf(oneMachineWrites, one, used('node-2', 'b', 'e', 'one')), [
    'two machines never write one ReadWriteOnce claim: default/data (one) is written by db-0 on node-2 and by db-0 on node-1',
  ])
  t.same(violationsOf(oneMachineWrites, one, used('node-1', 'b', 'd', 'one')), [])
  t.same(violationsOf(oneMachineWrites, one, used('node-2', 'b', 'e', 'two')), [])
  const end = { kind: 'ended', exitCode: 0, ...container('node-1', 'a') } as const
  t.same(violationsOf(oneMachineWrites, one, end, used('node-2', 'b', 'e', 'one')), [])
  const forced = { kind: 'forced', podUID: 'a' } as const
  t.same(violationsOf(oneMachineWrites, one, forced, used('node-2', 'b', 'e', 'one')), [])
})

test('a pod that a person has forced out of the way may run beside the next one of its name', async (t) => {
  const invariant = onePodOfAName((pod) => pod.startsWith('db'))
  const forced = { kind: 'forced', podUID: 'a' } as const
  const first = { kind: 'started', ...container('node-1', 'a') } as const
  t.same(violationsOf(invariant, first, forced, { kind: 'started', ...container('node-2', 'b') }), [])
})

test('an end is lost when the machine is installed again', async (t) => {
  const invariant = completedStaysCompleted((pod) => pod.startsWith('sums'))
  const start = { kind: 'started', ...container('node-1', 'a', 'sums-x') } as const
  const end = { kind: 'ended', exitCode: 0, ...container('node-1', 'a', 'sums-x') } as const
  t.same(violationsOf(invariant, start, end, { kind: 'reinstalled', node: 'node-1' }, start), [])
  t.same(violationsOf(invariant, start, end, { kind: 'reinstalled', node: 'node-2' }, start).length, 1)
})

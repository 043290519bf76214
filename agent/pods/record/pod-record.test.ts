import { test } from 'tap'
import { shutdownEnding, shutdownRefusal } from '../../../api/node/node-shutdown.ts'
import type { PodStatus } from '../../../api/pod.ts'
import { aPod } from '../../../api/testing/builders.ts'
import type { RuntimeContainer } from '../../runtime/runtime.ts'
import { aContainer } from '../../testing/builders.ts'
import type { ContainerEnd } from '../wanted/container-end.ts'
import {
  backoffKey,
  fingerprint,
  isEnd,
  isEvicted,
  isLeaving,
  isOver,
  newRecord,
  onCreated,
  onDesiredChanged,
  onEndsRestored,
  onImageFound,
  onNotCreated,
  onNotRemoved,
  onObserved,
  onPostStartEnded,
  onPostStarting,
  onProbed,
  onPullStarted,
  onRemoved,
  onResumed,
  onSandboxFailed,
  onSandboxStarted,
  onStatusReset,
  onStopEnded,
  onStopping,
  onVolumeReplaced,
  onWaitingRecorded,
  type PodRecord,
  vitalsOf,
} from './pod-record.ts'

const moment = { nowMs: 1_000_000, nowWallMs: Date.parse('2026-01-01T01:00:00Z') }
const pod = aPod({ name: 'web' })
const main = { name: 'main', image: 'app:1' }
const found = (id: string, over: Partial<RuntimeContainer> = {}, attempt = 0) =>
  aContainer({ id, identity: { attempt }, ...over })
const sandbox = aContainer({ identity: { containerName: '' }, ip: '10.244.1.5', ipv6: '2001:db8:244::5' })
const exited = { state: 'exited', exitCode: 1, finishedAt: '2026-01-01T00:59:50Z' } as const
const ended = (name: string, attempt: number): ContainerEnd => ({
  ...{ name, attempt, id: name, specHash: '', image: 'app:1', imageID: '', state: 'exited', exitCode: 0 },
  ...{ oomKilled: false, error: '', message: '', createdAt: '2026-01-01T00:00:00Z' },
})
const observed = (containers: readonly RuntimeContainer[], record: PodRecord = newRecord) =>
  onObserved(record, pod, containers, moment)

test('a pod without containers, status and results starts now', async (t) => {
  t.equal(observed([]).activeSinceMs, 1_000_000)
  t.equal(observed([sandbox]).activeSinceMs, undefined)
  t.equal(observed([], { ...newRecord, status: { phase: 'Running' } }).activeSinceMs, undefined)
  const ends = onEndsRestored(newRecord, [ended('main', 0)])
  t.equal(observed([], ends).activeSinceMs, undefined)
  t.same([observed([]).pod, onObserved(observed([]), undefined, [], moment).pod], [pod, pod], 'the last one is kept')
})

test('a container ended when it did, by the clock of the machine, and now at the latest', async (t) => {
  const exit = (over: Partial<RuntimeContainer>) => observed([found('a', { ...exited, ...over })]).exits.get('a')
  t.equal(exit({}), 990_000)
  t.equal(exit({ finishedAt: '2026-01-01T02:00:00Z' }), 1_000_000, 'a date that has jumped')
  t.equal(exit({ finishedAt: undefined, createdAt: '2026-01-01T00:59:00Z' }), 940_000)
  t.equal(exit({ finishedAt: 'never' }), 1_000_000)
  t.equal(exit({ state: 'running' }), undefined)
  const before = observed([found('a', exited)])
  const later = { ...moment, nowWallMs: moment.nowWallMs + 3_600_000 }
  t.equal(onObserved(before, pod, [found('a', exited)], later).exits.get('a'), 990_000, 'it is read once')
  t.equal(observed([], before).exits.size, 0)
})

test('what belongs to a container goes with it', async (t) => {
  const ids = new Set(['a', 'gone'])
  const byID = new Map([
    ['a', 1],
    ['gone', 2],
  ])
  const record = observed([found('a')], {
    ...newRecord,
    ...{ failedPostStarts: ids, onReplacedVolumes: ids, preStops: ids, replacing: ids, endedWithSandbox: ids },
    ...{
      removalRetryAtMs: byID,
      terminationMessages: new Map([
        ['a', 'bye'],
        ['gone', 'bye'],
      ]),
    },
  })
  const { failedPostStarts, onReplacedVolumes, preStops, replacing, endedWithSandbox } = record
  for (const set of [failedPostStarts, onReplacedVolumes, preStops, replacing, endedWithSandbox])
    t.same([...set], ['a'])
  t.same([...record.removalRetryAtMs.keys(), ...record.terminationMessages.keys()], ['a', 'a'])
})

test('restarts are counted by the highest number seen, also of containers that are gone', async (t) => {
  const counts = (...containers: readonly RuntimeContainer[]) =>
    observed(containers, { ...newRecord, restartCounts: new Map([['main', 1]]) }).restartCounts.get('main')
  t.equal(counts(), 1)
  t.equal(counts(found('a', {}, 0)), 1)
  t.equal(counts(found('a', exited, 3), found('b', exited, 2)), 3)
  t.equal(counts(found('a', { state: 'created' }, 4)), 1, 'one that was not started is made again')
  t.equal(counts(found('a', { state: 'created', error: 'no such file' }, 4)), 4)
  t.same([...observed([sandbox]).restartCounts], [])
})

test('the addresses of a pod are those of its sandbox, while it has them', async (t) => {
  t.match(observed([found('a'), sandbox]), { podIP: '10.244.1.5', podIPv6: '2001:db8:244::5' })
  t.match(observed([{ ...sandbox, ip: undefined }], observed([sandbox])), { podIP: undefined, podIPv6: undefined })
})

test('a container that could not be created is tried again later, or when the pod changes', async (t) => {
  const failed = onNotCreated(newRecord, 'main', { reason: 'CreateContainerError', message: 'why' }, 5_000, 1_000)
  t.same([...failed.startProblems], [['main', { reason: 'CreateContainerError', message: 'why', retryAtMs: 6_000 }]])
  t.equal(onCreated(failed, main, undefined, 7_000).startProblems.size, 0)
  const changed = onDesiredChanged(onSandboxFailed(failed, 'why', 0))
  t.match(changed, { startProblems: new Map(), sandboxRetryAtMs: undefined, sandboxFailures: 1 })
})

test('the crash back-off of a container grows with each restart; a first start has none', async (t) => {
  const key = backoffKey(main)
  t.equal(onCreated(newRecord, main, undefined, 0).backoffs.size, 0)
  const record = { ...newRecord, exits: new Map([['a', 0]]) }
  const first = onCreated(record, main, found('a', exited), 1_000)
  const second = onCreated(first, main, found('a', exited), 2_000)
  const waits = [first, second].map(({ backoffs }) => backoffs.get(key)?.waitMs)
  t.same(waits, [10_000, 20_000])
  t.not(backoffKey({ ...main, image: 'app:2' }), key, 'another specification is another container')
})

test('a sandbox is tried again after 1 s, 2 s, up to 30 s', async (t) => {
  let record: PodRecord = newRecord
  const waits = Array.from({ length: 7 }, () => {
    record = onSandboxFailed(record, 'no network', 1_000)
    return (record.sandboxRetryAtMs ?? 0) - 1_000
  })
  t.same(waits, [1_000, 2_000, 4_000, 8_000, 16_000, 30_000, 30_000])
  t.equal(record.sandboxProblem, 'no network')
  t.match(onSandboxStarted(record), { sandboxFailures: 0, sandboxProblem: '' })
})

test('a stop has an end, which a later stop may move, and the pod’s own end only comes nearer', async (t) => {
  const [target, leaving] = [found('a'), true as const]
  const first = onStopping(newRecord, { target, leaving }, 30_000)
  t.match([first.stopping.get('a'), first.leavingUntilMs, first.replacing.size], [30_000, 30_000, 0])
  const sooner = onStopping(first, { target, leaving }, 5_000)
  t.same([sooner.stopping.get('a'), sooner.leavingUntilMs], [5_000, 5_000])
  t.equal(onStopping(sooner, { target: found('b'), leaving }, 30_000).leavingUntilMs, 5_000)
  t.equal(onStopEnded(sooner, 'a', 30_000), sooner, 'the later one continues')
  t.equal(onStopEnded(sooner, 'a', 5_000).stopping.size, 0)
  const alone = onStopping(newRecord, { target, replace: true }, 30_000)
  t.same([alone.leavingUntilMs, [...alone.replacing]], [undefined, ['a']])
  const stuck = onNotRemoved(newRecord, 'a', 1_000)
  t.same([stuck.removalRetryAtMs.get('a'), onRemoved(stuck, 'a').removalRetryAtMs.size], [31_000, 0])
})

test('a hook that runs or failed, and a volume that was replaced, come before the results of probes', async (t) => {
  const ready = { started: true, ready: true }
  const probed = onProbed(
    newRecord,
    new Map([
      ['a', ready],
      ['b', ready],
    ]),
  )
  t.equal(vitalsOf(probed), probed.probes)
  const starting = onPostStarting(probed, 'a')
  t.same(
    [...vitalsOf(starting)],
    [
      ['a', { started: false, ready: false }],
      ['b', ready],
    ],
  )
  t.same([...vitalsOf(onPostStartEnded(starting, 'a', false))], [...probed.probes])
  t.match(vitalsOf(onPostStartEnded(starting, 'a', true)).get('a'), { failed: { why: 'FailedPostStartHook' } })
  const replaced = vitalsOf(onVolumeReplaced(probed, ['b']))
  t.match(replaced.get('b'), { ready: false, failed: { why: /^A volume was replaced/, byProbe: true } })
  t.same(replaced.get('a'), ready)
})

test('a pull is requested once until a container of the image ends, and its next problem is recorded', async (t) => {
  const known = onImageFound(newRecord, 'app:1', { image: undefined, unfit: undefined })
  const waiting = onWaitingRecorded(
    known,
    new Map([
      ['main', 'ErrImagePull'],
      ['other', 'ErrImagePull'],
    ]),
  )
  const wanted = aPod({ containers: [main, { name: 'other', image: 'app:2' }] })
  const pulled = onPullStarted(waiting, wanted, 'app:1', 1_000)
  t.same([pulled.images.size, [...pulled.waitingRecorded.keys()]], [0, ['other']])
  t.equal(onPullStarted(pulled, wanted, 'app:1', 9_000).pullsRequestedAtMs.get('app:1'), 1_000)
  t.equal(observed([found('a')], pulled).pullsRequestedAtMs.size, 1)
  t.equal(observed([found('a', exited)], pulled).pullsRequestedAtMs.size, 0)
})

test('a pod that a shutdown ended continues, and one that it rejected is admitted again', async (t) => {
  const at = '2026-01-01T00:59:00Z'
  const conditions = [{ type: 'DisruptionTarget', status: 'True', lastTransitionTime: at }] as const
  const stopped: PodStatus = { phase: 'Failed', ...shutdownEnding, conditions }
  const record: PodRecord = {
    ...{
      ...newRecord,
      admitted: true,
      ended: stopped,
      cleared: true,
      activeSinceMs: 1,
      graceSeconds: 5,
      leavingUntilMs: 9,
    },
  }
  const resumed = onResumed(record, stopped)
  t.match(resumed, { admitted: true, interruptedAt: at, leavingUntilMs: undefined })
  for (const field of ['ended', 'cleared', 'activeSinceMs', 'graceSeconds']) t.notOk(field in resumed, field)
  t.notOk(resumed.status?.reason)
  const refused: PodStatus = { phase: 'Failed', ...shutdownRefusal }
  t.match(onResumed({ ...record, ended: refused }, refused), { admitted: false, interruptedAt: undefined })
})

test('a pod is over by its own record or by its stored status', async (t) => {
  const stored = (status: PodStatus) => aPod({ status })
  const failed: PodStatus = { phase: 'Failed' }
  t.notOk(isOver(pod, newRecord))
  t.ok(isOver(pod, { ended: failed }))
  for (const phase of ['Succeeded', 'Failed'] as const) t.ok(isOver(stored({ phase }), newRecord), phase)
  t.notOk(isEnd(pod, { phase: 'Failed', ...shutdownEnding }), 'after a shutdown it comes back')
  const never = aPod({ restartPolicy: 'Never' })
  t.ok(isEnd(never, { phase: 'Failed', ...shutdownEnding }))
  const evicted: PodStatus = { phase: 'Failed', reason: 'Evicted' }
  t.same([isEvicted(pod, { ended: evicted }), isEvicted(stored(evicted), newRecord)], [true, true])
  t.same([isEvicted(pod, { ended: failed }), isEvicted(stored(evicted), { ended: failed })], [false, false])
  t.same([isLeaving(pod), isLeaving(aPod({ metadata: { deletionTimestamp: 'now' } }))], [false, true])
})

test('results that are removed begin again, and an observation is the same in any order', async (t) => {
  const ends = onEndsRestored(newRecord, [ended('main', 2), ended('other', 0)])
  t.same(
    [...ends.restartCounts],
    [
      ['main', 2],
      ['other', 0],
    ],
  )
  t.same([...onStatusReset(ends, { phase: 'Running' }, ['main']).ends.keys()], ['other'])
  const [a, b] = [found('a'), found('b')]
  t.equal(fingerprint([a, b]), fingerprint([b, a]))
  t.not(fingerprint([a, b]), fingerprint([a, { ...b, ...exited }]))
  t.not(fingerprint([a]), fingerprint([{ ...a, startedAt: '2026-01-01T00:30:00Z' }]))
})

import { test } from 'tap'
import type { JobCondition, JobSpec, JobStatus } from '../../../../api/batch/job.ts'
import { finished } from '../../../../daemon/watchdog/steps.ts'
import type { StoredPod } from '../../../store/store.ts'
import { aJobPod, aStoredJob, midnightMs, timeAt } from '../../../testing/job-objects.ts'
import { finishedStatus, type Outcome, settleCounts, trackPods, writtenStatus } from './job-tracking.ts'
import { jobView } from './job-view.ts'

type Given = {
  readonly spec?: Partial<JobSpec>
  readonly status?: JobStatus
  readonly end?: JobCondition
  readonly leaving?: boolean
}
const counts = { active: 1, ready: 0, terminating: 0 }
function track(pods: readonly StoredPod[], { spec, status, end, leaving }: Given = {}) {
  const job = aStoredJob(spec, status, leaving ? { deletionTimestamp: timeAt(0) } : {})
  const outcome: Outcome = { ...counts, status: status ?? {}, end }
  const view = finished(jobView(job, pods, { failures: 0 }, midnightMs + 9000))
  const { release, ...tracking } = finished(trackPods(view, outcome, midnightMs + 9000))
  return { ...tracking, release: release.map(({ metadata }) => metadata.name) }
}
const condition = (type: string): JobCondition => ({ type, status: 'True', reason: 'Because', message: 'A sentence.' })
const indexed = (more: Partial<JobSpec> = {}): Partial<JobSpec> => ({
  completionMode: 'Indexed',
  completions: 4,
  ...more,
})

test('pods that have ended are noted before their finalizer goes; those that run keep it', async (t) => {
  const pods = [aJobPod('a', { exitCode: 0 }), aJobPod('b', { exitCode: 1 }), aJobPod('c')]
  t.same(track(pods), {
    status: {
      ...counts,
      succeeded: 0,
      failed: 0,
      uncountedTerminatedPods: { succeeded: ['uid-of-a'], failed: ['uid-of-b'] },
    },
    release: ['a', 'b'],
    held: new Set(['uid-of-a', 'uid-of-b', 'uid-of-c']),
    final: undefined,
    isPartial: false,
  })
})

test('a pod that is noted already is not noted again, and one without the finalizer is counted', async (t) => {
  const status = {
    succeeded: 3,
    failed: 5,
    uncountedTerminatedPods: { succeeded: ['uid-of-a', 'x'], failed: ['uid-of-b', 'uid-of-counted'] },
  }
  const pods = [
    aJobPod('a', { exitCode: 0 }),
    aJobPod('b', { exitCode: 1 }),
    aJobPod('counted', { exitCode: 1, tracked: false }),
  ]
  const { status: written, release, held } = track(pods, { status })
  t.same(written, {
    ...counts,
    succeeded: 4,
    failed: 6,
    uncountedTerminatedPods: { succeeded: ['uid-of-a'], failed: ['uid-of-b'] },
  })
  t.same(release, ['a', 'b'])
  t.same(held, new Set(['uid-of-a', 'uid-of-b']))
})

test('a pod that is noted as failed stays so, whatever its phase becomes', async (t) => {
  const status = { uncountedTerminatedPods: { failed: ['uid-of-a'] } }
  t.match(track([aJobPod('a', { exitCode: 0 })], { status, end: condition('FailureTarget') }).status, {
    uncountedTerminatedPods: { succeeded: [], failed: ['uid-of-a'] },
  })
})

test('a failure that the policy ignores is released and not noted', async (t) => {
  const podFailurePolicy = { rules: [{ action: 'Ignore', onExitCodes: { operator: 'In', values: [42] } }] }
  const { release, status } = track([aJobPod('a', { exitCode: 42 })], { spec: { podFailurePolicy } })
  t.same(release, ['a'])
  t.same(status.uncountedTerminatedPods, { succeeded: [], failed: [] })
})

test('when a Job fails, the pods that still ran have failed with it', async (t) => {
  const pods = [aJobPod('a', { exitCode: 0 }), aJobPod('b')]
  const { release, status, final } = track(pods, { end: condition('FailureTarget') })
  t.same(release, ['a', 'b'])
  t.same(status.uncountedTerminatedPods, { succeeded: ['uid-of-a'], failed: ['uid-of-b'] })
  t.same(status.conditions, [condition('FailureTarget')])
  t.match(final, { type: 'Failed', reason: 'Because', message: 'A sentence.', lastTransitionTime: timeAt(9) })
})

test('a pod that its node has not reported yet runs', async (t) => {
  const { status: _, ...unseen } = aJobPod('a')
  t.same(track([unseen]).release, [])
  const { status } = track([unseen], { end: condition('FailureTarget') })
  t.same(status.uncountedTerminatedPods, { succeeded: [], failed: ['uid-of-a'] })
})

test('when a Job has met its criteria, the pods that still ran count neither way', async (t) => {
  const { release, status, final } = track([aJobPod('a')], { end: condition('SuccessCriteriaMet') })
  t.same(release, ['a'])
  t.same(status.uncountedTerminatedPods, { succeeded: [], failed: [] })
  t.match(final, { type: 'Complete', reason: 'Because', message: 'A sentence.', lastTransitionTime: timeAt(9) })
})

test('a condition of an earlier visit is written once', async (t) => {
  const status = { conditions: [condition('Other'), condition('SuccessCriteriaMet')] }
  t.same(track([], { status, end: condition('SuccessCriteriaMet') }).status.conditions, status.conditions)
  const failing = { conditions: [condition('FailureTarget')] }
  const { status: written, final } = track([], { status: failing, end: condition('Failed') })
  t.same([written.conditions, final], [failing.conditions, condition('Failed')])
  const other = { conditions: [condition('Other')] }
  t.same(track([], { status: other, end: condition('FailureTarget') }).status.conditions, [
    condition('Other'),
    condition('FailureTarget'),
  ])
})

test('the pods of a Job that is being deleted are released, and those that run count neither way', async (t) => {
  const { release, status } = track([aJobPod('a'), aJobPod('b', { exitCode: 1 })], { leaving: true })
  t.same(release, ['a', 'b'])
  t.same(status.uncountedTerminatedPods, { succeeded: [], failed: ['uid-of-b'] })
})

test('succeeded pods of an indexed Job are counted by their index', async (t) => {
  const pods = [
    aJobPod('a', { index: 3, exitCode: 0 }),
    aJobPod('b', { index: 1, exitCode: 0 }),
    aJobPod('again', { index: 0, exitCode: 0 }),
    aJobPod('beyond', { index: 4, exitCode: 0 }),
    aJobPod('without', { exitCode: 0 }),
    aJobPod('bad', { index: 2, exitCode: 1 }),
    aJobPod('bad-beyond', { index: 4, exitCode: 1 }),
    aJobPod('bad-without', { exitCode: 1 }),
  ]
  const { release, status } = track(pods, { spec: indexed(), status: { completedIndexes: '0', failedIndexes: '2' } })
  t.same(status, {
    ...counts,
    succeeded: 3,
    failed: 0,
    completedIndexes: '0,1,3',
    uncountedTerminatedPods: { succeeded: [], failed: ['uid-of-bad'] },
  })
  t.same(release, ['without', 'bad-without', 'again', 'b', 'bad', 'a', 'beyond', 'bad-beyond'], 'the lowest first')
})

test('with a limit for each index the failed pod of an index stays until it is replaced', async (t) => {
  const pods = [
    aJobPod('kept', { index: 3, exitCode: 1, failures: 0 }),
    aJobPod('replaced', { index: 1, exitCode: 1, failures: 0 }),
    aJobPod('successor', { index: 1, failures: 1 }),
    aJobPod('given-up', { index: 2, exitCode: 1, failures: 1 }),
    aJobPod('without', { exitCode: 1 }),
  ]
  const { release, status } = track(pods, { spec: indexed({ backoffLimitPerIndex: 1 }) })
  t.same(release, ['without', 'replaced', 'given-up'])
  t.equal(status.failedIndexes, '2')
  t.equal(status.completedIndexes, '')
  t.same(status.uncountedTerminatedPods?.failed, ['uid-of-replaced', 'uid-of-given-up'])
})

test('a visit notes at most five hundred pods', async (t) => {
  const many = (count: number, exitCode: number, index = false) =>
    Array.from({ length: count }, (_, place) => aJobPod(`p-${place}`, { exitCode, ...(index && { index: place }) }))
  for (const exitCode of [0, 1]) {
    const all = track(many(499, exitCode))
    t.same([all.release.length, all.isPartial], [499, false])
    const some = track(many(600, exitCode))
    t.same([some.release.length, some.isPartial], [500, true])
  }
  const some = track(many(600, 0, true), { spec: indexed({ completions: 600 }) })
  t.same([some.release.length, some.isPartial], [500, true])
  const noted = { succeeded: ['uid-of-p-0', 'uid-of-p-1'], failed: ['uid-of-f'] }
  const pods = [...many(600, 0), aJobPod('f', { exitCode: 1 })]
  t.equal(
    track(pods, { status: { uncountedTerminatedPods: noted } }).status.uncountedTerminatedPods?.succeeded?.length,
    499,
  )
})

test('a uid whose pod no longer has the finalizer turns into a count', async (t) => {
  const status = { succeeded: 1, uncountedTerminatedPods: { succeeded: ['a', 'b'], failed: ['c', 'd'] } }
  t.same(settleCounts(status, new Set(['b', 'd'])), {
    succeeded: 2,
    failed: 1,
    uncountedTerminatedPods: { succeeded: ['b'], failed: ['d'] },
  })
})

test('a Job is finished when all its pods are counted and none is leaving', async (t) => {
  const complete = { ...condition('Complete'), lastTransitionTime: timeAt(7) }
  const finished = (status: JobStatus, final: JobCondition | undefined = complete, isPartial = false) =>
    finishedStatus(status, { final, isPartial })
  t.same(finished({ succeeded: 2, terminating: 0 }), {
    succeeded: 2,
    terminating: 0,
    conditions: [complete],
    completionTime: timeAt(7),
  })
  const failed = { ...complete, type: 'Failed' }
  t.same(finished({ conditions: [condition('FailureTarget')] }, failed), {
    conditions: [condition('FailureTarget'), failed],
  })
  t.equal(finished({ uncountedTerminatedPods: { succeeded: ['a'] } }), undefined)
  t.equal(finished({ uncountedTerminatedPods: { failed: ['a'] } }), undefined)
  t.equal(finished({ terminating: 1 }), undefined)
  t.equal(finished({}, complete, true), undefined)
  t.equal(finishedStatus({}, { final: undefined, isPartial: false }), undefined)
})

test('zeros and empty texts are left out of the status, except where Kubernetes writes them', async (t) => {
  const bare = { active: 0, ready: 0, terminating: 0, succeeded: 0, failed: 0, conditions: [], completedIndexes: '' }
  t.same(writtenStatus({ ...bare, failedIndexes: '' }), {
    ready: 0,
    terminating: 0,
    failedIndexes: '',
    uncountedTerminatedPods: {},
  })
  const full = {
    active: 1,
    succeeded: 2,
    failed: 3,
    conditions: [condition('Failed')],
    completedIndexes: '0',
    uncountedTerminatedPods: { succeeded: ['a'], failed: ['b'] },
  }
  t.same(writtenStatus(full), full)
})

import { test } from 'tap'
import type { JobSpec, JobStatus } from '../../../../api/batch/job.ts'
import { finished } from '../../../../daemon/watchdog/steps.ts'
import type { StoredPod } from '../../../store/store.ts'
import { aJobPod, aStoredJob, midnightMs, timeAt } from '../../../testing/job-objects.ts'
import { completion, deadlineLeftMs, endOf } from './job-end.ts'
import { jobView } from './job-view.ts'

type Given = { readonly spec?: Partial<JobSpec>; readonly status?: JobStatus; readonly afterSeconds?: number }
function end(pods: readonly StoredPod[], { spec, status, afterSeconds = 0 }: Given = {}) {
  const view = finished(jobView(aStoredJob(spec, status), pods, { failures: 0 }, midnightMs + afterSeconds * 1000))
  const found = endOf(view, midnightMs, midnightMs + afterSeconds * 1000)
  return found && `${found.type}: ${found.reason}: ${found.message}`
}
const failed = (name: string, exitCode = 1) => aJobPod(name, { exitCode })
const tooOften = 'FailureTarget: BackoffLimitExceeded: Job has reached the specified backoff limit'
const tooLate = 'FailureTarget: DeadlineExceeded: Job was active longer than specified deadline'

test('a Job continues until it has failed more often than is allowed', async (t) => {
  t.equal(end([]), undefined)
  t.equal(end([failed('a'), failed('b')], { spec: { backoffLimit: 2 } }), undefined)
  t.equal(end([failed('a'), failed('b')], { spec: { backoffLimit: 1 } }), tooOften)
  t.equal(end([], { status: { failed: 6 } }), undefined, 'six times, if the Job names no limit')
  t.equal(end([], { status: { failed: 7 } }), tooOften)
})

test('restarts in place count for pods that restart', async (t) => {
  const restarting = (backoffLimit: number | undefined, pods: readonly StoredPod[], restartPolicy = 'OnFailure') => {
    const template = { spec: { restartPolicy: restartPolicy as 'OnFailure', containers: [] } }
    return end(pods, { spec: { template, ...(backoffLimit !== undefined && { backoffLimit }) } })
  }
  const pods = [aJobPod('a', { restarts: 1, initRestarts: 1 }), aJobPod('b', { phase: 'Pending', initRestarts: 1 })]
  t.equal(restarting(4, pods), undefined)
  t.equal(restarting(3, pods), tooOften, 'with those of init containers')
  t.equal(restarting(0, pods), tooOften)
  t.equal(restarting(0, [aJobPod('a')]), undefined)
  t.equal(restarting(undefined, [aJobPod('a', { restarts: 5 })]), undefined)
  t.equal(restarting(undefined, [aJobPod('a', { restarts: 6 })]), tooOften)
  const { status: _, ...unseen } = aJobPod('c')
  t.equal(restarting(1, [unseen]), undefined)
  t.equal(restarting(1, pods, 'Never'), undefined)
  t.equal(restarting(1, [aJobPod('a', { exitCode: 0, restarts: 5 })]), undefined, 'not of pods that have ended')
})

test('a Job fails when it has been active for its deadline', async (t) => {
  const spec = { activeDeadlineSeconds: 30 }
  t.equal(end([], { spec, afterSeconds: 29 }), undefined)
  t.equal(end([], { spec, afterSeconds: 30 }), tooLate)
  t.equal(end([], { spec: { ...spec, suspend: true }, afterSeconds: 30 }), undefined)
  const left = (sinceMs: number | undefined, more = {}) =>
    deadlineLeftMs(aStoredJob({ ...spec, ...more }), sinceMs, midnightMs + 10_000)
  t.equal(left(midnightMs), 20_000)
  t.equal(left(undefined), Number.POSITIVE_INFINITY)
  t.equal(left(midnightMs, { suspend: true }), Number.POSITIVE_INFINITY)
  t.equal(deadlineLeftMs(aStoredJob(), midnightMs, midnightMs), Number.POSITIVE_INFINITY)
})

test('a rule of the failure policy fails the Job before its limits do', async (t) => {
  const podFailurePolicy = { rules: [{ action: 'FailJob', onExitCodes: { operator: 'In', values: [42] } }] }
  const because = 'FailureTarget: PodFailurePolicy: Container main for pod default/b failed with exit code 42'
  t.equal(
    end([failed('a'), failed('b', 42)], { spec: { podFailurePolicy, backoffLimit: 0 } }),
    `${because} matching FailJob rule at index 0`,
  )
  t.equal(end([failed('a')], { spec: { podFailurePolicy } }), undefined)
  const running = aJobPod('c', { exitCode: 42, phase: 'Running' })
  t.equal(end([running], { spec: { podFailurePolicy } }), undefined, 'not before the pod has failed')
})

const indexed = (more: Partial<JobSpec>): Partial<JobSpec> => ({
  completionMode: 'Indexed',
  completions: 4,
  backoffLimitPerIndex: 0,
  ...more,
})

test('failed indexes end the Job when they are too many, or when nothing else is left', async (t) => {
  const all = 'FailureTarget: FailedIndexes: Job has failed indexes'
  const many = 'MaxFailedIndexesExceeded: Job has exceeded the specified maximal number of failed indexes'
  const status = { completedIndexes: '0,1', failedIndexes: '2' }
  t.equal(end([], { spec: indexed({}), status }), undefined)
  t.equal(end([], { spec: indexed({}), status: { ...status, failedIndexes: '2,3' } }), all)
  t.equal(end([], { spec: indexed({}), status: { completedIndexes: '0-3', failedIndexes: '' } }), undefined)
  t.equal(end([], { spec: indexed({ maxFailedIndexes: 1 }), status }), undefined)
  t.equal(end([], { spec: indexed({ maxFailedIndexes: 0 }), status }), `FailureTarget: ${many}`)
})

test('a success policy asks for indexes, for a number of them, or for a number of some', async (t) => {
  const met = (completedIndexes: string, ...rules: NonNullable<NonNullable<JobSpec['successPolicy']>['rules']>) =>
    end([], {
      spec: { completionMode: 'Indexed', completions: 9, successPolicy: { rules } },
      status: { completedIndexes },
    })
  const by = (rule: number) => `SuccessCriteriaMet: SuccessPolicy: Matched rules at index ${rule}`
  t.equal(met('0', { succeededIndexes: '0,2-3' }), undefined)
  t.equal(met('0,2,3', { succeededIndexes: '0,2-3' }), by(0))
  t.equal(met('0,2', { succeededIndexes: '0,2-3', succeededCount: 2 }), by(0))
  t.equal(met('0,5', { succeededIndexes: '0,2-3', succeededCount: 2 }), undefined)
  t.equal(met('4', { succeededCount: 2 }), undefined)
  t.equal(met('4-5', { succeededCount: 2 }), by(0))
  t.equal(met('4', { succeededIndexes: '5' }, { succeededCount: 1 }), by(1), 'the first rule that is met')
  t.equal(met('4', { succeededIndexes: '' }, { succeededIndexes: '12' }, {}), undefined)
  t.equal(met('', { succeededCount: 0 }), undefined, 'not before any index has succeeded')
  t.equal(
    end([], { spec: { completionMode: 'Indexed', completions: 9 }, status: { completedIndexes: '0' } }),
    undefined,
  )
})

test('what an earlier visit has decided stays decided', async (t) => {
  const conditions = (type: string, status = 'True') => ({
    failed: 9,
    conditions: [{ type, status, reason: 'Earlier', message: 'Decided.' }],
  })
  t.equal(end([], { status: conditions('SuccessCriteriaMet') }), 'SuccessCriteriaMet: Earlier: Decided.')
  t.equal(end([], { status: conditions('FailureTarget') }), 'Failed: Earlier: Decided.')
  t.equal(end([], { status: conditions('SuccessCriteriaMet', 'False') }), tooOften)
  t.equal(end([], { status: conditions('FailureTarget', 'False') }), tooOften)
})

test('a Job has done its work when enough pods have succeeded and none is active', async (t) => {
  const done = (completions: number | undefined, succeeded: number, active: number) => {
    const spec = completions === undefined ? {} : { completions }
    const view = finished(jobView(aStoredJob(spec, { succeeded }), [], { failures: 0 }, midnightMs))
    return completion(view, active, midnightMs + 7000)
  }
  t.same(done(2, 2, 0), {
    type: 'SuccessCriteriaMet',
    status: 'True',
    reason: 'CompletionsReached',
    message: 'Reached expected number of succeeded pods',
    lastProbeTime: timeAt(7),
    lastTransitionTime: timeAt(7),
  })
  t.equal(done(2, 1, 0), undefined)
  t.equal(done(2, 2, 1), undefined)
  t.ok(done(0, 0, 0))
  t.ok(done(undefined, 1, 0), 'of a work queue one success is enough')
  t.equal(done(undefined, 0, 0), undefined)
})

import { test } from 'tap'
import type { JobSpec, JobStatus } from '../../../../api/batch/job.ts'
import { formatIntervals } from '../../../../api/batch/job-indexes.ts'
import { finished } from '../../../../daemon/watchdog/steps.ts'
import type { StoredPod } from '../../../store/store.ts'
import { aJobPod, aStoredJob, midnightMs } from '../../../testing/job-objects.ts'
import { mostReadInStep } from '../../../testing/longest-step.ts'
import { planPods } from './job-plan.ts'
import { trackPods } from './job-tracking.ts'
import { jobView } from './job-view.ts'

const view = (pods: readonly StoredPod[], spec: Partial<JobSpec> = {}, status?: JobStatus) =>
  finished(jobView(aStoredJob(spec, status), pods, { failures: 0 }, midnightMs))
const indexed = (completions: number, more: Partial<JobSpec> = {}): Partial<JobSpec> => ({
  completionMode: 'Indexed',
  completions,
  ...more,
})
const keptNames = ({ keptForIndex }: ReturnType<typeof view>) =>
  [...keptForIndex].map(([index, pod]) => `${index}: ${pod.metadata.name}`)

test('pods that run are active, those among them that are ready are, and those that leave are neither', async (t) => {
  const { status: _, ...unseen } = aJobPod('e')
  const pods = [
    aJobPod('a', { ready: true }),
    aJobPod('b', { phase: 'Pending' }),
    aJobPod('c', { leaving: true, ready: true }),
    aJobPod('d', { exitCode: 0, leaving: true }),
    unseen,
  ]
  t.match(view(pods), { ready: 1, terminating: 1, succeeded: 1, failed: 1 })
  t.same(
    view(pods).active.map(({ metadata }) => metadata.name),
    ['a', 'b', 'e'],
  )
})

test('the counts of the status grow by the pods that wait to be counted, each once', async (t) => {
  const pods = [
    aJobPod('new-success', { exitCode: 0 }),
    aJobPod('known-success', { exitCode: 0 }),
    aJobPod('counted-success', { exitCode: 0, tracked: false }),
    aJobPod('new-failure', { exitCode: 1 }),
    aJobPod('known-failure', { exitCode: 1 }),
    aJobPod('counted-failure', { exitCode: 1, tracked: false }),
    aJobPod('running'),
  ]
  const uncountedTerminatedPods = { succeeded: ['uid-of-known-success', 'gone'], failed: ['uid-of-known-failure'] }
  t.match(view(pods, {}, { succeeded: 10, failed: 20, uncountedTerminatedPods }), { succeeded: 13, failed: 22 })
  t.match(view([]), { succeeded: 0, failed: 0 })
})

test('a failure that the policy ignores does not count, and yet makes the Job wait', async (t) => {
  const podFailurePolicy = { rules: [{ action: 'Ignore', onExitCodes: { operator: 'In', values: [42] } }] }
  const { failed, backoff } = view([aJobPod('a', { exitCode: 42 }), aJobPod('b', { exitCode: 1 })], {
    podFailurePolicy,
  })
  t.equal(failed, 1)
  t.same(backoff, { failures: 2, lastFailureMs: midnightMs })
})

test('the wait counts failures that are new, and begins again after a success', async (t) => {
  const known = { uncountedTerminatedPods: { failed: ['uid-of-a'] } }
  t.same(view([aJobPod('a', { exitCode: 1 })], {}, known).backoff, { failures: 0 })
  const pods = [aJobPod('a', { exitCode: 1 }), aJobPod('b', { exitCode: 0, endedAt: 5 })]
  t.same(view(pods).backoff, { failures: 0 })
  const after = { uncountedTerminatedPods: { succeeded: ['uid-of-b'] } }
  t.same(view(pods, {}, after).backoff, { failures: 1, lastFailureMs: midnightMs }, 'a success that is known already')
})

test('an indexed Job counts indexes: of the status and of pods that have succeeded since', async (t) => {
  const pods = [
    aJobPod('a', { index: 1, exitCode: 0 }),
    aJobPod('again', { index: 1, exitCode: 0 }),
    aJobPod('b', { index: 2, exitCode: 1 }),
    aJobPod('beyond', { index: 5, exitCode: 0 }),
    aJobPod('without', { exitCode: 0 }),
    aJobPod('counted', { index: 3, exitCode: 0, tracked: false }),
    aJobPod('running', { index: 4 }),
  ]
  const { status: _, ...unseen } = aJobPod('unseen', { index: 4 })
  const found = view([...pods, unseen], indexed(5), { succeeded: 1, completedIndexes: '0,7' })
  t.equal(formatIntervals(found.countedIndexes), '0')
  t.equal(formatIntervals(found.succeededIndexes), '0,1')
  t.match(found, { succeeded: 2, failed: 1, failedIndexes: undefined })
  t.equal(found.keptForIndex.size, 0)
})

test('a Job without indexes has none, whatever its pods and its status name', async (t) => {
  const found = view([aJobPod('a', { index: 1, exitCode: 0 })], { completions: 3 }, { completedIndexes: '0' })
  t.same([found.countedIndexes, found.succeededIndexes], [[], []])
  t.equal(found.succeeded, 1)
  const limited = view([aJobPod('a', { index: 1, exitCode: 1 })], { completions: 3, backoffLimitPerIndex: 0 })
  t.equal(limited.failedIndexes, undefined)
})

test('pods without a valid index do not count as failures', async (t) => {
  t.equal(view([aJobPod('a', { exitCode: 1 }), aJobPod('b', { index: 9, exitCode: 1 })], indexed(3)).failed, 0)
})

test('an index has failed when its pod had as many failures before as are allowed', async (t) => {
  const pods = [
    aJobPod('a', { index: 0, exitCode: 1, failures: 1 }),
    aJobPod('b', { index: 1, exitCode: 1, failures: 2 }),
    aJobPod('c', { index: 2, failures: 2 }),
    aJobPod('counted', { index: 3, exitCode: 1, failures: 2, tracked: false }),
    aJobPod('beyond', { index: 9, exitCode: 1, failures: 2 }),
    aJobPod('without', { exitCode: 1, failures: 2 }),
  ]
  const { failedIndexes } = view(pods, indexed(6, { backoffLimitPerIndex: 2 }), { failedIndexes: '5,8' })
  t.equal(formatIntervals(failedIndexes ?? []), '1,5')
})

test('a failure that the policy ignores fails no index, and a rule can fail it at once', async (t) => {
  const rule = (action: string) => ({
    podFailurePolicy: { rules: [{ action, onExitCodes: { operator: 'In', values: [42] } }] },
  })
  const failedBy = (action: string, backoffLimitPerIndex: number) => {
    const spec = indexed(1, { backoffLimitPerIndex, ...rule(action) })
    return formatIntervals(view([aJobPod('a', { index: 0, exitCode: 42 })], spec).failedIndexes ?? [])
  }
  t.equal(failedBy('Ignore', 0), '')
  t.equal(failedBy('Count', 0), '0')
  t.equal(failedBy('Count', 1), '')
  t.equal(failedBy('FailIndex', 5), '0')
})

test('the failed pod of an index is kept until another pod has taken over its count', async (t) => {
  const limited = indexed(5, { backoffLimitPerIndex: 3 })
  const pods = [
    aJobPod('alone', { index: 0, exitCode: 1, failures: 0 }),
    aJobPod('replaced', { index: 1, exitCode: 1, failures: 0 }),
    aJobPod('successor', { index: 1, failures: 1 }),
    aJobPod('too-often', { index: 2, exitCode: 1, failures: 3 }),
    aJobPod('late', { index: 3, exitCode: 1, failures: 0 }),
    aJobPod('done', { index: 3, exitCode: 0, failures: 1 }),
    aJobPod('without', { exitCode: 1 }),
    aJobPod('running', { index: 4 }),
  ]
  t.same(keptNames(view(pods, limited)), ['0: alone'])
  t.same(keptNames(view(pods, indexed(5))), [], 'only where failures of an index are limited')
})

test('of several failed pods of an index the one with most failures is kept, or the later one', async (t) => {
  const kept = (...pods: readonly StoredPod[]) => keptNames(view(pods, indexed(1, { backoffLimitPerIndex: 9 })))
  const first = aJobPod('first', { index: 0, exitCode: 1, failures: 1, endedAt: 5 })
  const more = aJobPod('more', { index: 0, exitCode: 1, failures: 1, ignored: 1, endedAt: 6 })
  const same = aJobPod('same', { index: 0, exitCode: 1, failures: 1, endedAt: 5 })
  const fewer = aJobPod('fewer', { index: 0, exitCode: 1, failures: 0, endedAt: 9 })
  const early = aJobPod('early', { index: 0, exitCode: 1, failures: 2, endedAt: 4 })
  t.same(kept(first, more), ['0: more'])
  t.same(kept(first, same), ['0: same'])
  t.same(kept(first, fewer), ['0: first'])
  t.same(kept(first, early), ['0: first'])
})

test('no step of a visit reads many pods, whatever the Job does with them', async (t) => {
  const many = (exitCode?: number) =>
    Array.from({ length: 4_000 }, (_, index) =>
      aJobPod(`p-${index}`, { index, ...(exitCode !== undefined && { exitCode }) }),
    )
  const most = (pods: readonly StoredPod[], spec: Partial<JobSpec>) =>
    mostReadInStep(pods, function* (found) {
      const seen = yield* jobView(aStoredJob({ ...indexed(5_000), ...spec }), found, { failures: 0 }, midnightMs)
      yield* planPods(seen, midnightMs)
      const outcome = { active: 0, ready: 0, terminating: 0, status: {}, end: undefined }
      yield* trackPods(seen, outcome, midnightMs)
    })
  const bound = 2_000
  t.ok(most(many(), {}) <= bound, 'it creates pods')
  t.ok(most(many(), { parallelism: 1_000 }) <= bound, 'it deletes pods')
  t.ok(most(many(0), {}) <= bound, 'they have succeeded')
  t.ok(most(many(1), { backoffLimitPerIndex: 3 }) <= bound, 'they have failed')
})

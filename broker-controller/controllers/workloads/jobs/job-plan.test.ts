import { test } from 'tap'
import type { JobSpec, JobStatus } from '../../../../api/batch/job.ts'
import { finished } from '../../../../daemon/watchdog/steps.ts'
import type { StoredPod } from '../../../store/store.ts'
import { aJobPod, aStoredJob, midnightMs, timeAt } from '../../../testing/job-objects.ts'
import type { BackoffRecord } from './job-backoff.ts'
import { planPods } from './job-plan.ts'
import { jobView } from './job-view.ts'

type Given = { readonly status?: JobStatus; readonly backoff?: BackoffRecord; readonly afterSeconds?: number }
function plan(spec: Partial<JobSpec>, pods: readonly StoredPod[], given: Given = {}) {
  const { status, backoff = { failures: 0 }, afterSeconds = 0 } = given
  const view = finished(jobView(aStoredJob(spec, status), pods, backoff, midnightMs + afterSeconds * 1000))
  const found = finished(planPods(view, midnightMs + afterSeconds * 1000))
  return found.step === 'delete' ? { delete: found.pods.map(({ metadata }) => metadata.name) } : found
}
const none = { step: 'none' }
const running = (count: number) => Array.from({ length: count }, (_, place) => aJobPod(`run-${place}`))
const indexed = (completions: number, more: Partial<JobSpec> = {}): Partial<JobSpec> => ({
  completionMode: 'Indexed',
  completions,
  parallelism: completions,
  ...more,
})

test('as many pods run as are parallel, and no more than there is work', async (t) => {
  t.same(plan({ completions: 5, parallelism: 3 }, []), { step: 'create', count: 3 })
  t.same(plan({ completions: 5, parallelism: 3 }, running(1)), { step: 'create', count: 2 })
  t.same(plan({ completions: 5, parallelism: 3 }, running(3)), none)
  t.same(plan({ completions: 5, parallelism: 3 }, [], { status: { succeeded: 4 } }), { step: 'create', count: 1 })
  t.same(plan({ completions: 5, parallelism: 3 }, [], { status: { succeeded: 6 } }), none)
  t.same(plan({ completions: 5 }, []), { step: 'create', count: 1 })
})

test('a work queue that has seen a success starts nothing, and leaves what runs', async (t) => {
  t.same(plan({ parallelism: 3 }, running(1)), { step: 'create', count: 2 })
  t.same(plan({ parallelism: 3 }, running(1), { status: { succeeded: 1 } }), none)
  t.same(plan({ parallelism: 1 }, running(2), { status: { succeeded: 1 } }), none)
})

test('a visit creates and deletes at most five hundred pods, and a suspended Job deletes all', async (t) => {
  t.same(plan({ completions: 900, parallelism: 900 }, []), { step: 'create', count: 500 })
  const deleted = (spec: Partial<JobSpec>) => {
    const found = plan(spec, running(600))
    return 'delete' in found ? found.delete.length : found
  }
  t.equal(deleted({ completions: 900, parallelism: 20 }), 500)
  t.equal(deleted({ completions: 900, parallelism: 900, suspend: true }), 600)
  t.same(plan({ completions: 1, suspend: true }, []), none)
})

test('of pods too many those go first that are furthest behind', async (t) => {
  const pods = [aJobPod('ready', { ready: true }), aJobPod('pending', { phase: 'Pending' }), aJobPod('runs')]
  t.same(plan({ completions: 5, parallelism: 2 }, pods), { delete: ['pending'] })
  t.same(plan({ completions: 5, parallelism: 1 }, pods), { delete: ['pending', 'runs'] })
  t.same(plan({ completions: 5, parallelism: 0 }, pods), { delete: ['pending', 'runs', 'ready'] })
})

test('a Job that runs less in parallel keeps the pods that have worked longest', async (t) => {
  const readySince = (name: string, second: number): StoredPod => {
    const pod = aJobPod(name, { ready: true })
    const conditions = [{ type: 'Ready', status: 'True', lastTransitionTime: timeAt(second) }] as const
    const annotations = { 'controller.kubernetes.io/pod-deletion-cost': name === 'old' ? '-1' : '1' }
    return { ...pod, metadata: { ...pod.metadata, annotations }, status: { ...pod.status, conditions } }
  }
  const pods = [readySince('old', 0), readySince('young', 2), readySince('middle', 1)]
  t.same(plan({ completions: 5, parallelism: 1 }, pods, { afterSeconds: 60 }), { delete: ['young', 'middle'] })
})

test('a failed pod is replaced after the wait', async (t) => {
  const backoff = { failures: 1, lastFailureMs: midnightMs }
  const spec = { completions: 2, parallelism: 2 }
  t.same(plan(spec, running(1), { backoff, afterSeconds: 4 }), { step: 'wait', ms: 6000 })
  t.same(plan(spec, running(1), { backoff, afterSeconds: 10 }), { step: 'create', count: 1 })
  t.same(plan(spec, running(2), { backoff }), none)
})

test('a pod that is leaving is replaced at once, or when it has ended', async (t) => {
  const pods = [...running(1), aJobPod('leaving', { leaving: true })]
  const spec = { completions: 2, parallelism: 2 }
  const later = { afterSeconds: 60 }
  t.same(plan(spec, pods, later), { step: 'create', count: 1 })
  t.same(plan({ ...spec, podReplacementPolicy: 'Failed' }, pods, later), none)
  const one = aJobPod('leaving', { index: 0, leaving: true })
  t.same(plan(indexed(2), [one], later), { step: 'create', count: 2, indexes: [0, 1] })
  t.same(plan(indexed(2, { podReplacementPolicy: 'Failed' }), [one]), { step: 'create', count: 1, indexes: [1] })
  const ended = aJobPod('ended', { index: 0, leaving: true, exitCode: 1 })
  const both = { step: 'create', count: 2, indexes: [0, 1] }
  t.same(plan(indexed(2, { podReplacementPolicy: 'Failed' }), [ended], later), both)
})

test('the lowest indexes that are neither done nor given up nor running are started', async (t) => {
  const status = { completedIndexes: '1-2', failedIndexes: '5' }
  const spec = indexed(9, { parallelism: 3, backoffLimitPerIndex: 1 })
  t.same(plan(spec, [aJobPod('a', { index: 3 })], { status }), { step: 'create', count: 2, indexes: [0, 4] })
  t.same(
    plan(
      indexed(3),
      [0, 1, 2].map((index) => aJobPod(`p-${index}`, { index })),
    ),
    none,
  )
})

test('pods without a valid index go, and all but one of an index', async (t) => {
  const pods = [
    aJobPod('zero', { index: 0, ready: true }),
    aJobPod('zero-again', { index: 0 }),
    aJobPod('one', { index: 1 }),
    aJobPod('without'),
    aJobPod('beyond', { index: 3 }),
  ]
  t.same(plan(indexed(3), pods), { delete: ['without', 'beyond', 'zero-again'] })
  t.same(plan(indexed(3, { parallelism: 1 }), pods), { delete: ['without', 'beyond', 'zero-again', 'one'] })
  t.same(plan({ completions: 5, parallelism: 5 }, pods), none, 'only of an indexed Job')
})

test('with a limit for each index, each index waits for itself', async (t) => {
  const spec = indexed(3, { backoffLimitPerIndex: 9 })
  const zero = aJobPod('zero', { index: 0, exitCode: 1, failures: 1 })
  const one = aJobPod('one', { index: 1, exitCode: 1, failures: 0, ignored: 1, endedAt: 5 })
  const two = aJobPod('two', { index: 2 })
  t.same(plan(spec, [zero, one, two], { afterSeconds: 12 }), { step: 'wait', ms: 8000 }, 'until the first may run')
  t.same(plan(spec, [one, zero, two], { afterSeconds: 22 }), { step: 'create', count: 1, indexes: [0] })
  t.same(plan(spec, [zero, one, two], { afterSeconds: 25 }), { step: 'create', count: 2, indexes: [0, 1] })
  t.same(plan(spec, [zero, one]), { step: 'create', count: 1, indexes: [2] }, 'an index without a failure')
  const later = aJobPod('zero', { index: 0, exitCode: 1, failures: 1, endedAt: 9_000 })
  const noticed = { failures: 0, noticedMs: new Map([[later.metadata.uid, midnightMs]]) }
  t.same(plan(spec, [later, two, aJobPod('one', { index: 1 })], { backoff: noticed, afterSeconds: 22 }), {
    ...{ step: 'create', count: 1, indexes: [0] },
  })
  const backoff = { failures: 3, lastFailureMs: midnightMs }
  t.same(
    plan(spec, [two], { backoff }),
    { step: 'create', count: 2, indexes: [0, 1] },
    'the Job as a whole does not wait',
  )
})

test('where every index is taken nothing is started', async (t) => {
  const spec = indexed(2, { podReplacementPolicy: 'Failed', parallelism: 2, backoffLimitPerIndex: 1 })
  const status = { failedIndexes: '0-1' }
  t.same(plan(spec, [], { status }), none)
})

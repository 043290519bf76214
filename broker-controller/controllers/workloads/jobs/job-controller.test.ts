import { test } from 'tap'
import { jobNames } from '../../../../api/batch/job.ts'
import type { Pod } from '../../../../api/pod.ts'
import { metricsRegistry } from '../../../../daemon/metrics-registry.ts'
import { actingOn, jobTemplate, jobWorld } from '../../../testing/job-world.ts'
import { workloadWorld } from '../../../testing/workload-world.ts'
import { workloadControllers } from '../workload-controllers.ts'
import { workloadMetrics } from '../workload-metrics.ts'
import { isTracked } from './job-pods.ts'

const indexOf = (pod: Pod) => pod.metadata.annotations?.[jobNames.completionIndex]
const second = 1000

test('a Job runs its pods until they have succeeded, and counts them', async (t) => {
  const world = await jobWorld(t)
  await world.create({ completions: 3, parallelism: 2 })
  await world.settle()
  const first = await world.running()
  t.equal(first.length, 2)
  t.match(first[0], {
    metadata: {
      name: /^work-.{5}$/,
      finalizers: [jobNames.trackingFinalizer],
      labels: { 'job-name': 'work' },
      ownerReferences: [{ kind: 'Job', name: 'work', controller: true }],
    },
  })
  t.match((await world.job())?.status, { active: 2, ready: 0, terminating: 0, startTime: '2026-01-01T00:00:00Z' })
  await world.endAll(0)
  t.equal((await world.running()).length, 1, 'no more than what is left')
  t.match((await world.job())?.status, { active: 1, succeeded: 2, uncountedTerminatedPods: {} })
  await world.endAll(0)
  t.match((await world.job())?.status, {
    active: undefined,
    succeeded: 3,
    completionTime: '2026-01-01T00:00:00Z',
    conditions: [
      { type: 'SuccessCriteriaMet', reason: 'CompletionsReached' },
      { type: 'Complete', status: 'True', message: 'Reached expected number of succeeded pods' },
    ],
  })
  t.same(
    (await world.pods()).map((pod) => isTracked(pod)),
    [false, false, false],
    'pods stay for their logs',
  )
  t.match(await world.events(), ['SuccessfulCreate', 'SuccessfulCreate', 'SuccessfulCreate', 'Completed'])
})

test('a failed pod is replaced after ten seconds, then twenty, until the limit', async (t) => {
  const world = await jobWorld(t)
  await world.create({ backoffLimit: 2 })
  await world.settle()
  await world.endAll(1)
  t.match((await world.job())?.status, { failed: 1, active: undefined })
  await world.settle(9 * second)
  t.equal((await world.running()).length, 0)
  await world.settle(second)
  t.equal((await world.running()).length, 1)
  await world.endAll(1)
  await world.settle(19 * second)
  t.equal((await world.running()).length, 0)
  await world.settle(second)
  t.equal((await world.running()).length, 1)
  await world.endAll(1)
  t.match((await world.job())?.status, {
    failed: 3,
    completionTime: undefined,
    conditions: [
      { type: 'FailureTarget', reason: 'BackoffLimitExceeded' },
      { type: 'Failed', reason: 'BackoffLimitExceeded', message: 'Job has reached the specified backoff limit' },
    ],
  })
  t.ok((await world.events()).includes('BackoffLimitExceeded'))
})

test('a success ends the row of failures', async (t) => {
  const world = await jobWorld(t)
  await world.create({ completions: 2 })
  await world.settle()
  await world.endAll(1)
  await world.settle(11 * second)
  await world.endAll(0)
  await world.endAll(1)
  await world.settle(11 * second)
  t.equal((await world.running()).length, 1, 'ten seconds again')
})

test('while it waits, pods that run are counted as active', async (t) => {
  const world = await jobWorld(t)
  await world.create({ completions: 2, parallelism: 2 })
  await world.settle()
  await world.end((await world.running())[0], 1)
  await world.settle()
  t.match((await world.job())?.status, { active: 1, failed: 1 })
})

test('containers restarted in place count towards the limit', async (t) => {
  const world = await jobWorld(t)
  await world.create({ backoffLimit: 2, template: jobTemplate('OnFailure') })
  await world.settle()
  await world.runPods()
  const [pod] = await world.running()
  if (pod === undefined) return t.fail('no pod')
  const container = { name: 'main', ready: false, restartCount: 2, image: '', imageID: '' }
  await world.store.updateStatus('pods', { ...pod, status: { phase: 'Running', containerStatuses: [container] } })
  await world.settle()
  t.same(await world.conditions(), ['FailureTarget'], 'it ends when its pod has ended')
  await world.stopLeaving()
  t.same(await world.conditions(), ['FailureTarget', 'Failed'])
  t.match((await world.job())?.status, { failed: 1 })
})

test('a work queue is done when one pod has succeeded and the others have ended', async (t) => {
  const world = await jobWorld(t)
  await world.create({ parallelism: 3 })
  await world.settle()
  const [first] = await world.running()
  await world.end(first, 0)
  await world.settle()
  t.equal((await world.running()).length, 2)
  t.same(await world.conditions(), [])
  await world.endAll(0)
  t.same(await world.conditions(), ['SuccessCriteriaMet', 'Complete'])
  t.match((await world.job())?.status, { succeeded: 3 })
})

test('each pod of an indexed Job has its index, and a failed one is done again', async (t) => {
  const world = await jobWorld(t)
  await world.create({ completionMode: 'Indexed', completions: 3, parallelism: 3 })
  await world.settle()
  const pods = await world.running()
  t.same(pods.map(indexOf).sort(), ['0', '1', '2'])
  const zero = pods.find((pod) => indexOf(pod) === '0')
  t.match(zero, {
    metadata: { name: /^work-0-.{5}$/, labels: { [jobNames.completionIndex]: '0' } },
    spec: {
      hostname: 'work-0',
      containers: [
        {
          env: [
            {
              name: 'JOB_COMPLETION_INDEX',
              valueFrom: { fieldRef: { fieldPath: `metadata.labels['${jobNames.completionIndex}']` } },
            },
          ],
        },
      ],
    },
  })
  for (const pod of pods) await world.end(pod, indexOf(pod) === '1' ? 1 : 0)
  await world.settle()
  t.match((await world.job())?.status, { succeeded: 2, failed: 1, completedIndexes: '0,2' })
  await world.settle(10 * second)
  t.same((await world.running()).map(indexOf), ['1'])
  await world.endAll(0)
  t.match((await world.job())?.status, { succeeded: 3, completedIndexes: '0-2' })
})

test('an index that has failed too often is given up, the others go on', async (t) => {
  const world = await jobWorld(t)
  await world.create({ completionMode: 'Indexed', completions: 2, parallelism: 2, backoffLimitPerIndex: 1 })
  await world.settle()
  const bad = async () => (await world.running()).find((pod) => indexOf(pod) === '1')
  await world.end(await bad(), 1)
  await world.settle(10 * second)
  const again = await bad()
  t.equal(again?.metadata.annotations?.[jobNames.indexFailureCount], '1', 'the successor carries the count of failures')
  await world.end(again, 1)
  await world.settle()
  t.match((await world.job())?.status, { failedIndexes: '1', failed: 2, active: 1 })
  await world.endAll(0)
  t.match((await world.job())?.status, {
    succeeded: 1,
    completedIndexes: '0',
    conditions: [
      { type: 'FailureTarget' },
      { type: 'Failed', reason: 'FailedIndexes', message: 'Job has failed indexes' },
    ],
  })
})

test('more failed indexes than allowed end the Job at once', async (t) => {
  const world = await jobWorld(t)
  const limits = { backoffLimitPerIndex: 0, maxFailedIndexes: 0 }
  await world.create({ completionMode: 'Indexed', completions: 3, parallelism: 3, ...limits })
  await world.settle()
  await world.end((await world.running())[0], 1)
  await world.settle()
  t.equal((await world.running()).length, 0)
  await world.stopLeaving()
  t.match((await world.job())?.status, {
    conditions: [{ type: 'FailureTarget' }, { type: 'Failed', reason: 'MaxFailedIndexesExceeded' }],
  })
})

test('a failure policy ends the Job, ignores a failure, or counts it', async (t) => {
  const policy = {
    rules: [
      { action: 'FailJob', onExitCodes: { operator: 'In', values: [42] } },
      { action: 'Ignore', onPodConditions: [{ type: 'DisruptionTarget' }] },
    ],
  }
  const world = await jobWorld(t)
  await world.create({ backoffLimit: 0, podFailurePolicy: policy })
  await world.settle()
  const [first] = await world.running()
  await world.end(first, 137, { phase: 'Failed', conditions: [{ type: 'DisruptionTarget', status: 'True' }] })
  await world.settle(11 * second)
  t.match((await world.job())?.status, { failed: undefined, active: 1 }, 'a disruption does not count')
  const [other] = await world.running()
  await world.end(other, 42)
  await world.settle()
  const message = `Container main for pod default/${other?.metadata.name} failed with exit code 42 matching FailJob rule at index 0`
  t.match((await world.job())?.status, {
    failed: 1,
    conditions: [
      { type: 'FailureTarget', reason: 'PodFailurePolicy', message },
      { type: 'Failed', message },
    ],
  })
})

test('a failure policy gives up an index', async (t) => {
  const policy = { rules: [{ action: 'FailIndex', onExitCodes: { operator: 'NotIn', values: [1] } }] }
  const world = await jobWorld(t)
  await world.create({
    completionMode: 'Indexed',
    completions: 1,
    backoffLimitPerIndex: 5,
    podFailurePolicy: policy,
  })
  await world.settle()
  await world.endAll(3)
  t.match((await world.job())?.status, { failedIndexes: '0', failed: 1 })
  t.same(await world.conditions(), ['FailureTarget', 'Failed'])
})

test('a success policy ends an indexed Job early, and its other pods', async (t) => {
  const world = await jobWorld(t)
  const successPolicy = { rules: [{ succeededIndexes: '0' }] }
  await world.create({ completionMode: 'Indexed', completions: 3, parallelism: 3, successPolicy })
  await world.settle()
  await world.runPods()
  await world.end(
    (await world.running()).find((pod) => indexOf(pod) === '0'),
    0,
  )
  await world.settle()
  t.same(await world.conditions(), ['SuccessCriteriaMet'])
  t.equal((await world.running()).length, 0)
  await world.stopLeaving()
  t.match((await world.job())?.status, {
    succeeded: 1,
    conditions: [
      { reason: 'SuccessPolicy', message: 'Matched rules at index 0' },
      { type: 'Complete', reason: 'SuccessPolicy' },
    ],
  })
})

test('a suspended Job has no pods; those that ran are not failures', async (t) => {
  const world = await jobWorld(t)
  await world.create({ parallelism: 2, completions: 2 })
  await world.settle()
  await world.runPods()
  await world.edit('jobs', 'work', (job) => ({ ...job, spec: { ...job.spec, suspend: true } }))
  await world.settle()
  await world.stopLeaving()
  t.equal((await world.pods()).length, 0)
  t.match((await world.job())?.status, { active: undefined, failed: undefined, terminating: 0 })
  t.same(await world.conditions(), ['Suspended'])
  await world.clock.advance(60 * second)
  await world.edit('jobs', 'work', (job) => ({ ...job, spec: { ...job.spec, suspend: false } }))
  await world.settle()
  t.equal((await world.running()).length, 2)
  t.match((await world.job())?.status, {
    startTime: /^2026-01-01T00:01:0/,
    conditions: [{ type: 'Suspended', status: 'False', reason: 'JobResumed' }],
  })
  t.match(
    (await world.events()).filter((reason) => !reason.startsWith('Successful')),
    ['Suspended', 'Resumed'],
  )
})

test('a Job that takes longer than its deadline fails', async (t) => {
  const world = await jobWorld(t)
  await world.create({ activeDeadlineSeconds: 30 })
  await world.settle()
  await world.runPods()
  await world.settle(29 * second)
  t.equal((await world.running()).length, 1)
  await world.settle(second)
  t.equal((await world.running()).length, 0)
  await world.stopLeaving()
  t.match((await world.job())?.status, {
    failed: 1,
    conditions: [{ type: 'FailureTarget' }, { type: 'Failed', reason: 'DeadlineExceeded' }],
  })
})

test('the deadline of a Job counts again from its start after a suspension', async (t) => {
  const world = await jobWorld(t)
  await world.create({ activeDeadlineSeconds: 30 })
  await world.settle(20 * second)
  const suspend = (isSuspended: boolean) =>
    world.edit('jobs', 'work', (job) => ({ ...job, spec: { ...job.spec, suspend: isSuspended } }))
  await suspend(true)
  await world.settle(60 * second)
  await suspend(false)
  await world.settle(29 * second)
  t.same(await world.conditions(), [])
  t.equal((await world.running()).length, 1)
  await world.settle(2 * second)
  t.match((await world.job())?.status?.conditions, [{ type: 'Suspended' }, { reason: 'DeadlineExceeded' }])
})

test('a pod that is leaving is replaced at once, or when it has ended, as the Job asks', async (t) => {
  for (const [podReplacementPolicy, atOnce] of [
    ['TerminatingOrFailed', true],
    ['Failed', false],
  ] as const) {
    const world = await jobWorld(t)
    await world.create({ podReplacementPolicy })
    await world.settle()
    await world.runPods()
    const [pod] = await world.running()
    if (pod === undefined) return t.fail('no pod')
    const metadata = { ...pod.metadata, deletionTimestamp: '2026-01-01T00:00:30Z', deletionGracePeriodSeconds: 30 }
    await world.store.update('pods', { ...pod, metadata })
    await world.settle(11 * second)
    t.equal((await world.running()).length, atOnce ? 1 : 0, podReplacementPolicy)
    await world.stopLeaving()
    await world.settle(20 * second)
    t.equal((await world.running()).length, 1)
    t.match((await world.job())?.status, { failed: 1 })
  }
})

test('fewer parallel pods: those that are furthest behind go, and do not count', async (t) => {
  const world = await jobWorld(t)
  await world.create({ completions: 5, parallelism: 3 })
  await world.settle()
  await world.edit('jobs', 'work', (job) => ({ ...job, spec: { ...job.spec, parallelism: 1 } }))
  await world.settle()
  t.equal((await world.pods()).length, 1)
  t.match((await world.job())?.status, { active: 1, failed: undefined })
})

test('a Job that another controller manages is left to it', async (t) => {
  const world = await jobWorld(t)
  await world.create({ managedBy: 'example.com/mine' })
  await world.settle()
  t.equal((await world.pods()).length, 0)
  t.same((await world.job())?.status, {})
})

test('when a Job goes, nothing holds its pods any more', async (t) => {
  const world = await jobWorld(t)
  await world.create({ parallelism: 2, completions: 2 })
  await world.settle()
  await world.store.delete('jobs', { namespace: 'default', name: 'work' })
  await world.settle()
  t.same(
    (await world.pods()).map((pod) => isTracked(pod)),
    [false, false],
  )
})

test('a pod that a Job selects is adopted with the finalizer, and counted', async (t) => {
  const world = await jobWorld(t)
  const labels = { app: 'mine' }
  const template = { ...jobTemplate(), metadata: { labels } }
  const metadata = { name: 'lost', namespace: 'default', labels }
  await world.needs.creation.create('pods', { apiVersion: 'v1', kind: 'Pod', metadata, spec: template.spec }, 'test')
  await world.create({ manualSelector: true, selector: { matchLabels: labels }, template })
  await world.settle()
  const pods = await world.pods()
  t.same(
    pods.map((pod) => [pod.metadata.name, isTracked(pod)]),
    [['lost', true]],
  )
  await world.endAll(0)
  t.match((await world.job())?.status, { succeeded: 1 })
})

test('visits, pods and Jobs that have ended are counted in metrics', async (t) => {
  const world = await workloadWorld(t)
  const registry = metricsRegistry()
  world.start(workloadControllers({ ...world.needs, workloadMetrics: workloadMetrics(registry) }))
  await world.settle()
  const { create, endAll } = actingOn(world)
  await create({ completions: 2, parallelism: 2 })
  await world.settle()
  await endAll(0)
  const one = (name: string) => registry.samplesOf(name).map(({ labels, value }) => ({ ...labels, value }))
  t.match(one('job_controller_jobs_finished_total'), [{ result: 'succeeded', reason: 'CompletionsReached', value: 1 }])
  t.match(one('job_controller_job_pods_finished_total'), [{ result: 'succeeded', value: 2 }, { value: 0 }])
  const [first] = one('job_controller_job_syncs_total')
  t.match(first, { completion_mode: 'NonIndexed', result: 'success', action: 'pods_created' })
})

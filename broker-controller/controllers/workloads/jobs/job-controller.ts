/** Loop: runs the pods of Jobs until their work is done, and counts them (pkg/controller/job/job_controller.go). */

import { isApiError } from '../../../../api/api-error.ts'
import { finishedConditionOf, type JobStatus, jobNames } from '../../../../api/batch/job.ts'
import type { Reconciled } from '../../../../daemon/controller.ts'
import { inParallel } from '../../../../daemon/in-parallel.ts'
import { finishedInTurns, yieldTurn } from '../../../../daemon/limits/turn-limit.ts'
import { type Loop, runLoops } from '../../../../daemon/run.ts'
import { equalJSON } from '../../../store/equal-json.ts'
import type { StoredPod } from '../../../store/store.ts'
import { claimObjects } from '../claims.ts'
import type { OwnedObjects } from '../owned-objects.ts'
import { ownerLoop } from '../owner-loop.ts'
import { type PodControl, type PodControlNeeds, podControl } from '../pod-control.ts'
import { isReadyPod } from '../pod-readiness.ts'
import { selecting } from '../selecting.ts'
import { slowStart } from '../slow-start.ts'
import type { JobSyncAction, WorkloadMetrics } from '../workload-metrics.ts'
import type { BackoffRecord } from './job-backoff.ts'
import { completion, deadlineLeftMs, endOf } from './job-end.ts'
import { type JobPodPlan, planPods } from './job-plan.ts'
import { activeSinceMs, startedStatus, suspensionOf } from './job-suspension.ts'
import { indexedPod, jobPodTemplate } from './job-template.ts'
import { finishedStatus, type Outcome, settleCounts, trackPods, writtenStatus } from './job-tracking.ts'
import { type JobView, jobView, type StoredJob } from './job-view.ts'
import { orphanPods, releasePod } from './tracking-finalizer.ts'

export const jobComponent = 'job-controller'
const writesAtOnce = 32
/** Somebody else wrote the Job in the meantime: its change makes a visit as well. */
const conflictRetryMs = 50

export type JobControllerNeeds = PodControlNeeds & { readonly workloadMetrics: WorkloadMetrics }

export function jobController(needs: JobControllerNeeds, pods: OwnedObjects<'pods'>): Loop {
  const { log, clock, workloadMetrics } = needs
  const control = podControl(needs, jobComponent)
  const backoffs = backoffRecords()
  const selects = selecting<StoredJob>(({ spec }) => spec.selector)
  const orphans = orphanPods(needs, pods)
  const isOurs = ({ spec }: StoredJob) => (spec.managedBy ?? jobNames.controller) === jobNames.controller

  const reconcile = async (job: StoredJob, found: readonly StoredPod[]): Promise<Reconciled> => {
    if (!isOurs(job)) return undefined
    if (finishedConditionOf(job) !== undefined) {
      backoffs.drop(job)
      await orphans.check(found)
      return undefined
    }
    const select = selects(job)
    if (select === undefined) return undefined
    const claim = { owners: 'jobs', owner: job, dependents: pods.resource, selects: select } as const
    const own = await claimObjects(needs, { ...claim, finalizer: jobNames.trackingFinalizer }, found)
    const startMs = clock.monotonicMs()
    const failed = (error: unknown): Visited => ({ error, action: 'reconciling' })
    const { next, error, action } = await visitJob({ ...needs, control, backoffs }, job, own).catch(failed)
    const result = error === undefined ? 'success' : 'error'
    workloadMetrics.jobSynced(job, { result, action, tookMs: clock.monotonicMs() - startMs })
    if (isApiError(error, 'Conflict')) return { requeueAfterMs: conflictRetryMs }
    // It was deleted in the meantime.
    if (error === undefined || isApiError(error, 'NotFound')) return next
    throw error
  }

  const loop = ownerLoop(needs, {
    name: 'job',
    owners: 'jobs',
    dependents: pods,
    selects: (job) => (isOurs(job) && finishedConditionOf(job) === undefined ? selects(job) : undefined),
    reconcile,
    removed: (job) => {
      backoffs.drop(job)
      void orphans.check(pods.ofController(job))
    },
  })
  return { name: 'job', run: (signal) => runLoops([loop, orphans], signal, log) }
}

type Backoffs = ReturnType<typeof backoffRecords>
type VisitNeeds = JobControllerNeeds & { readonly control: PodControl; readonly backoffs: Backoffs }
type Visited = {
  readonly next?: Reconciled
  /** What failed, where the others of its writes are done. */
  readonly error?: unknown
  readonly action: JobSyncAction
}

/** Throws Conflict where the Job changed during the visit. */
async function visitJob(needs: VisitNeeds, job: StoredJob, pods: readonly StoredPod[]): Promise<Visited> {
  const { clock, control, backoffs, workloadMetrics } = needs
  const nowMs = clock.wallMs()
  const view = await finishedInTurns(jobView(job, pods, backoffs.of(job), nowMs))
  const begun = startedStatus(job, nowMs)
  const sinceMs = activeSinceMs(job, begun, nowMs)
  const end = endOf(view, sinceMs, nowMs)
  await yieldTurn()
  const done = end === undefined ? await manage(needs, view, nowMs) : await stop(needs, view)
  const outcome: Outcome = {
    ...done,
    end: end === undefined ? completion(view, done.active, nowMs) : done.active === 0 ? end : undefined,
    status: begun,
  }
  await yieldTurn()
  const suspension = end === undefined && outcome.end === undefined ? suspensionOf(job, begun, nowMs) : undefined
  const ended = { ...outcome, status: suspension?.status ?? begun }
  const tracking = await finishedInTurns(trackPods(view, ended, nowMs))

  const written = await writeStatus(needs, job, tracking.status)
  backoffs.set(job, view.backoff)
  if (suspension !== undefined) await control.record(job, suspension.event)
  const held = new Set(tracking.held)
  const errors = await releaseAll(needs, tracking.release, held)
  const settled = settleCounts(tracking.status, held)
  const finished = errors.length === 0 ? finishedStatus(settled, tracking) : undefined
  const last = await writeStatus(needs, written, finished ?? settled)
  workloadMetrics.jobPodsFinished(job, job.status, last.status)
  if (finished !== undefined) {
    workloadMetrics.jobFinished(last)
    await recordEnd(control, last)
  }
  const error = done.error ?? errors[0]
  const { action } = done
  if (error !== undefined) return { error, action }
  const next = nextVisit(job, { sinceMs, waitMs: done.waitMs, isPartial: tracking.isPartial, nowMs: clock.wallMs() })
  return { next, action }
}

type Done = Pick<Outcome, 'active' | 'ready' | 'terminating'> & {
  readonly action: JobSyncAction
  readonly error?: unknown
  readonly waitMs?: number
}

/** Deletes what runs. The finalizers stay: these pods are counted. */
async function stop({ control }: VisitNeeds, view: JobView): Promise<Done> {
  return { ...(await deletePods(view, view.active, (pod) => control.delete(view.job, pod))), action: 'reconciling' }
}

async function manage(needs: VisitNeeds, view: JobView, nowMs: number): Promise<Done> {
  const { job, active, ready, terminating } = view
  const same = { active: active.length, ready, terminating }
  const isLeaving = job.metadata.deletionTimestamp !== undefined
  const plan: JobPodPlan = isLeaving ? { step: 'none' } : await finishedInTurns(planPods(view, nowMs))
  switch (plan.step) {
    case 'none':
      return { ...same, action: 'tracking' }
    // Kubernetes reports no active pods while it waits, also where some are: their number is kept here.
    case 'wait':
      return { ...same, action: 'pods_created', waitMs: plan.ms }
    case 'delete': {
      const remove = async (pod: StoredPod) => {
        await releasePod(needs, pod)
        await needs.control.delete(job, pod)
      }
      return { ...(await deletePods(view, plan.pods, remove)), action: 'pods_deleted' }
    }
    case 'create': {
      const { done, error } = await create(needs.control, view, plan)
      const made = { ...same, active: active.length + done, action: 'pods_created' } as const
      return error === undefined ? made : { ...made, error }
    }
  }
}

async function create(
  control: PodControl,
  { job, keptForIndex }: JobView,
  { count, indexes }: Extract<JobPodPlan, { step: 'create' }>,
) {
  const template = jobPodTemplate(job)
  return await slowStart(count, async (place) => {
    const index = indexes?.[place]
    const made = await control.create(job, template, (pod) =>
      index === undefined ? pod : indexedPod(job, index, pod, keptForIndex.get(index)),
    )
    return made !== undefined
  })
}

async function deletePods(
  { active, ready, terminating }: JobView,
  pods: readonly StoredPod[],
  remove: (pod: StoredPod) => Promise<void>,
): Promise<Omit<Done, 'action'>> {
  const deleted: StoredPod[] = []
  let error: unknown
  await inParallel(pods, writesAtOnce, async (pod) => {
    try {
      await remove(pod)
      deleted.push(pod)
    } catch (failure) {
      error ??= failure
    }
  })
  return {
    active: active.length - deleted.length,
    ready: ready - deleted.filter(isReadyPod).length,
    terminating: terminating + deleted.length,
    ...(error !== undefined && { error }),
  }
}

/** Takes the finalizers off, and the uids out of `held`. Returns what failed. */
async function releaseAll(
  needs: VisitNeeds,
  pods: readonly StoredPod[],
  held: Set<string>,
): Promise<readonly unknown[]> {
  const errors: unknown[] = []
  await inParallel(pods, writesAtOnce, async (pod) => {
    try {
      await releasePod(needs, pod)
      held.delete(pod.metadata.uid)
    } catch (error) {
      errors.push(error)
    }
  })
  return errors
}

/** Onto the Job as it was read; the same object when nothing is new. */
async function writeStatus({ store }: VisitNeeds, job: StoredJob, wanted: JobStatus): Promise<StoredJob> {
  const status = writtenStatus(wanted)
  return equalJSON(status, job.status ?? {}) ? job : await store.updateStatus('jobs', { ...job, status })
}

async function recordEnd(control: PodControl, job: StoredJob): Promise<void> {
  const end = finishedConditionOf(job)
  if (end === undefined) return
  const { reason = '', message = '' } = end
  if (end.type === 'Failed') return await control.record(job, { type: 'Warning', reason, message })
  if (job.spec.completions !== undefined && (job.status?.succeeded ?? 0) > job.spec.completions) {
    const text = 'Too many succeeded pods running after completion count reached'
    await control.record(job, { type: 'Warning', reason: 'TooManySucceededPods', message: text })
  }
  await control.record(job, { type: 'Normal', reason: 'Completed', message: 'Job completed' })
}

function nextVisit(
  job: StoredJob,
  facts: {
    readonly sinceMs: number | undefined
    readonly waitMs: number | undefined
    readonly isPartial: boolean
    readonly nowMs: number
  },
): Reconciled {
  if (facts.isPartial) return { requeueAfterMs: 1 }
  const { waitMs = Number.POSITIVE_INFINITY } = facts
  const leftMs = Math.min(waitMs, deadlineLeftMs(job, facts.sinceMs, facts.nowMs))
  return leftMs === Number.POSITIVE_INFINITY ? undefined : { requeueAfterMs: Math.max(1, leftMs) }
}

/** By uid. */
function backoffRecords() {
  const records = new Map<string, BackoffRecord>()
  return {
    of: ({ metadata }: StoredJob): BackoffRecord => records.get(metadata.uid) ?? { failures: 0 },
    set({ metadata }: StoredJob, record: BackoffRecord) {
      if (record.failures === 0 && record.noticedMs === undefined) records.delete(metadata.uid)
      else records.set(metadata.uid, record)
    },
    drop: ({ metadata }: StoredJob) => void records.delete(metadata.uid),
  }
}

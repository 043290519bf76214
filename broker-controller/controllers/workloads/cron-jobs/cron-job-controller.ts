/** Loop: creates the Jobs of CronJobs when they are due, and keeps their history (pkg/controller/cronjob/cronjob_controllerv2.go). */
import { isApiError } from '../../../../api/api-error.ts'
import type { CronJobStatus } from '../../../../api/batch/cron-job.ts'
import { localTimeZone, type TimeZone } from '../../../../api/batch/time-zone.ts'
import { rfc3339 } from '../../../../daemon/clock.ts'
import type { Reconciled } from '../../../../daemon/controller.ts'
import { messageOf } from '../../../../daemon/errors.ts'
import { type Loop, runLoops } from '../../../../daemon/run.ts'
import { equalJSON } from '../../../store/equal-json.ts'
import { removeObject } from '../../../store/object-removal.ts'
import { objectReference } from '../../../store/references.ts'
import type { StoredObject } from '../../../store/store.ts'
import { watchClock } from '../clock-jumps.ts'
import { controllerOf } from '../controller-ref.ts'
import type { OwnedObjects } from '../owned-objects.ts'
import { type OwnersInQueue, ownerLoop } from '../owner-loop.ts'
import { isNamespaceTerminating, type PodControl, type PodControlNeeds, podControl } from '../pod-control.ts'
import type { WorkloadMetrics } from '../workload-metrics.ts'
import { nextLookInMs, planCronJob, type StoredCronJob, scheduledJob } from './cron-job-plan.ts'

const component = 'cronjob-controller'
const conflictRetryMs = 50

export type CronJobNeeds = PodControlNeeds & { readonly workloadMetrics: Pick<WorkloadMetrics, 'cronJobStarted'> }
type VisitNeeds = CronJobNeeds & { readonly control: PodControl; readonly localZone: TimeZone }

export function cronJobController(
  given: CronJobNeeds,
  jobs: OwnedObjects<'jobs'>,
  localZone: TimeZone = localTimeZone(),
): Loop {
  const { clock, log } = given
  const needs: VisitNeeds = { ...given, localZone, control: podControl(given, component) }
  /** The schedules as they were at the last visit, by uid. */
  const schedules = new Map<string, string>()
  let present: OwnersInQueue<'cronjobs'> | undefined

  const hasNewSchedule = ({ metadata, spec }: StoredCronJob) => {
    const now = JSON.stringify([spec.schedule, spec.timeZone])
    const before = schedules.get(metadata.uid)
    schedules.set(metadata.uid, now)
    return before !== undefined && before !== now
  }
  const reconcile = async (cronJob: StoredCronJob, found: readonly StoredObject<'jobs'>[]): Promise<Reconciled> => {
    const isNewSchedule = hasNewSchedule(cronJob)
    try {
      return await visitCronJob(needs, cronJob, found, isNewSchedule)
    } catch (error) {
      if (isApiError(error, 'Conflict')) return { requeueAfterMs: conflictRetryMs }
      if (isApiError(error, 'NotFound') || isNamespaceTerminating(error)) return undefined
      throw error
    }
  }
  const loop = ownerLoop(given, {
    name: 'cronjob',
    owners: 'cronjobs',
    dependents: jobs,
    selects: () => undefined,
    reconcile,
    connect: (owners) => {
      present = owners
    },
    removed: ({ metadata }) => void schedules.delete(metadata.uid),
  })
  // Timers measure time that passes; schedules are dates. A date that jumps makes all timers wrong.
  const jumps = watchClock(clock, () => {
    for (const cronJob of present?.all() ?? []) present?.enqueue(cronJob)
  })
  return { name: 'cronjob', run: (signal) => runLoops([loop, jumps], signal, log) }
}

function later(cronJob: StoredCronJob, { clock, localZone }: VisitNeeds): Reconciled {
  const ms = nextLookInMs(cronJob, localZone, clock.wallMs())
  return ms === undefined ? undefined : { requeueAfterMs: ms }
}

/** Throws Conflict where the CronJob changed during the visit, and the first error of its writes. */
async function visitCronJob(
  needs: VisitNeeds,
  cronJob: StoredCronJob,
  found: readonly StoredObject<'jobs'>[],
  isNewSchedule: boolean,
): Promise<Reconciled> {
  const { control, clock, localZone } = needs
  const plan = planCronJob(cronJob, found, { localZone, isNewSchedule, nowMs: clock.wallMs() })
  for (const event of plan.events) await control.record(cronJob, event)
  for (const job of plan.remove) await remove(needs, cronJob, job)
  let { status } = plan
  let error: unknown
  if (plan.start !== undefined) {
    try {
      status = await start(needs, cronJob, status, plan.start)
    } catch (failure) {
      error = failure
    }
  }
  const written = await writeStatus(needs, cronJob, status)
  if (error !== undefined) throw error
  return later(written, needs)
}

async function start(
  needs: VisitNeeds,
  cronJob: StoredCronJob,
  status: CronJobStatus,
  { scheduledMs, replace }: { readonly scheduledMs: number; readonly replace: readonly StoredObject<'jobs'>[] },
): Promise<CronJobStatus> {
  for (const job of replace) await remove(needs, cronJob, job)
  const replaced = new Set(replace.map(({ metadata }) => metadata.uid))
  const active = (status.active ?? []).filter(({ uid = '' }) => !replaced.has(uid))
  const job = await createJob(needs, cronJob, scheduledMs)
  const isOurs = job !== undefined && controllerOf(job)?.uid === cronJob.metadata.uid
  if (!isOurs || active.some(({ uid }) => uid === job.metadata.uid)) return { ...status, active }
  return { ...status, active: [...active, objectReference(job)], lastScheduleTime: rfc3339(scheduledMs) }
}

/** The Job that is there already, where there is one: an earlier visit ended before it could write the status. */
async function createJob(
  { creation, control, store, clock, workloadMetrics }: VisitNeeds,
  cronJob: StoredCronJob,
  scheduledMs: number,
): Promise<StoredObject<'jobs'> | undefined> {
  const wanted = scheduledJob(cronJob, scheduledMs)
  try {
    const job = await creation.create('jobs', wanted, component)
    workloadMetrics.cronJobStarted(clock.wallMs() - scheduledMs)
    const message = `Created job ${job.metadata.name}`
    await control.record(cronJob, { type: 'Normal', reason: 'SuccessfulCreate', message })
    return job
  } catch (error) {
    if (isApiError(error, 'AlreadyExists')) {
      const { name = '', namespace = '' } = wanted.metadata
      return await store.get('jobs', { namespace, name })
    }
    if (!isNamespaceTerminating(error)) {
      const message = `Error creating job: ${messageOf(error)}`
      await control.record(cronJob, { type: 'Warning', reason: 'FailedCreate', message })
    }
    throw error
  }
}

async function remove(needs: VisitNeeds, cronJob: StoredCronJob, job: StoredObject<'jobs'>): Promise<void> {
  const { control } = needs
  try {
    await removeObject(needs, 'jobs', job, { propagationPolicy: 'Background' })
  } catch (error) {
    await control.record(cronJob, {
      type: 'Warning',
      reason: 'FailedDelete',
      message: `Deleted job: ${messageOf(error)}`,
    })
    throw error
  }
  const message = `Deleted job ${job.metadata.name}`
  await control.record(cronJob, { type: 'Normal', reason: 'SuccessfulDelete', message })
}

async function writeStatus(
  { store }: VisitNeeds,
  cronJob: StoredCronJob,
  { active = [], ...rest }: CronJobStatus,
): Promise<StoredCronJob> {
  const status: CronJobStatus = { ...(active.length > 0 && { active }), ...rest }
  return equalJSON(status, cronJob.status ?? {})
    ? cronJob
    : await store.updateStatus('cronjobs', { ...cronJob, status })
}

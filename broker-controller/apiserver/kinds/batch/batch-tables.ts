/** The columns of `kubectl get jobs` and `cronjobs` (printJob and printCronJob in pkg/printers/internalversion/printers.go). */
import type { CronJob } from '../../../../api/batch/cron-job.ts'
import { hasJobCondition, type Job } from '../../../../api/batch/job.ts'
import { ageOf, humanDuration, orNone, type TableOf, tableColumns } from '../../handlers/cells.ts'
import { containerCells, selectorText } from '../workloads/workload-cells.ts'

export const jobTable: TableOf<Job> = {
  columns: tableColumns('Name', 'Status', 'Completions', 'Duration', 'Age', 'Containers*', 'Images*', 'Selector*'),
  cells: (job, nowMs) => [
    job.metadata.name ?? '',
    stateOf(job),
    completionsOf(job),
    durationOf(job, nowMs),
    ageOf(job.metadata.creationTimestamp, nowMs),
    ...containerCells(job.spec.template),
    orNone(selectorText(job.spec.selector ?? {})),
  ],
}

export const cronJobTable: TableOf<CronJob> = {
  columns: tableColumns(
    'Name',
    'Schedule',
    'Timezone',
    'Suspend',
    'Active',
    'Last Schedule',
    'Age',
    'Containers*',
    'Images*',
    'Selector*',
  ),
  cells: ({ metadata, spec, status = {} }, nowMs) => [
    metadata.name ?? '',
    spec.schedule ?? '',
    spec.timeZone ?? '<none>',
    spec.suspend === undefined ? '<unset>' : spec.suspend ? 'True' : 'False',
    status.active?.length ?? 0,
    status.lastScheduleTime === undefined ? '<none>' : ageOf(status.lastScheduleTime, nowMs),
    ageOf(metadata.creationTimestamp, nowMs),
    ...containerCells(spec.jobTemplate.spec.template),
    orNone(selectorText(spec.jobTemplate.spec.selector ?? {})),
  ],
}

function stateOf(job: Job): string {
  if (hasJobCondition(job, 'Complete')) return 'Complete'
  if (hasJobCondition(job, 'Failed')) return 'Failed'
  if (job.metadata.deletionTimestamp !== undefined) return 'Terminating'
  if (hasJobCondition(job, 'Suspended')) return 'Suspended'
  return hasJobCondition(job, 'FailureTarget') ? 'FailureTarget' : 'Running'
}

function completionsOf({ spec, status = {} }: Job): string {
  const { completions, parallelism = 0 } = spec
  const { succeeded = 0 } = status
  if (completions !== undefined) return `${succeeded}/${completions}`
  return parallelism > 1 ? `${succeeded}/1 of ${parallelism}` : `${succeeded}/1`
}

function durationOf({ status = {} }: Job, nowMs: number): string {
  const { startTime, completionTime } = status
  if (startTime === undefined) return ''
  const endMs = completionTime === undefined ? nowMs : Date.parse(completionTime)
  return humanDuration(endMs - Date.parse(startTime))
}

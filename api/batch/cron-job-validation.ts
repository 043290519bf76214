/** Validates CronJobs (pkg/apis/batch/validation/validation.go). */

import { invalid, notSupported, type Problem, required } from '../problem.ts'
import { countProblems } from '../validation/workload-validation.ts'
import type { CronJob, CronJobSpec } from './cron-job.ts'
import { parseSchedule } from './cron-schedule.ts'
import { jobSpecProblems, nonNegativeProblems } from './job-validation.ts'
import { timeZone, utc } from './time-zone.ts'

/** A Job is named after its CronJob and the minute: eleven characters more, of 63. */
const longestName = 52

/** Problems of a CronJob with its defaults. */
export function newCronJobProblems({ metadata, spec }: CronJob): readonly Problem[] {
  const { name = '' } = metadata
  return [
    ...cronJobSpecProblems(spec, undefined),
    ...(name.length > longestName ? [invalid('metadata.name', name, 'must be no more than 52 characters')] : []),
  ]
}

/** Longer names are accepted here: the CronJob is there already. */
export function cronJobChangeProblems(old: CronJob, now: CronJob): readonly Problem[] {
  return cronJobSpecProblems(now.spec, old.spec)
}

function cronJobSpecProblems(spec: CronJobSpec, old: CronJobSpec | undefined): readonly Problem[] {
  const { schedule = '', concurrencyPolicy = '', jobTemplate } = spec
  const isNewZone = old === undefined || old.timeZone !== spec.timeZone
  return [
    ...(schedule === ''
      ? [required('spec.schedule')]
      : scheduleProblems(schedule, old?.schedule?.includes('TZ') === true, spec)),
    ...nonNegativeProblems('spec.startingDeadlineSeconds', spec.startingDeadlineSeconds),
    ...(isNewZone && spec.timeZone !== undefined ? timeZoneProblems('spec.timeZone', spec.timeZone) : []),
    ...concurrencyProblems(concurrencyPolicy),
    ...jobSpecProblems('spec.jobTemplate.spec', jobTemplate.spec),
    ...(jobTemplate.spec.selector === undefined
      ? []
      : [invalid('spec.jobTemplate.spec.selector', jobTemplate.spec.selector, '`selector` will be auto-generated')]),
    ...(jobTemplate.spec.manualSelector === true
      ? [notSupported('spec.jobTemplate.spec.manualSelector', true, ['nil', 'false'])]
      : []),
    ...countProblems('spec.successfulJobsHistoryLimit', spec.successfulJobsHistoryLimit),
    ...countProblems('spec.failedJobsHistoryLimit', spec.failedJobsHistoryLimit),
  ]
}

function concurrencyProblems(policy: string): readonly Problem[] {
  const known = ['Allow', 'Forbid', 'Replace']
  if (policy === '') return [required('spec.concurrencyPolicy')]
  return known.includes(policy) ? [] : [notSupported('spec.concurrencyPolicy', policy, known)]
}

/** `hadZone`: the schedule named a zone before this was refused. */
function scheduleProblems(schedule: string, hadZone: boolean, spec: CronJobSpec): readonly Problem[] {
  const field = 'spec.schedule'
  const parsed = parseSchedule(schedule, utc)
  const problems = parsed.ok ? [] : [invalid(field, schedule, parsed.problem)]
  if (!schedule.includes('TZ')) return problems
  if (!hadZone) {
    return [...problems, invalid(field, schedule, 'cannot use TZ or CRON_TZ in schedule, use timeZone field instead')]
  }
  if (spec.timeZone === undefined) return problems
  const because = 'cannot use both timeZone field and TZ or CRON_TZ in schedule'
  return [...problems, invalid(field, schedule, because)]
}

function timeZoneProblems(field: string, name: string): readonly Problem[] {
  if (name === '') return [invalid(field, name, 'timeZone must be nil or non-empty string')]
  const isName = name
    .split('/')
    .every((part) => part !== '.' && part !== '..' && !part.startsWith('-') && /^[A-Za-z._0-9+-]{1,14}$/.test(part))
  const unknown = invalid(field, name, `unknown time zone ${name}`)
  if (!isName) return [unknown]
  if (name.toLowerCase() === 'local') {
    const because = 'timeZone must be an explicit time zone as defined in https://www.iana.org/time-zones'
    return [invalid(field, name, because), ...(name === 'Local' ? [] : [unknown])]
  }
  return timeZone(name) === undefined ? [unknown] : []
}

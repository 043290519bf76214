import { test } from 'tap'
import type { CronJob, CronJobSpec } from '../../../../api/batch/cron-job.ts'
import type { JobSpec } from '../../../../api/batch/job.ts'
import { causes, create, update } from '../../../testing/admitting.ts'
import { anApi, patchTypes } from '../../../testing/api-in-memory.ts'

const tables = 'application/json;as=Table;v=v1;g=meta.k8s.io'
const path = '/apis/batch/v1/namespaces/default/cronjobs'

function cronJob(spec: Partial<CronJobSpec> = {}, job: Partial<JobSpec> = {}, name = 'hello'): CronJob {
  const template = {
    spec: { containers: [{ name: 'hello', image: 'busybox:1' }], restartPolicy: 'OnFailure' },
  } as const
  return {
    apiVersion: 'batch/v1',
    kind: 'CronJob',
    metadata: { name, namespace: 'default' },
    spec: { schedule: '*/1 * * * *', jobTemplate: { spec: { template, ...job } }, ...spec },
  }
}
const refused = (...given: Parameters<typeof cronJob>) => causes(() => create('cronjobs', cronJob(...given)))

test('a CronJob gets its defaults; those of its Jobs are set when they are created', async (t) => {
  const { spec } = create('cronjobs', cronJob()) as CronJob
  t.match(spec, {
    concurrencyPolicy: 'Allow',
    suspend: false,
    successfulJobsHistoryLimit: 3,
    failedJobsHistoryLimit: 1,
    jobTemplate: { spec: { template: { spec: { dnsPolicy: 'ClusterFirst' } } } },
  })
  t.equal(spec.jobTemplate.spec.parallelism, undefined)
  const brought = create('cronjobs', { ...cronJob(), status: { lastScheduleTime: '2026-01-01T00:00:00Z' } })
  t.same(brought.status, {}, 'a status that it brings is dropped')
})

test('schedule, zone and policy are judged in the words of Kubernetes', async (t) => {
  t.same(refused({ schedule: '' }), ['spec.schedule: Required value'])
  t.same(refused({ schedule: 'soon' }), [
    'spec.schedule: Invalid value: "soon": expected exactly 5 fields, found 1: [soon]',
  ])
  t.same(refused({ schedule: 'TZ=UTC 0 * * * *' }), [
    'spec.schedule: Invalid value: "TZ=UTC 0 * * * *": cannot use TZ or CRON_TZ in schedule, use timeZone field instead',
  ])
  t.same(refused({ timeZone: 'Mars/Base' }), ['spec.timeZone: Invalid value: "Mars/Base": unknown time zone Mars/Base'])
  t.same(refused({ timeZone: '' }), ['spec.timeZone: Invalid value: "": timeZone must be nil or non-empty string'])
  t.same(refused({ timeZone: 'Local' }), [
    'spec.timeZone: Invalid value: "Local": timeZone must be an explicit time zone as defined in https://www.iana.org/time-zones',
  ])
  t.same(refused({ timeZone: '../etc' }), ['spec.timeZone: Invalid value: "../etc": unknown time zone ../etc'])
  t.same(refused({ timeZone: 'Europe/Berlin' }), [])
  t.same(refused({ concurrencyPolicy: 'Maybe' }), [
    'spec.concurrencyPolicy: Unsupported value: "Maybe": supported values: "Allow", "Forbid", "Replace"',
  ])
  t.same(refused({ startingDeadlineSeconds: -1, failedJobsHistoryLimit: -1 }), [
    'spec.startingDeadlineSeconds: Invalid value: -1: must be greater than or equal to 0',
    'spec.failedJobsHistoryLimit: Invalid value: -1: must be greater than or equal to 0',
  ])
})

test('the Jobs are judged when the CronJob is created', async (t) => {
  t.same(refused({}, { completionMode: 'Indexed' }), [
    'spec.jobTemplate.spec.completions: Required value: when completion mode is Indexed',
  ])
  t.match(refused({}, { selector: { matchLabels: { a: 'b' } }, manualSelector: true }), [
    /^spec.jobTemplate.spec.selector: Invalid value: .*: `selector` will be auto-generated$/,
    'spec.jobTemplate.spec.manualSelector: Unsupported value: true: supported values: "nil", "false"',
  ])
})

test('a name leaves room for the minute in the names of the Jobs', async (t) => {
  t.same(refused({}, {}, 'a'.repeat(52)), [])
  const long = 'a'.repeat(53)
  t.same(refused({}, {}, long), [`metadata.name: Invalid value: "${long}": must be no more than 52 characters`])
})

test('a schedule that has named a zone since before this was refused may be kept', async (t) => {
  const old = { ...(create('cronjobs', cronJob()) as CronJob) }
  const zoned = { ...old, spec: { ...old.spec, schedule: 'TZ=UTC 0 * * * *' } }
  t.same(
    causes(() => update('cronjobs', zoned, { ...zoned, spec: { ...zoned.spec, suspend: true } })),
    [],
  )
  t.match(
    causes(() => update('cronjobs', zoned, { ...zoned, spec: { ...zoned.spec, timeZone: 'UTC' } })),
    [/cannot use both timeZone field and TZ or CRON_TZ in schedule$/],
  )
})

test('kubectl shows when a CronJob runs', async (t) => {
  const { ask } = await anApi(t)
  await ask('POST', path, { body: cronJob({ timeZone: 'Europe/Berlin' }) })
  const status = { lastSuccessfulTime: '2026-01-01T00:00:00Z' }
  t.match(await ask('PATCH', `${path}/hello/status`, { type: patchTypes.merge, body: { status } }), {
    code: 200,
    body: { status },
  })
  const { body } = await ask('GET', path, { accept: tables })
  t.match(body, {
    rows: [
      { cells: ['hello', '*/1 * * * *', 'Europe/Berlin', 'False', 0, '<none>', /s$/, 'hello', 'busybox:1', '<none>'] },
    ],
  })
})

import { test } from 'tap'
import { type Job, type JobSpec, type JobStatus, jobNames } from '../../../../api/batch/job.ts'
import type { AnyObject } from '../../../../api/meta.ts'
import type { PodSpec } from '../../../../api/pod.ts'
import { causes, create, update } from '../../../testing/admitting.ts'
import { anApi, patchTypes } from '../../../testing/api-in-memory.ts'
import { prepareForUpdate } from '../../handlers/admission.ts'
import { jobStrategy } from './job.ts'

const tables = 'application/json;as=Table;v=v1;g=meta.k8s.io'
const path = '/apis/batch/v1/namespaces/default/jobs'

function job(spec: Partial<JobSpec> = {}, pod: Partial<PodSpec> = {}, metadata: Job['metadata'] = {}): Job {
  const template = { spec: { containers: [{ name: 'pi', image: 'perl:5' }], restartPolicy: 'Never', ...pod } as const }
  return {
    apiVersion: 'batch/v1',
    kind: 'Job',
    metadata: { name: 'pi', namespace: 'default', ...metadata },
    spec: { template, ...spec },
  }
}
const made = (...given: Parameters<typeof job>): Job => create('jobs', job(...given)) as Job
const refused = (...given: Parameters<typeof job>) => causes(() => made(...given))
const changed = (old: Job, spec: Partial<JobSpec>) =>
  causes(() => update('jobs', old, { ...old, spec: { ...old.spec, ...spec } }))

test('a Job gets its defaults, and a selector that no other Job has', async (t) => {
  const { metadata, spec } = made()
  const { uid = '' } = metadata
  t.match(uid, /^[0-9a-f-]{36}$/)
  t.match(spec, {
    parallelism: 1,
    completions: 1,
    backoffLimit: 6,
    completionMode: 'NonIndexed',
    suspend: false,
    manualSelector: false,
    podReplacementPolicy: 'TerminatingOrFailed',
    selector: { matchLabels: { [jobNames.controllerUidLabel]: uid } },
  })
  const labels = {
    'job-name': 'pi',
    'controller-uid': uid,
    'batch.kubernetes.io/job-name': 'pi',
    'batch.kubernetes.io/controller-uid': uid,
  }
  t.same(spec.template.metadata?.labels, labels)
  t.same(metadata.labels, labels, 'a Job without labels has those of its pods')
})

test('a Job with parallelism but no completions is a work queue', async (t) => {
  t.equal(made({ parallelism: 3 }).spec.completions, undefined)
  t.match(made({ completions: 3 }).spec, { completions: 3, parallelism: 1 })
})

test('with a limit for each index, and with a policy of failures, other defaults hold', async (t) => {
  t.equal(made({ completions: 2, completionMode: 'Indexed', backoffLimitPerIndex: 1 }).spec.backoffLimit, 2147483647)
  const rules = [{ action: 'Ignore', onPodConditions: [{ type: 'DisruptionTarget' }] }]
  t.match(made({ podFailurePolicy: { rules } }).spec, {
    podReplacementPolicy: 'Failed',
    podFailurePolicy: { rules: [{ onPodConditions: [{ status: 'True' }] }] },
  })
})

test('a manual selector is taken as it is and must select the pods', async (t) => {
  const template = { metadata: { labels: { app: 'x' } }, spec: job().spec.template.spec }
  const manual = { manualSelector: true, selector: { matchLabels: { app: 'x' } }, template }
  t.same(made(manual).spec.selector, { matchLabels: { app: 'x' } })
  t.match(refused({ ...manual, selector: { matchLabels: { app: 'y' } } }), [
    /^spec.template.metadata.labels: Invalid value: .*: `selector` does not match template `labels`$/,
  ])
  t.same(refused({ ...manual, selector: undefined }), ['spec.selector: Required value'])
})

test('labels that only the server sets must not be set otherwise', async (t) => {
  const template = { metadata: { labels: { 'job-name': 'other' } }, spec: job().spec.template.spec }
  t.match(refused({ template }), [/^spec.template.metadata.labels\[job-name\]: Invalid value: .*: must be 'pi'$/])
  const selector = { matchLabels: { app: 'x' } }
  t.match(refused({ selector }), [
    /^spec.selector: Invalid value: .*: `selector` not auto-generated$/,
    /`selector` does not match template `labels`$/,
  ])
})

test('what does not go together is refused in the words of Kubernetes', async (t) => {
  t.same(refused({}, { restartPolicy: 'Always' }), [
    'spec.template.spec.restartPolicy: Required value: valid values: "OnFailure", "Never"',
  ])
  t.same(refused({ parallelism: -1, backoffLimit: -2 }), [
    'spec.parallelism: Invalid value: -1: must be greater than or equal to 0',
    'spec.backoffLimit: Invalid value: -2: must be greater than or equal to 0',
  ])
  t.same(refused({ completions: 2 ** 31, activeDeadlineSeconds: 2 ** 40 }), [
    'spec.completions: Invalid value: 2147483648: must be less than or equal to 2147483647',
  ])
  t.same(refused({ completionMode: 'Indexed', parallelism: 1 }), [
    'spec.completions: Required value: when completion mode is Indexed',
  ])
  t.same(refused({ completionMode: 'Sorted' }), [
    'spec.completionMode: Unsupported value: "Sorted": supported values: "NonIndexed", "Indexed"',
  ])
  t.same(refused({ backoffLimitPerIndex: 1, maxFailedIndexes: 1 }), [
    'spec.backoffLimitPerIndex: Invalid value: 1: requires indexed completion mode',
    'spec.maxFailedIndexes: Invalid value: 1: requires indexed completion mode',
  ])
  t.same(refused({ completionMode: 'Indexed', completions: 2, maxFailedIndexes: 3 }), [
    'spec.backoffLimitPerIndex: Required value: when maxFailedIndexes is specified',
    'spec.maxFailedIndexes: Invalid value: 3: must be less than or equal to completions',
  ])
  t.same(refused({ managedBy: 'mine' }), [
    'spec.managedBy: Invalid value: "mine": must be a domain-prefixed path (such as "acme.io/foo")',
  ])
  t.same(refused({ podReplacementPolicy: 'Never' }), [
    'spec.podReplacementPolicy: Unsupported value: "Never": supported values: "Failed", "TerminatingOrFailed"',
  ])
  t.same(refused({ completionMode: 'Indexed', completions: 10 }, {}, { name: 'a'.repeat(62) }), [
    `metadata.name: Invalid value: "${'a'.repeat(62)}": will not able to create pod with invalid DNS label: ${'a'.repeat(62)}-9`,
  ])
  t.same(refused({ successPolicy: { rules: [{ succeededCount: 1 }] } }), [
    'spec.successPolicy: Invalid value: {"rules":[{"succeededCount":1}]}: requires indexed completion mode',
  ])
})

test('large indexed Jobs must limit their failures', async (t) => {
  const large = { completionMode: 'Indexed', completions: 100_001, backoffLimitPerIndex: 1 }
  const situation = 'when completions are above 100000 and used with backoff limit per index'
  t.same(refused({ ...large, parallelism: 10_001 }), [
    'spec.maxFailedIndexes: Required value: must be specified when completions is above 100000',
    `spec.parallelism: Invalid value: 10001: must be less than or equal to 10000 ${situation}`,
  ])
  t.same(refused({ ...large, maxFailedIndexes: 10_001 }), [
    `spec.maxFailedIndexes: Invalid value: 10001: must be less than or equal to 10000 ${situation}`,
  ])
  t.same(refused({ completionMode: 'Indexed', completions: 1, parallelism: 100_001 }), [
    'spec.parallelism: Invalid value: 100001: must be less than or equal to 100000 when completion mode is Indexed',
  ])
})

test('the rules of a failure policy are judged one by one', async (t) => {
  const at = 'spec.podFailurePolicy.rules[0]'
  const rule = (one: NonNullable<NonNullable<JobSpec['podFailurePolicy']>['rules']>[number]) =>
    refused({ podFailurePolicy: { rules: [one] } })
  t.same(rule({ action: 'FailJob', onExitCodes: { operator: 'In', values: [1, 2] } }), [])
  t.same(rule({ action: 'Panic', onExitCodes: { operator: 'In', values: [1] } }), [
    `${at}.action: Unsupported value: "Panic": supported values: "Count", "FailIndex", "FailJob", "Ignore"`,
  ])
  t.same(rule({ action: 'FailIndex', onExitCodes: { operator: 'In', values: [1] } }), [
    `${at}.action: Invalid value: "FailIndex": requires the backoffLimitPerIndex to be set`,
  ])
  t.same(rule({ action: 'Count' }), [
    `${at}: Invalid value: specifying one of OnExitCodes and OnPodConditions is required`,
  ])
  t.same(rule({ onExitCodes: { values: [] } }), [
    `${at}.action: Required value: valid values: ["Count" "FailIndex" "FailJob" "Ignore"]`,
    `${at}.onExitCodes.operator: Required value: valid values: ["In" "NotIn"]`,
    `${at}.onExitCodes.values: Invalid value: []: at least one value is required`,
  ])
  t.same(rule({ action: 'Count', onExitCodes: { operator: 'In', containerName: 'e', values: [2, 0, 2] } }), [
    `${at}.onExitCodes.containerName: Invalid value: "e": must be one of the container or initContainer names in the pod template`,
    `${at}.onExitCodes.values[1]: Invalid value: 0: must not be 0 for the In operator`,
    `${at}.onExitCodes.values[2]: Duplicate value: 2`,
    `${at}.onExitCodes.values: Invalid value: [2,0,2]: must be ordered`,
  ])
  const many = { rules: Array.from({ length: 21 }, () => ({ action: 'Count', onPodConditions: [{ type: 'A' }] })) }
  t.same(refused({ podFailurePolicy: many }), ['spec.podFailurePolicy.rules: Too many: 21: must have at most 20 items'])
  const policy = { rules: [{ action: 'Count', onPodConditions: [{ type: 'A' }] }] }
  t.same(refused({ podFailurePolicy: policy }, { restartPolicy: 'OnFailure' }), [
    'spec.template.spec.restartPolicy: Invalid value: "OnFailure": only "Never" is supported when podFailurePolicy is specified',
  ])
})

test('the rules of a success policy name indexes that the Job has', async (t) => {
  const at = 'spec.successPolicy.rules[0]'
  const rule = (one: NonNullable<NonNullable<JobSpec['successPolicy']>['rules']>[number]) =>
    refused({ completionMode: 'Indexed', completions: 5, successPolicy: { rules: [one] } })
  t.same(rule({ succeededIndexes: '0-2', succeededCount: 2 }), [])
  t.same(rule({}), [`${at}: Required value: at least one of succeededCount or succeededIndexes must be specified`])
  t.same(rule({ succeededIndexes: '3-5' }), [
    `${at}.succeededIndexes: Invalid value: "3-5": error parsing succeededIndexes: too large index: "5"`,
  ])
  t.same(rule({ succeededIndexes: '1,2', succeededCount: 3 }), [
    `${at}.succeededCount: Invalid value: 3: must be less than or equal to 2 (the number of indexes in the specified succeededIndexes field)`,
  ])
  t.same(rule({ succeededCount: 6 }), [
    `${at}.succeededCount: Invalid value: 6: must be less than or equal to 5 (the number of specified completions)`,
  ])
})

test('what a Job does is fixed; how fast it does it may change', async (t) => {
  const old = made({ completions: 3 })
  t.same(changed(old, { parallelism: 5, backoffLimit: 1, suspend: true, activeDeadlineSeconds: 9 }), [])
  t.same(changed(old, { completions: 4 }), ['spec.completions: Invalid value: 4: field is immutable'])
  t.match(
    changed(old, { template: { ...old.spec.template, spec: { ...old.spec.template.spec, nodeSelector: { a: 'b' } } } }),
    [/^spec.template: Invalid value: .*: field is immutable$/],
  )
  t.match(changed(old, { managedBy: 'a.io/b' }), [/^spec.managedBy: .*: field is immutable$/])
})

test('an indexed Job can be scaled, with its parallelism', async (t) => {
  const old = made({ completions: 3, parallelism: 3, completionMode: 'Indexed' })
  t.same(changed(old, { completions: 4, parallelism: 4 }), [])
  t.same(changed(old, { completions: 4 }), [
    'spec.completions: Invalid value: 4: can only be modified in tandem with spec.parallelism',
  ])
})

test('where a suspended Job runs may change until it has started', async (t) => {
  const nodeAffinity = { requiredDuringSchedulingIgnoredDuringExecution: { nodeSelectorTerms: [{ matchFields: [] }] } }
  const queued = made({ suspend: true })
  const { template } = queued.spec
  const placed = {
    metadata: { ...template.metadata, annotations: { queue: 'a' } },
    spec: {
      ...template.spec,
      nodeSelector: { a: 'b' },
      tolerations: [{ operator: 'Exists' }],
      affinity: { nodeAffinity },
    },
  }
  t.same(changed(queued, { template: placed }), [])
  const started = { ...queued, status: { startTime: '2026-01-01T00:00:00Z' } }
  t.match(changed(started, { template: placed }), [/^spec.template: /])
  const other = { ...placed, spec: { ...placed.spec, hostNetwork: true } }
  t.match(changed(queued, { template: other }), [/^spec.template: /])
})

test('the status of a Job that has ended does not begin again', async (t) => {
  const condition = (type: string) => ({ type, status: 'True' })
  const times = { startTime: '2026-01-01T00:00:00Z', completionTime: '2026-01-01T00:01:00Z' }
  const done: JobStatus = {
    ...times,
    succeeded: 1,
    conditions: [condition('SuccessCriteriaMet'), condition('Complete')],
  }
  const old = made()
  const status = (before: JobStatus, now: JobStatus) =>
    causes(() => prepareForUpdate(jobStrategy as never, { ...old, status: before }, { ...old, status: now }, 'status'))
  t.same(status({ startTime: times.startTime }, done), [])
  t.same(status(done, { ...done, conditions: [condition('SuccessCriteriaMet')] }).slice(-1), [
    'status.conditions: Invalid value: cannot disable the terminal Complete=True condition',
  ])
  t.same(status(done, { ...done, succeeded: 0 }), [
    'status.succeeded: Invalid value: 0: cannot decrease the succeeded counter',
  ])
  t.same(status(done, { ...done, completionTime: '2026-01-01T00:02:00Z' }), [
    'status.completionTime: Invalid value: "2026-01-01T00:02:00Z": completionTime cannot be mutated',
  ])
  t.same(status({}, { ...times, conditions: [condition('Complete')] }), [
    'status.conditions: Invalid value: cannot set Complete=True condition without the SuccessCriteriaMet=true condition',
  ])
  t.same(status({}, { conditions: [condition('Failed')], active: 1, terminating: 1 }), [
    'status.conditions: Invalid value: cannot set Failed=True condition without the FailureTarget=true condition',
    'status.active: Invalid value: 1: active>0 is invalid for finished job',
    'status.startTime: Required value: startTime is required for finished job',
    'status.terminating: Invalid value: 1: terminating>0 is invalid for finished job',
  ])
  t.same(status({}, { active: 1, ready: 2, completedIndexes: '0' }), [
    'status.completedIndexes: Invalid value: "0": cannot set non-empty completedIndexes when non-indexed completion mode',
    'status.ready: Invalid value: 2: cannot set more ready pods than active',
  ])
  t.same(status({}, { uncountedTerminatedPods: { succeeded: ['a', ''], failed: ['a'] } }), [
    'status.uncountedTerminatedPods.succeeded[1]: Invalid value: "": must not be empty',
    'status.uncountedTerminatedPods.failed[0]: Duplicate value: "a"',
  ])
  t.same(status({ startTime: times.startTime }, {}), [
    'status.startTime: Required value: startTime cannot be removed for unsuspended job',
  ])
})

test('kubectl shows how far a Job is', async (t) => {
  const { ask, store } = await anApi(t)
  const { body } = await ask('POST', path, { body: job({ completions: 3 }) })
  t.match(body, { metadata: { generation: 1 }, spec: { completions: 3 } })
  const cells = async () => (await ask('GET', path, { accept: tables })).body.rows as { cells: unknown[] }[]
  t.match(await cells(), [
    { cells: ['pi', 'Running', '0/3', '', /s$/, 'pi', 'perl:5', /^batch.kubernetes.io\/controller-uid=/] },
  ])
  const stored = await store.get('jobs', { namespace: 'default', name: 'pi' })
  t.match(stored?.metadata.uid, (body as AnyObject).metadata.uid)
  t.same((await ask('GET', `${path}?fieldSelector=status.successful=0`)).body.items, [body])
  t.same((await ask('GET', `${path}?fieldSelector=status.successful=1`)).body.items, [])
})

test('a suspended Job is shown as such, and one that is a work queue with its parallelism', async (t) => {
  const state = (status: JobStatus, more: Partial<JobSpec> = {}) =>
    jobStrategy.table.cells({ ...made(more), status }, Date.parse('2026-01-01T00:02:00Z')).slice(1, 4)
  const is = (type: string) => ({ conditions: [{ type, status: 'True' }] })
  t.same(state(is('Suspended')), ['Suspended', '0/1', ''])
  t.same(state({ ...is('FailureTarget'), startTime: '2026-01-01T00:00:00Z' }), ['FailureTarget', '0/1', '2m'])
  t.same(state({ ...is('Failed'), succeeded: 1 }, { parallelism: 4 }), ['Failed', '1/1 of 4', ''])
  const ended = { startTime: '2026-01-01T00:00:00Z', completionTime: '2026-01-01T00:00:07Z' }
  t.same(state({ ...is('Complete'), ...ended, succeeded: 1 }, { parallelism: 1 }), ['Complete', '1/1', '7s'])
})

test('a write of the status leaves the specification, and the other way around', async (t) => {
  const { ask } = await anApi(t)
  await ask('POST', path, { body: job() })
  const patch = { spec: { suspend: true }, status: { active: 1 } }
  t.match(await ask('PATCH', `${path}/pi/status`, { type: patchTypes.merge, body: patch }), {
    body: { metadata: { generation: 1 }, spec: { suspend: false }, status: { active: 1 } },
  })
  t.match(await ask('PATCH', `${path}/pi`, { type: patchTypes.merge, body: { ...patch, status: { active: 7 } } }), {
    body: { metadata: { generation: 2 }, spec: { suspend: true }, status: { active: 1 } },
  })
})

test('a deletion that names no policy leaves the pods of a Job, as batch/v1 always did', async (t) => {
  const { ask, store } = await anApi(t)
  const finalizers = async () => (await store.get('jobs', { namespace: 'default', name: 'pi' }))?.metadata.finalizers
  await ask('POST', path, { body: job() })
  await ask('DELETE', `${path}/pi`)
  t.same(await finalizers(), ['orphan'])
  await ask('POST', path, { body: job({}, {}, { name: 'e' }) })
  await ask('DELETE', `${path}/e?propagationPolicy=Background`)
  t.equal(await store.get('jobs', { namespace: 'default', name: 'e' }), undefined)
})

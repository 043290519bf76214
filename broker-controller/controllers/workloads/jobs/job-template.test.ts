import { test } from 'tap'
import type { JobSpec } from '../../../../api/batch/job.ts'
import type { Pod } from '../../../../api/pod.ts'
import { aJobPod, aStoredJob } from '../../../testing/job-objects.ts'
import { indexedPod, jobPodTemplate } from './job-template.ts'

const finalizer = 'batch.kubernetes.io/job-tracking'
const indexed: Partial<JobSpec> = { completionMode: 'Indexed', completions: 3 }
const container = (name: string) => ({ name, image: 'i' })
const variable = {
  name: 'JOB_COMPLETION_INDEX',
  valueFrom: { fieldRef: { fieldPath: "metadata.labels['batch.kubernetes.io/job-completion-index']" } },
}
const template = (spec: Partial<JobSpec>) => jobPodTemplate(aStoredJob(spec))

test('each pod of a Job has the finalizer, once', async (t) => {
  t.same(template({}).metadata, { finalizers: [finalizer] })
  const spec = { containers: [] }
  const given = { labels: { a: 'b' }, finalizers: ['mine'] }
  t.same(template({ template: { metadata: given, spec } }).metadata, {
    labels: { a: 'b' },
    finalizers: ['mine', finalizer],
  })
  const held = { finalizers: [finalizer, 'mine'] }
  t.same(template({ template: { metadata: held, spec } }).metadata, held)
})

test('all containers of an indexed Job have the index in their environment', async (t) => {
  const env = [{ name: 'A', value: 'b' }]
  const spec = { containers: [container('main'), { ...container('other'), env }], initContainers: [container('init')] }
  t.same(template({ ...indexed, template: { spec } }).spec, {
    containers: [
      { ...container('main'), env: [variable] },
      { ...container('other'), env: [...env, variable] },
    ],
    initContainers: [{ ...container('init'), env: [variable] }],
  })
  t.same(template({ template: { spec } }).spec, spec, 'no other Job')
  t.notOk('initContainers' in template(indexed).spec)
})

test('a variable of the author with that name is kept', async (t) => {
  const env = [{ name: 'A' }, { name: 'JOB_COMPLETION_INDEX', value: 'mine' }]
  const { containers } = template({
    ...indexed,
    template: { spec: { containers: [{ ...container('main'), env }] } },
  }).spec
  t.same(containers[0]?.env, env)
})

const bare: Pod = {
  apiVersion: 'v1',
  kind: 'Pod',
  metadata: { generateName: 'work-', labels: { a: 'b' }, annotations: { c: 'd' } },
  spec: { containers: [] },
}

test('a pod of an index is named after it, and has it as label, annotation and host name', async (t) => {
  t.same(indexedPod(aStoredJob(indexed), 2, bare, undefined), {
    ...bare,
    metadata: {
      generateName: 'work-2-',
      labels: { a: 'b', 'batch.kubernetes.io/job-completion-index': '2' },
      annotations: { c: 'd', 'batch.kubernetes.io/job-completion-index': '2' },
    },
    spec: { containers: [], hostname: 'work-2' },
  })
})

test('a long name of a Job leaves room for the index', async (t) => {
  const named = (length: number) =>
    indexedPod(aStoredJob(indexed, undefined, { name: 'x'.repeat(length) }), 12, bare, undefined).metadata.generateName
  t.equal(named(54), `${'x'.repeat(54)}-12-`)
  t.equal(named(60), `${'x'.repeat(54)}-12-`)
})

test('with a limit for each index a pod carries how often its index has failed', async (t) => {
  const podFailurePolicy = { rules: [{ action: 'Ignore', onExitCodes: { operator: 'In', values: [42] } }] }
  const job = aStoredJob({ ...indexed, backoffLimitPerIndex: 3, podFailurePolicy })
  const counts = (replaced: Pod | undefined) => {
    const { annotations = {} } = indexedPod(job, 0, bare, replaced).metadata
    const at = (name: string) => annotations[`batch.kubernetes.io/job-index-${name}`]
    return { failures: at('failure-count'), ignored: at('ignored-failure-count') }
  }
  t.same(counts(undefined), { failures: '0', ignored: undefined })
  t.same(counts(aJobPod('a', { exitCode: 1 })), { failures: '1', ignored: undefined })
  t.same(counts(aJobPod('a', { exitCode: 1, failures: 1, ignored: 2 })), { failures: '2', ignored: '2' })
  t.same(counts(aJobPod('a', { exitCode: 42, failures: 1, ignored: 2 })), { failures: '1', ignored: '3' })
})

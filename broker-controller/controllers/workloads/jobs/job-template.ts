/** The pods that a Job creates (pkg/controller/job/indexed_job_utils.go). */
import { isIndexedJob, type Job, jobNames } from '../../../../api/batch/job.ts'
import type { Container, Pod, PodTemplateSpec } from '../../../../api/pod.ts'
import { hasLimitPerIndex, ignoredIndexFailuresOf, indexFailuresOf } from './job-pods.ts'
import { failureVerdict } from './pod-failure-policy.ts'

const indexVariable = 'JOB_COMPLETION_INDEX'
/** A name has 63 characters, five of them generated (names.MaxGeneratedNameLength). */
const longestBeginning = 58

/** For all pods of the Job: with the finalizer, and for an indexed Job with the variable. */
export function jobPodTemplate({ spec }: Pick<Job, 'spec'>): PodTemplateSpec {
  const { metadata, spec: pod } = spec.template
  const { finalizers = [] } = metadata ?? {}
  const isHeld = finalizers.includes(jobNames.trackingFinalizer)
  return {
    metadata: { ...metadata, finalizers: isHeld ? finalizers : [...finalizers, jobNames.trackingFinalizer] },
    spec: isIndexedJob(spec)
      ? {
          ...pod,
          containers: pod.containers.map(withIndexVariable),
          ...(pod.initContainers && { initContainers: pod.initContainers.map(withIndexVariable) }),
        }
      : pod,
  }
}

function withIndexVariable<C extends Container>(container: C): C {
  const { env = [] } = container
  if (env.some(({ name }) => name === indexVariable)) return container
  const fieldPath = `metadata.labels['${jobNames.completionIndex}']`
  return { ...container, env: [...env, { name: indexVariable, valueFrom: { fieldRef: { fieldPath } } }] }
}

/** The pod for an index. `replaced`: the failed pod of the index before it. */
export function indexedPod(
  job: Pick<Job, 'spec' | 'metadata'>,
  index: number,
  pod: Pod,
  replaced: Pod | undefined,
): Pod {
  const { metadata, spec } = pod
  const { name = '' } = job.metadata
  const end = `-${index}-`
  const annotations = {
    ...metadata.annotations,
    [jobNames.completionIndex]: `${index}`,
    ...(hasLimitPerIndex(job) && failureAnnotations(job, replaced)),
  }
  return {
    ...pod,
    metadata: {
      ...metadata,
      generateName: `${name.slice(0, longestBeginning - end.length)}${end}`,
      annotations,
      labels: { ...metadata.labels, [jobNames.completionIndex]: `${index}` },
    },
    spec: { ...spec, hostname: `${name}-${index}` },
  }
}

function failureAnnotations(
  { spec }: Pick<Job, 'spec'>,
  replaced: Pod | undefined,
): { readonly [name: string]: string } {
  if (replaced === undefined) return { [jobNames.indexFailureCount]: '0' }
  const { counts } = failureVerdict(spec.podFailurePolicy, replaced)
  const failures = indexFailuresOf(replaced) + (counts ? 1 : 0)
  const ignored = ignoredIndexFailuresOf(replaced) + (counts ? 0 : 1)
  return {
    [jobNames.indexFailureCount]: `${failures}`,
    ...(ignored > 0 && { [jobNames.indexIgnoredFailureCount]: `${ignored}` }),
  }
}

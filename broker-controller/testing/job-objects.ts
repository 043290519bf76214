/** Jobs and their pods as the store has them, for tests of what is decided about them. */
import { type JobSpec, type JobStatus, jobNames } from '../../api/batch/job.ts'
import type { ObjectMeta } from '../../api/meta.ts'
import type { PodCondition, PodPhase } from '../../api/pod.ts'
import { aPod } from '../../api/testing/builders.ts'
import type { StoredObject, StoredPod } from '../store/store.ts'

/** Midnight of 2026-01-01. */
export const midnightMs = Date.parse('2026-01-01T00:00:00Z')

/** RFC 3339, this many seconds after midnight. */
export const timeAt = (second: number) => new Date(midnightMs + second * 1000).toISOString().replace('.000', '')

/** A Job `work`. */
export function aStoredJob(
  spec: Partial<JobSpec> = {},
  status?: JobStatus,
  metadata: ObjectMeta = {},
): StoredObject<'jobs'> {
  return {
    apiVersion: 'batch/v1',
    kind: 'Job',
    metadata: {
      name: 'work',
      namespace: 'default',
      uid: 'uid-of-work',
      resourceVersion: '1',
      creationTimestamp: timeAt(0),
      ...metadata,
    },
    spec: { template: { spec: { containers: [{ name: 'main', image: 'busybox:1.36' }] } }, ...spec },
    ...(status && { status }),
  }
}

export type JobPodOverrides = {
  readonly phase?: PodPhase
  readonly index?: number
  readonly ready?: boolean
  /** Exit code of its container, which ended at midnight or `endedAt` seconds later. */
  readonly exitCode?: number
  readonly endedAt?: number
  readonly leaving?: boolean
  /** false: it has been counted. */
  readonly tracked?: boolean
  /** How often its index had failed before, and how often that was ignored. */
  readonly failures?: number
  readonly ignored?: number
  readonly conditions?: readonly PodCondition[]
  readonly restarts?: number
  readonly initRestarts?: number
}

/** A pod of a Job that runs, with the finalizer; its uid is `uid-of-NAME`. */
export function aJobPod(name: string, over: JobPodOverrides = {}): StoredPod {
  const { phase = over.exitCode === undefined ? 'Running' : over.exitCode === 0 ? 'Succeeded' : 'Failed' } = over
  const { exitCode, endedAt = 0, index, failures, ignored } = over
  const container = { name: 'main', ready: false, image: '', imageID: '' }
  const state = exitCode === undefined ? {} : { terminated: { exitCode, finishedAt: timeAt(endedAt) } }
  const ready: PodCondition = { type: 'Ready', status: over.ready ? 'True' : 'False' }
  return aPod({
    name,
    annotations: {
      ...(index !== undefined && { [jobNames.completionIndex]: `${index}` }),
      ...(failures !== undefined && { [jobNames.indexFailureCount]: `${failures}` }),
      ...(ignored !== undefined && { [jobNames.indexIgnoredFailureCount]: `${ignored}` }),
    },
    metadata: {
      ...(over.tracked !== false && { finalizers: [jobNames.trackingFinalizer] }),
      ...(over.leaving && { deletionTimestamp: timeAt(30), deletionGracePeriodSeconds: 30 }),
    },
    status: {
      phase,
      conditions: [ready, ...(over.conditions ?? [])],
      containerStatuses: [{ ...container, restartCount: over.restarts ?? 0, state }],
      ...(over.initRestarts !== undefined && {
        initContainerStatuses: [{ ...container, name: 'init', restartCount: over.initRestarts }],
      }),
    },
  })
}

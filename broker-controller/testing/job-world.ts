/** A control plane of Jobs. The test plays the nodes: it ends the pods. */
import type { Job, JobSpec } from '../../api/batch/job.ts'
import type { Pod } from '../../api/pod.ts'
import { rfc3339 } from '../../daemon/clock.ts'
import { isTracked } from '../controllers/workloads/jobs/job-pods.ts'
import { workloadControllers } from '../controllers/workloads/workload-controllers.ts'
import type { StoredObject, StoredPod } from '../store/store.ts'
import { type CrashingStore, crashingStore } from './crashing-store.ts'
import { type WorkloadWorld, workloadWorld } from './workload-world.ts'

type Test = Parameters<typeof workloadWorld>[0]

export interface JobWorld extends WorkloadWorld {
  create(spec?: Partial<JobSpec>, name?: string): Promise<StoredObject<'jobs'>>
  job(name?: string): Promise<StoredObject<'jobs'> | undefined>
  /** Neither ended nor leaving. */
  running(): Promise<readonly StoredPod[]>
  /** The pod ends with this exit code. */
  end(pod: StoredPod | undefined, exitCode: number, status?: Pod['status']): Promise<void>
  /** All running pods end, and then time passes for the controllers. */
  endAll(exitCode: number): Promise<void>
  /** Their nodes have stopped the pods that are leaving. */
  stopLeaving(): Promise<void>
  /** Types of the conditions that are true. */
  conditions(name?: string): Promise<readonly string[]>
}

export const jobTemplate = (restartPolicy: 'Never' | 'OnFailure' = 'Never'): JobSpec['template'] => ({
  spec: { containers: [{ name: 'main', image: 'busybox:1.36' }], restartPolicy },
})

/** With its controllers running. */
export async function jobWorld(t: Test): Promise<JobWorld> {
  const world = await workloadWorld(t)
  world.start(workloadControllers(world.needs))
  await world.settle()
  return actingOn(world)
}

/** A world whose store can stop taking writes. */
export async function crashingJobWorld(
  t: Test,
): Promise<{ readonly world: JobWorld; readonly crashing: CrashingStore }> {
  let crashing: CrashingStore | undefined
  const world = await workloadWorld(t, {
    store: (store) => {
      crashing = crashingStore(store)
      return crashing.store
    },
  })
  if (crashing === undefined) throw new Error('the world has no store')
  return { world: actingOn(world), crashing }
}

/** A world with what a test of Jobs does. */
export function actingOn(world: WorkloadWorld): JobWorld {
  const { store, clock, needs } = world
  const job = (name = 'work') => store.get('jobs', { namespace: 'default', name })
  const running = async () =>
    (await world.pods()).filter(
      ({ metadata, status }) =>
        metadata.deletionTimestamp === undefined && status?.phase !== 'Succeeded' && status?.phase !== 'Failed',
    )
  const end: JobWorld['end'] = async (pod, exitCode, status = {}) => {
    const fresh = pod && (await store.get('pods', { namespace: 'default', name: pod.metadata.name }))
    if (fresh === undefined) throw new Error('no such pod')
    const finishedAt = rfc3339(clock.wallMs())
    const state = { terminated: { exitCode, startedAt: finishedAt, finishedAt } }
    const container = { name: 'main', ready: false, restartCount: 0, image: '', imageID: '', state }
    const phase = exitCode === 0 ? 'Succeeded' : 'Failed'
    await store.updateStatus('pods', { ...fresh, status: { phase, containerStatuses: [container], ...status } })
  }
  return {
    ...world,
    job,
    running,
    end,
    create: (spec = {}, name = 'work') => needs.creation.create('jobs', aJob(spec, name), 'test'),
    async endAll(exitCode) {
      for (const pod of await running()) await end(pod, exitCode)
      await world.settle()
    },
    async stopLeaving() {
      for (const pod of await world.pods()) {
        const { name, deletionTimestamp } = pod.metadata
        if (deletionTimestamp === undefined) continue
        if (!isTracked(pod)) await store.delete('pods', { namespace: 'default', name })
        else await end(pod, 143)
      }
      await world.settle()
    },
    async conditions(name) {
      const { conditions = [] } = (await job(name))?.status ?? {}
      return conditions.filter(({ status }) => status === 'True').map(({ type }) => type)
    },
  }
}

function aJob(spec: Partial<JobSpec>, name: string): Job {
  return {
    apiVersion: 'batch/v1',
    kind: 'Job',
    metadata: { name, namespace: 'default' },
    spec: { template: jobTemplate(), ...spec },
  }
}

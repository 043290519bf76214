/** Takes the finalizer of Jobs off pods, and off those whose Job is gone or has ended. */
import { finishedConditionOf, jobNames } from '../../../../api/batch/job.ts'
import { isFinished } from '../../../../api/pod/pod-deletion.ts'
import type { Clock } from '../../../../daemon/clock.ts'
import { runController } from '../../../../daemon/controller.ts'
import { eachInTurns } from '../../../../daemon/limits/turn-limit.ts'
import type { Log } from '../../../../daemon/log.ts'
import type { Loop } from '../../../../daemon/run.ts'
import { workQueue } from '../../../../daemon/work-queue.ts'
import { keyFrom, keyText } from '../../../store/informer.ts'
import { type RewriteNeeds, removeFinalizer } from '../../../store/rewrite.ts'
import type { Store, StoredPod } from '../../../store/store.ts'
import { controllerOf } from '../controller-ref.ts'
import type { OwnedObjects } from '../owned-objects.ts'
import { isTracked } from './job-pods.ts'

/** A pod that only this finalizer kept goes with it. */
export function releasePod(needs: RewriteNeeds, pod: StoredPod): Promise<void> {
  return removeFinalizer(needs, 'pods', pod, jobNames.trackingFinalizer)
}

export type OrphanNeeds = { readonly store: Store; readonly clock: Clock; readonly log: Log }

/** `check`: the pods of a Job that is gone. Very many take several turns of the event loop. */
export interface OrphanPods extends Loop {
  check(pods: Iterable<StoredPod>): Promise<void>
}

/** Loop: no Job takes the finalizer off these pods any more (syncOrphanPod in pkg/controller/job/job_controller.go). */
export function orphanPods(needs: OrphanNeeds, pods: OwnedObjects<'pods'>): OrphanPods {
  const { store, clock, log } = needs
  const queue = workQueue(clock)
  const add = (pod: StoredPod) => {
    if (isTracked(pod)) queue.add(keyText(pod.metadata))
  }
  pods.onChange((present) => {
    if (present === undefined || !isTracked(present)) return
    const mayBeLeft = present.metadata.deletionTimestamp !== undefined || isFinished(present)
    if (mayBeLeft || controllerOf(present) === undefined) add(present)
  })

  const reconcile = async (key: string) => {
    pods.catchUp()
    const pod = pods.get(keyFrom(key))
    if (pod !== undefined && isTracked(pod) && (await isLeft(store, pod))) await releasePod(needs, pod)
    return undefined
  }
  return {
    name: 'job-orphan-pods',
    check: (found) => eachInTurns([...found], add),
    async run(signal) {
      await pods.listed
      if (!signal.aborted) await runController({ name: 'job-orphan-pods', reconcile }, queue, log, signal)
    },
  }
}

/** The pods of a Job that another controller manages are that controller's. */
async function isLeft(store: Store, pod: StoredPod): Promise<boolean> {
  const controller = controllerOf(pod)
  if (controller === undefined) return true
  if (controller.kind !== 'Job' || controller.apiVersion !== 'batch/v1') return false
  const { namespace = '' } = pod.metadata
  const job = await store.get('jobs', { namespace, name: controller.name })
  if (job?.metadata.uid !== controller.uid) return true
  const { managedBy = jobNames.controller } = job.spec
  return managedBy === jobNames.controller && finishedConditionOf(job) !== undefined
}

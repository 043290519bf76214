/** The writes of the scheduler: a binding, a condition with the reason, deletions of preempted pods. */

import { boundPod, withPodCondition } from '../../api/pod/pod-conditions.ts'
import { planPodDeletion } from '../../api/pod/pod-deletion.ts'
import type { Pod } from '../../api/pod.ts'
import { type Clock, rfc3339 } from '../../daemon/clock.ts'
import type { Log } from '../../daemon/log.ts'
import type { EventRecorder } from '../store/event-recorder.ts'
import { keyText } from '../store/informer.ts'
import { podReference } from '../store/references.ts'
import { removeOrRewrite, rewrite } from '../store/rewrite.ts'
import type { Store, StoredPod } from '../store/store.ts'
import { preemptedReason } from './preemption.ts'
import type { VolumeChoice } from './volumes/volume-cache.ts'
import { writeChoice } from './volumes/volume-writes.ts'

export type SchedulerWriteNeeds = {
  readonly store: Store
  readonly events: EventRecorder
  readonly clock: Clock
  readonly log: Log
}

/** Pods that name another scheduler are not ours. */
const schedulerName = 'default-scheduler'

/** Whether this scheduler places the pod: not while it is being deleted, gated, or assigned to another scheduler. */
export function isOurs({ metadata, spec }: Pod): boolean {
  const isFree = metadata.deletionTimestamp === undefined && (spec.schedulingGates ?? []).length === 0
  return isFree && (spec.schedulerName ?? schedulerName) === schedulerName
}

export interface SchedulerWrites {
  /** False: the pod was deleted, bound by another client, or assigned to another scheduler. */
  bind(pod: StoredPod, nodeName: string): Promise<boolean>
  /** Writes what binds the volumes of a pod on that node. The versions as written, by uid. */
  prepareVolumes(volumes: VolumeChoice, nodeName: string): Promise<ReadonlyMap<string, number>>
  /** `nominatedNodeName`: the room promised to it; '' for none any more, undefined to leave that as it is. */
  explain(pod: StoredPod, message: string, nominatedNodeName: string | undefined): Promise<void>
  /** The volumes of the pod were not bound where it was to run. */
  explainFailure(pod: StoredPod, message: string): Promise<void>
  /** Asks a pod to go so that `preemptor` can run on its node. */
  evict(victim: StoredPod, preemptor: StoredPod, nodeName: string): Promise<void>
  /** The promise of room to a pod is taken back. */
  withdraw(pod: StoredPod): Promise<void>
}

export function schedulerWrites({ store, events, clock, log }: SchedulerWriteNeeds): SchedulerWrites {
  const now = () => rfc3339(clock.wallMs())

  const record = async (pod: StoredPod, type: 'Normal' | 'Warning', reason: string, message: string) => {
    try {
      await events.record({ object: podReference(pod), type, reason, message, component: schedulerName })
    } catch (error) {
      log.warn('Event not recorded', { reason, pod: keyText(pod.metadata), error })
    }
  }

  const explain = async (
    pod: StoredPod,
    reason: 'Unschedulable' | 'SchedulerError',
    message: string,
    nominatedNodeName: string | undefined,
  ) => {
    const condition = { type: 'PodScheduled', status: 'False', reason, message } as const
    const written = await rewrite({ store, clock }, 'pods', {
      ...whose(pod),
      part: 'status',
      change: (fresh) => {
        if (fresh.spec.nodeName) return undefined
        const reported = withPodCondition(fresh, condition, now())
        return withNomination(reported ?? fresh, nominatedNodeName) ?? reported
      },
    })
    if (written !== undefined) log.info('No node fits the pod', { pod: keyText(pod.metadata), why: message })
    await record(pod, 'Warning', 'FailedScheduling', message)
  }

  return {
    async bind(pod, nodeName) {
      const bound = await rewrite({ store, clock }, 'pods', {
        ...whose(pod),
        change: (fresh) => (fresh.spec.nodeName || !isOurs(fresh) ? undefined : boundPod(fresh, nodeName, now())),
      })
      if (bound === undefined) return false
      const key = keyText(pod.metadata)
      log.info('Pod scheduled', { pod: key, node: nodeName })
      await record(pod, 'Normal', 'Scheduled', `Successfully assigned ${key} to ${nodeName}`)
      return true
    },

    prepareVolumes: (volumes, nodeName) => writeChoice({ store, clock }, volumes, nodeName),

    explain: (pod, message, nominatedNodeName) => explain(pod, 'Unschedulable', message, nominatedNodeName),

    explainFailure: (pod, message) => explain(pod, 'SchedulerError', message, undefined),

    async evict(victim, preemptor, nodeName) {
      const message = `${schedulerName}: preempting to accommodate a higher priority pod`
      const condition = { type: 'DisruptionTarget', status: 'True', reason: preemptedReason, message } as const
      const { key, uid } = whose(victim)
      const isLeaving = await removeOrRewrite({ store, clock }, 'pods', {
        key,
        uid,
        plan: (fresh) => {
          if (fresh.metadata.deletionTimestamp !== undefined) return undefined
          const reported = withPodCondition(fresh, condition, now()) ?? fresh
          const plan = planPodDeletion(reported, { nowMs: clock.wallMs() })
          return plan.remove ? 'remove' : plan.pod
        },
      })
      if (!isLeaving) return
      log.info('Pod preempted', { pod: keyText(key), by: keyText(preemptor.metadata), node: nodeName })
      await record(victim, 'Normal', 'Preempted', `Preempted by pod ${preemptor.metadata.uid} on node ${nodeName}`)
    },

    async withdraw(pod) {
      await rewrite({ store, clock }, 'pods', {
        ...whose(pod),
        part: 'status',
        change: (fresh) => (fresh.spec.nodeName ? undefined : withNomination(fresh, '')),
      })
    },
  }
}

function whose({ metadata }: Pod) {
  const { name = '', namespace = '', uid = '' } = metadata
  return { key: { namespace, name }, uid }
}

/** Undefined: no change. */
function withNomination(pod: StoredPod, nodeName: string | undefined): StoredPod | undefined {
  const { nominatedNodeName = '', ...status } = pod.status ?? {}
  if (nodeName === undefined || nodeName === nominatedNodeName) return undefined
  return { ...pod, status: nodeName === '' ? status : { ...status, nominatedNodeName: nodeName } }
}

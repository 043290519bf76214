/**
 * Loop: makes the claims of generic ephemeral volumes, one for each such volume of a pod (pkg/controller/volume/ephemeral of
 * Kubernetes). The pod owns them: the garbage collector removes them after it.
 */
import type { Volume } from '../../../api/pod.ts'
import type { PersistentVolumeClaim } from '../../../api/storage/persistent-volume-claim.ts'
import { ephemeralClaimName, isMadeForPod } from '../../../api/storage/pod-claims.ts'
import { type Reconciled, runController } from '../../../daemon/controller.ts'
import { messageOf } from '../../../daemon/errors.ts'
import type { Log } from '../../../daemon/log.ts'
import { type Loop, runLoops } from '../../../daemon/run.ts'
import { workQueue } from '../../../daemon/work-queue.ts'
import type { EventRecorder } from '../../store/event-recorder.ts'
import { type InformerNeeds, informer, keyFrom, keyText } from '../../store/informer.ts'
import { podReference } from '../../store/references.ts'
import type { StoredPod } from '../../store/store.ts'
import type { AdmittedCreation } from '../workloads/admitted-creation.ts'
import { controllerReference } from '../workloads/controller-ref.ts'
import { isNamespaceTerminating } from '../workloads/pod-control.ts'
import type { ClaimPods } from './claim-pods.ts'

export type EphemeralClaimsNeeds = InformerNeeds & {
  readonly creation: AdmittedCreation
  readonly events: EventRecorder
  readonly log: Log
}

/** As it signs its Events in Kubernetes. */
const component = 'ephemeral_volume'
const account = 'ephemeral-volume-controller'
const visitsAtOnce = 5
/** A claim of another owner has the name: its deletion wakes the visit, and Events are kept for an hour. */
const repeatMs = 5 * 60_000

export function ephemeralClaims(needs: EphemeralClaimsNeeds, pods: ClaimPods): Loop {
  const { clock, log, creation, events } = needs
  const queue = workQueue(clock)
  const add = (pod: StoredPod) => {
    if (madeVolumesOf(pod).length > 0) queue.add(keyText(pod.metadata))
  }
  pods.onChange((_, present, previous) => {
    if (present !== undefined && present.metadata.uid !== previous?.metadata.uid) add(present)
  })
  const claims = informer(needs, 'persistentvolumeclaims', (present, previous) => {
    if (present !== undefined || previous === undefined) return
    const { namespace = '', name } = previous.metadata
    for (const pod of pods.podsOf({ namespace, name })) add(pod)
  })

  const failed = async (pod: StoredPod, because: string) => {
    try {
      const event = { type: 'Warning', reason: 'FailedBinding', message: because } as const
      await events.record({ object: podReference(pod), component, ...event })
    } catch (error) {
      log.warn('Event not recorded', { reason: 'FailedBinding', object: keyText(pod.metadata), error })
    }
  }
  const make = async (pod: StoredPod, volume: Volume): Promise<'present' | 'refused' | 'terminating'> => {
    const claim = ephemeralClaim(pod, volume)
    const { namespace = '', name = '' } = claim.metadata
    const present = claims.get({ namespace, name })
    if (present !== undefined) {
      if (isMadeForPod(present, pod)) return 'present'
      const because = `PVC ${namespace}/${name} was not created for pod ${keyText(pod.metadata)} (pod is not owner)`
      await failed(pod, `ephemeral volume ${volume.name}: ${because}`)
      return 'refused'
    }
    try {
      await creation.create('persistentvolumeclaims', claim, account)
      return 'present'
    } catch (error) {
      if (isNamespaceTerminating(error)) return 'terminating'
      await failed(pod, `ephemeral volume ${volume.name}: create PVC ${name}: ${messageOf(error)}`)
      throw error
    }
  }
  const reconcile = async (key: string): Promise<Reconciled> => {
    for (const source of [pods, claims]) source.catchUp()
    const pod = pods.get(keyFrom(key))
    if (pod === undefined) return undefined
    for (const volume of madeVolumesOf(pod)) {
      const made = await make(pod, volume)
      if (made === 'refused') return { requeueAfterMs: repeatMs }
      if (made === 'terminating') return undefined
    }
    return undefined
  }

  const work = async (signal: AbortSignal) => {
    await Promise.all([pods.listed, claims.listed])
    const controller = { name: 'ephemeral-claims', reconcile }
    if (!signal.aborted) await runController(controller, queue, log, signal, visitsAtOnce)
  }
  return {
    name: 'ephemeral-claims',
    run: (signal) =>
      runLoops(
        [
          { name: 'claims', run: claims.run },
          { name: 'work', run: work },
        ],
        signal,
        log,
      ),
  }
}

/** None of a pod that is being deleted: it will not start any more. */
function madeVolumesOf({ metadata, spec }: StoredPod): readonly Volume[] {
  if (metadata.deletionTimestamp !== undefined) return []
  return (spec.volumes ?? []).filter(({ ephemeral }) => ephemeral !== undefined)
}

function ephemeralClaim(pod: StoredPod, { name: volume, ephemeral }: Volume): PersistentVolumeClaim {
  const { metadata: { labels, annotations } = {}, spec = {} } = ephemeral?.volumeClaimTemplate ?? {}
  const { namespace = '', name } = pod.metadata
  return {
    apiVersion: 'v1',
    kind: 'PersistentVolumeClaim',
    metadata: {
      namespace,
      name: ephemeralClaimName(name, volume),
      ...(labels && { labels }),
      ...(annotations && { annotations }),
      ownerReferences: [controllerReference(pod)],
    },
    spec,
  }
}

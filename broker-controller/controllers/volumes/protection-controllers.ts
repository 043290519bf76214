/**
 * Loops: claims that pods use, and volumes that are bound, are not removed when they are deleted, but when they are not used any
 * more (pkg/controller/volume/pvcprotection and pvprotection of Kubernetes). The finalizer is added at admission.
 */
import { isApiError } from '../../../api/api-error.ts'
import { withFinalizer, withoutFinalizer } from '../../../api/deletion/finalizers.ts'
import { isReleased } from '../../../api/deletion/object-deletion.ts'
import type { AnyObject } from '../../../api/meta.ts'
import { volumeFinalizers } from '../../../api/storage/volume-names.ts'
import { type Reconciled, runController } from '../../../daemon/controller.ts'
import { type Loop, runLoops } from '../../../daemon/run.ts'
import { workQueue } from '../../../daemon/work-queue.ts'
import { type InformerNeeds, informer, keyFrom, keyText } from '../../store/informer.ts'
import type { StoredObject } from '../../store/store.ts'
import type { ClaimPods } from './claim-pods.ts'
import { isUsedBy, isVolumeUsed, protectionStep } from './protection.ts'

/** Another writer was faster. */
const conflictMs = 20

export function claimProtection(needs: InformerNeeds, pods: ClaimPods): Loop {
  return protection(needs, {
    name: 'claim-protection',
    resource: 'persistentvolumeclaims',
    finalizer: volumeFinalizers.claim,
    connect: (queue) => pods.onChange((claims) => claims.forEach(queue.add)),
    listed: pods.listed,
    async isUsed(claim) {
      pods.catchUp()
      const { namespace = '', name } = claim.metadata
      for (const pod of pods.podsOf({ namespace, name })) if (isUsedBy(claim, pod)) return true
      // The index may be older than the pod: before data can be lost the store itself is read, as in Kubernetes.
      return (await needs.store.list('pods', namespace)).items.some((pod) => isUsedBy(claim, pod))
    },
  })
}

export function volumeProtection(needs: InformerNeeds): Loop {
  return protection(needs, {
    name: 'volume-protection',
    resource: 'persistentvolumes',
    finalizer: volumeFinalizers.volume,
    isUsed: async (volume) => isVolumeUsed(volume),
  })
}

type Protection<R extends 'persistentvolumeclaims' | 'persistentvolumes'> = {
  readonly name: string
  readonly resource: R
  readonly finalizer: string
  /** What else makes a visit necessary. */
  readonly connect?: (queue: { readonly add: (key: string) => void }) => void
  readonly listed?: Promise<void>
  readonly isUsed: (object: StoredObject<R>) => Promise<boolean>
}

function protection<R extends 'persistentvolumeclaims' | 'persistentvolumes'>(
  needs: InformerNeeds,
  { name, resource, finalizer, connect, listed, isUsed }: Protection<R>,
): Loop {
  const { store } = needs
  const queue = workQueue(needs.clock)
  const objects = informer(needs, resource, (present) => {
    if (present !== undefined && protectionStep(present, finalizer) !== 'none') queue.add(keyText(present.metadata))
  })
  connect?.({ add: (key) => queue.add(key) })

  const reconcile = async (key: string): Promise<Reconciled> => {
    objects.catchUp()
    const object = objects.get(keyFrom(key))
    if (object === undefined) return undefined
    const step = protectionStep(object, finalizer)
    if (step === 'protect') await store.update(resource, withFinalizer<AnyObject>(object, finalizer) as StoredObject<R>)
    if (step === 'release-if-unused' && !(await isUsed(object))) await release(object)
    return undefined
  }
  /** The last finalizer goes with the object, in one write: nothing can use it in between. */
  const release = async (object: StoredObject<R>) => {
    const { name: objectName, namespace = '', uid, resourceVersion } = object.metadata
    const released = withoutFinalizer<StoredObject<R>>(object, finalizer) ?? object
    if (!isReleased(released)) await store.update(resource, released)
    else await store.delete(resource, { namespace, name: objectName }, { uid, resourceVersion })
  }
  /** Each write is over the version that was decided on: others write these objects, too. */
  const visit = async (key: string): Promise<Reconciled> => {
    try {
      return await reconcile(key)
    } catch (error) {
      if (isApiError(error, 'Conflict') || isApiError(error, 'NotFound')) return { requeueAfterMs: conflictMs }
      throw error
    }
  }

  const work = async (signal: AbortSignal) => {
    await Promise.all([objects.listed, listed])
    if (!signal.aborted) await runController({ name, reconcile: visit }, queue, needs.log, signal)
  }
  return {
    name,
    run: (signal) =>
      runLoops(
        [
          { name: resource, run: objects.run },
          { name: 'work', run: work },
        ],
        signal,
        needs.log,
      ),
  }
}

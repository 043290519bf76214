/** Pods are stopped while nothing may change the data of their claim. */
import { isFinished } from '../../../api/pod/pod-deletion.ts'
import type { Clock } from '../../../daemon/clock.ts'
import type { Store, StoredPod } from '../../store/store.ts'
import { removePod } from '../pods/pod-removal.ts'
import type { ClaimPods } from './claim-pods.ts'
import type { StoredVolume } from './volume-index.ts'

/** Deletes pods that use the volume. Gives one without a controller: it would not come back, so a person has to delete it. */
export async function stopPods(
  needs: { readonly store: Store; readonly clock: Clock },
  pods: ClaimPods,
  { spec }: StoredVolume,
): Promise<StoredPod | undefined> {
  const { namespace = '', name = '' } = spec?.claimRef ?? {}
  let bare: StoredPod | undefined
  for (const pod of [...pods.podsOf({ namespace, name })]) {
    if (!pod.spec.nodeName || isFinished(pod) || pod.metadata.deletionTimestamp !== undefined) continue
    const owner = pod.metadata.ownerReferences?.find(({ controller }) => controller === true)
    if (owner === undefined || owner.kind === 'Node') bare = pod
    else await removePod(needs, pod)
  }
  return bare
}

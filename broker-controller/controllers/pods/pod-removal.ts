/** Deletes a pod as the API would: marked for its node to end, or removed at once when no node has to stop it. */
import { planPodDeletion } from '../../../api/pod/pod-deletion.ts'
import { type RewriteNeeds, removeOrRewrite } from '../../store/rewrite.ts'
import type { StoredPod } from '../../store/store.ts'

export type PodRemoval = {
  /** The pod's own grace when it is not given. */
  readonly gracePeriodSeconds?: number
  /** What else is written on a pod that is marked; undefined: it is not to be deleted after all. */
  readonly change?: (pod: StoredPod) => StoredPod | undefined
}

/** True when the pod was marked or removed by this. */
export function removePod(
  { store, clock }: RewriteNeeds,
  pod: StoredPod,
  { gracePeriodSeconds, change = (fresh) => fresh }: PodRemoval = {},
): Promise<boolean> {
  const { name, namespace = '', uid } = pod.metadata
  return removeOrRewrite({ store, clock }, 'pods', {
    key: { namespace, name },
    uid,
    plan: (fresh) => {
      const wanted = change(fresh)
      if (wanted === undefined) return undefined
      const plan = planPodDeletion(wanted, { gracePeriodSeconds, nowMs: clock.wallMs() })
      if (plan.remove) return 'remove'
      return plan.pod === fresh ? undefined : plan.pod
    },
  })
}

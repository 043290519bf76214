/** Deletes an object as the API would: what belongs to it is collected afterwards, and finalizers hold it. */
import { planDeletion } from '../../../api/deletion/object-deletion.ts'
import type { BuiltInName } from '../../../api/resources.ts'
import { type RewriteNeeds, removeIfThere, rewrite } from '../../store/rewrite.ts'
import type { StoredObject } from '../../store/store.ts'

/** An object that is gone or being deleted already is left alone. */
export async function removeObject<R extends BuiltInName>(
  { store, clock }: RewriteNeeds,
  resource: R,
  object: StoredObject<R>,
): Promise<void> {
  const { name, namespace = '', uid } = object.metadata
  let remove = false
  await rewrite({ store, clock }, resource, {
    key: { namespace, name },
    uid,
    change: (fresh) => {
      const plan = planDeletion(fresh, { nowMs: clock.wallMs() })
      remove = plan.remove
      if (plan.remove) return undefined
      const { deletionTimestamp, deletionGracePeriodSeconds } = plan.object.metadata
      const marks = {
        ...(deletionTimestamp !== undefined && { deletionTimestamp }),
        ...(deletionGracePeriodSeconds !== undefined && { deletionGracePeriodSeconds }),
      }
      return { ...fresh, metadata: { ...fresh.metadata, ...marks } }
    },
  })
  if (remove) await removeIfThere(store, resource, object)
}

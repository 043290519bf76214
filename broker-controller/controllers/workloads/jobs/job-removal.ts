/** Deletes a Job as the API would. */
import { planDeletion } from '../../../../api/deletion/object-deletion.ts'
import { type RewriteNeeds, removeIfThere, rewrite } from '../../../store/rewrite.ts'
import type { StoredObject } from '../../../store/store.ts'

/** `isStillWanted`: whether this newest version of it is to be deleted. */
export async function removeJob(
  { store, clock }: RewriteNeeds,
  job: StoredObject<'jobs'>,
  propagationPolicy: 'Background' | 'Foreground',
  isStillWanted: (fresh: StoredObject<'jobs'>) => boolean = () => true,
): Promise<void> {
  const { name, namespace = '', uid } = job.metadata
  let goes = false
  await rewrite({ store, clock }, 'jobs', {
    key: { namespace, name },
    uid,
    change: (fresh) => {
      goes = false
      if (!isStillWanted(fresh)) return undefined
      const plan = planDeletion(fresh, { propagationPolicy, nowMs: clock.wallMs() })
      goes = plan.remove
      if (plan.remove || plan.object === fresh) return undefined
      const { finalizers: _, ...kept } = fresh.metadata
      return { ...fresh, metadata: { ...kept, ...plan.object.metadata } }
    },
  })
  if (goes) await removeIfThere(store, 'jobs', job)
}

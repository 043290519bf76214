/** Deletes an object as the API would: what belongs to it is collected afterwards, and finalizers hold it. */
import type { DeleteOptions } from '../../api/deletion/delete-options.ts'
import { planDeletion } from '../../api/deletion/object-deletion.ts'
import type { BuiltInName } from '../../api/resources.ts'
import { type RewriteNeeds, removeOrRewrite } from './rewrite.ts'
import type { StoredObject } from './store.ts'

export type ObjectRemoval<R extends BuiltInName> = {
  readonly propagationPolicy?: DeleteOptions['propagationPolicy']
  /** Whether this newest version of it is to be deleted. */
  readonly isStillWanted?: (fresh: StoredObject<R>) => boolean
}

/** An object that is gone or being deleted already is left alone. True when it was marked or removed by this. */
export function removeObject<R extends BuiltInName>(
  { store, clock }: RewriteNeeds,
  resource: R,
  object: StoredObject<R>,
  { propagationPolicy, isStillWanted = () => true }: ObjectRemoval<R> = {},
): Promise<boolean> {
  const { name, namespace = '', uid } = object.metadata
  return removeOrRewrite({ store, clock }, resource, {
    key: { namespace, name },
    uid,
    plan: (fresh) => {
      if (!isStillWanted(fresh)) return undefined
      const terms = { ...(propagationPolicy && { propagationPolicy }), nowMs: clock.wallMs() }
      const plan = planDeletion(fresh, terms)
      if (plan.remove) return 'remove'
      if (plan.object === fresh) return undefined
      const { finalizers: _, ...kept } = fresh.metadata
      return { ...fresh, metadata: { ...kept, ...plan.object.metadata } }
    },
  })
}

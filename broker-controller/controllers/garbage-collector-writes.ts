/** The writes of the garbage collector: deletions, owner references and finalizers. */
import { planDeletion } from '../../api/deletion/object-deletion.ts'
import type { Clock } from '../../daemon/clock.ts'
import type { Log } from '../../daemon/log.ts'
import { keyText } from '../store/informer.ts'
import { revokeIfNode } from '../store/revocations.ts'
import { removeFinalizer, removeOrRewrite, rewrite } from '../store/rewrite.ts'
import type { Store } from '../store/store.ts'
import { withoutOwners } from './ownership.ts'
import type { OwnedItem } from './ownership-graph.ts'

export interface GarbageCollectorWrites {
  /** Deletes the object as the API would; `first`: after what belongs to it. */
  remove(item: OwnedItem, first: boolean): Promise<void>
  /** Removes the references to these owners. */
  forget(item: OwnedItem, uids: readonly string[]): Promise<void>
  /** Its owners wait for it no longer, but own it still. */
  unblock(item: OwnedItem): Promise<void>
  /** Removes the finalizer, and the object when it was the last one. */
  letGo(item: OwnedItem, finalizer: string): Promise<void>
}

export function garbageCollectorWrites({
  store,
  clock,
  log,
}: {
  readonly store: Store
  readonly clock: Clock
  readonly log: Log
}): GarbageCollectorWrites {
  const remove = async ({ resource, object }: OwnedItem, first: boolean) => {
    const { name, namespace = '', uid } = object.metadata
    const policy = first ? ({ propagationPolicy: 'Foreground' } as const) : {}
    await removeOrRewrite({ store, clock }, resource.id, {
      key: { namespace, name },
      uid,
      plan: (fresh) => {
        const plan = planDeletion(fresh, { ...policy, nowMs: clock.wallMs() })
        if (plan.remove) return 'remove'
        return plan.object === fresh ? undefined : plan.object
      },
      beforeRemoval: () => revoked({ resource, object }),
    })
    log.info('Removed with its owner', { resource: resource.id, object: keyText(object.metadata) })
  }

  const forget = async ({ resource, object }: OwnedItem, uids: readonly string[]) => {
    const { name, namespace = '', uid } = object.metadata
    const change = (fresh: OwnedItem['object']) => withoutOwners(fresh, uids)
    await rewrite({ store, clock }, resource.id, { key: { namespace, name }, uid, change })
  }

  const unblock = async ({ resource, object }: OwnedItem) => {
    const { name, namespace = '', uid } = object.metadata
    await rewrite({ store, clock }, resource.id, { key: { namespace, name }, uid, change: blocksNothing })
  }

  const letGo = ({ resource, object }: OwnedItem, finalizer: string) =>
    removeFinalizer({ store, clock }, resource.id, object, finalizer, () => revoked({ resource, object }))

  const revoked = ({ resource, object }: OwnedItem) => revokeIfNode({ store, clock }, resource.id, object.metadata.name)

  return { remove, forget, unblock, letGo }
}

function blocksNothing<O extends OwnedItem['object']>(object: O): O | undefined {
  const present = object.metadata.ownerReferences ?? []
  if (!present.some(({ blockOwnerDeletion }) => blockOwnerDeletion === true)) return undefined
  const ownerReferences = present.map((owner) => ({ ...owner, blockOwnerDeletion: false }))
  return { ...object, metadata: { ...object.metadata, ownerReferences } }
}

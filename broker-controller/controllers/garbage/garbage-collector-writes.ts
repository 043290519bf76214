/** The writes of the garbage collector: deletions, owner references and finalizers. */
import { dependentsFinalizers, planDeletion } from '../../../api/deletion/object-deletion.ts'
import type { ExtensionKind, ExtensionObject } from '../../../api/registration/extension-object.ts'
import type { ResourceName } from '../../../api/resources.ts'
import type { Clock } from '../../../daemon/clock.ts'
import type { Log } from '../../../daemon/log.ts'
import { keyText } from '../../store/informer.ts'
import { revokeIfNode } from '../../store/revocations.ts'
import { removeFinalizer, removeOrRewrite, rewrite } from '../../store/rewrite.ts'
import type { Store } from '../../store/store.ts'
import type { ExtensionLists, ExtensionObjects } from './extension-objects.ts'
import { withoutOwners } from './ownership.ts'
import type { OwnedItem, OwnedObject } from './ownership-graph.ts'

export interface GarbageCollectorWrites {
  /** Deletes the object as the API would; `first`: after what belongs to it. */
  remove(item: OwnedItem, first: boolean, signal: AbortSignal): Promise<void>
  /** Removes the references to these owners. */
  forget(item: OwnedItem, uids: readonly string[], signal: AbortSignal): Promise<void>
  /** Its owners wait for it no longer, but own it still. */
  unblock(item: OwnedItem, signal: AbortSignal): Promise<void>
  /** Removes the finalizer, and the object when it was the last one. */
  letGo(item: OwnedItem, finalizer: string, signal: AbortSignal): Promise<void>
}

export type GarbageCollectorWriteNeeds = {
  readonly store: Store
  readonly clock: Clock
  readonly log: Log
  /** undefined: there are no extension servers. */
  readonly extensionObjects?: ExtensionObjects
}

export function garbageCollectorWrites(needs: GarbageCollectorWriteNeeds): GarbageCollectorWrites {
  const { log, extensionObjects } = needs
  const [stored, extended] = [storedWrites(needs), extensionObjects && extensionWrites(extensionObjects)]
  const of = ({ resource }: OwnedItem) => (resource.extension !== undefined && extended) || stored
  return {
    async remove(item, first, signal) {
      await of(item).remove(item, first, signal)
      log.info('Removed with its owner', { resource: item.resource.id, object: keyText(item.object.metadata) })
    },
    forget: (item, uids, signal) => of(item).forget(item, uids, signal),
    unblock: (item, signal) => of(item).unblock(item, signal),
    letGo: (item, finalizer, signal) => of(item).letGo(item, finalizer, signal),
  }
}

function storedWrites({ store, clock }: GarbageCollectorWriteNeeds): GarbageCollectorWrites {
  const idOf = ({ resource }: OwnedItem) => resource.id as ResourceName
  const change = async (item: OwnedItem, change: <O extends OwnedObject>(fresh: O) => O | undefined) => {
    const { name, namespace = '', uid } = item.object.metadata
    await rewrite({ store, clock }, idOf(item), { key: { namespace, name }, uid, change })
  }
  const revoked = (item: OwnedItem) => revokeIfNode({ store, clock }, idOf(item), item.object.metadata.name)
  return {
    async remove(item, first) {
      const { name, namespace = '', uid } = item.object.metadata
      const policy = first ? ({ propagationPolicy: 'Foreground' } as const) : {}
      await removeOrRewrite({ store, clock }, idOf(item), {
        key: { namespace, name },
        uid,
        plan: (fresh) => {
          const plan = planDeletion(fresh, { ...policy, nowMs: clock.wallMs() })
          if (plan.remove) return 'remove'
          return plan.object === fresh ? undefined : plan.object
        },
        beforeRemoval: () => revoked(item),
      })
    },
    forget: (item, uids) => change(item, (fresh) => withoutOwners(fresh, uids)),
    unblock: (item) => change(item, blocksNothing),
    letGo: (item, finalizer) =>
      removeFinalizer({ store, clock }, idOf(item), item.object, finalizer, () => revoked(item)),
  }
}

/** Each decides on the object as its server has it now. A newer version rejects with a conflict, and is visited later. */
function extensionWrites(objects: ExtensionObjects): GarbageCollectorWrites {
  const onLive = async (
    { resource: { extension }, object: { metadata } }: OwnedItem,
    signal: AbortSignal,
    act: (kind: ExtensionKind, live: ExtensionObject) => Promise<void>,
  ) => {
    if (extension === undefined) return
    const { name, namespace = '', uid } = metadata
    const live = await objects.get(extension, { namespace, name }, signal)
    if (live?.metadata.uid === uid) await act(extension, live)
  }
  const patched = (
    item: OwnedItem,
    signal: AbortSignal,
    listsOf: (live: ExtensionObject) => ExtensionLists | undefined,
  ) =>
    onLive(item, signal, async (kind, live) => {
      const lists = listsOf(live)
      if (lists !== undefined) await objects.patch(kind, live, lists, signal)
    })
  const owners = (changed: ExtensionObject | undefined) =>
    changed && { ownerReferences: changed.metadata.ownerReferences ?? [] }
  return {
    remove: (item, first, signal) =>
      onLive(item, signal, (kind, live) => objects.remove(kind, live, policyFor(live, first), signal)),
    forget: (item, uids, signal) => patched(item, signal, (live) => owners(withoutOwners(live, uids))),
    unblock: (item, signal) => patched(item, signal, (live) => owners(blocksNothing(live))),
    letGo: (item, finalizer, signal) =>
      patched(item, signal, ({ metadata: { finalizers = [] } }) => {
        const left = finalizers.filter((one) => one !== finalizer)
        return left.length === finalizers.length ? undefined : { finalizers: left }
      }),
  }
}

/** What an earlier deletion asked for stays (attemptToDeleteItem in garbagecollector.go). */
function policyFor({ metadata: { finalizers = [] } }: ExtensionObject, first: boolean): string {
  if (first) return 'Foreground'
  if (finalizers.includes(dependentsFinalizers.Orphan)) return 'Orphan'
  return finalizers.includes(dependentsFinalizers.Foreground) ? 'Foreground' : 'Background'
}

function blocksNothing<O extends OwnedObject>(object: O): O | undefined {
  const present = object.metadata.ownerReferences ?? []
  if (!present.some(({ blockOwnerDeletion }) => blockOwnerDeletion === true)) return undefined
  const ownerReferences = present.map((owner) => ({ ...owner, blockOwnerDeletion: false }))
  return { ...object, metadata: { ...object.metadata, ownerReferences } }
}

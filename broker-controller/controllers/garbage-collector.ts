/** Loop: what belongs to an object that is gone goes as well, or is set free where that was asked for. */

import { isDeepStrictEqual } from 'node:util'
import type { OwnerReference } from '../../api/meta.ts'
import { dependentsFinalizers, isReleased, planDeletion } from '../../api/object-deletion.ts'
import { type Resource, type ResourceName, resources } from '../../api/resources.ts'
import type { Clock } from '../../daemon/clock.ts'
import { runController } from '../../daemon/controller.ts'
import type { Log } from '../../daemon/log.ts'
import { type Loop, runLoops } from '../../daemon/run.ts'
import { workQueue } from '../../daemon/work-queue.ts'
import { type Followed, follow, keyFrom, keyText } from '../store/follow.ts'
import { removeIfThere } from '../store/remove.ts'
import { revokeIfNode } from '../store/revocations.ts'
import { rewrite } from '../store/rewrite.ts'
import type { Store, StoredObject } from '../store/store.ts'
import { type OwnerState, ownershipStep, resourceOf, withoutOwners } from './ownership.ts'

export type GarbageCollectorNeeds = { readonly store: Store; readonly clock: Clock; readonly log: Log }

type Item = { readonly resource: Resource; readonly object: StoredObject<ResourceName> }

/** Events and leases come by the thousand and own nothing; nothing owns them here. */
const ignored: readonly ResourceName[] = ['events', 'leases']

export function garbageCollector(needs: GarbageCollectorNeeds): Loop {
  return { name: 'garbage-collector', run: (signal) => runGarbageCollector(needs, signal) }
}

async function runGarbageCollector({ store, clock, log }: GarbageCollectorNeeds, signal: AbortSignal): Promise<void> {
  const queue = workQueue(clock)
  const kinds = new Map<string, { readonly resource: Resource; readonly followed: Followed<ResourceName> }>()
  const byUid = new Map<string, Item>()
  /** By the uid of an owner, whether it exists or not: what names it. */
  const dependents = new Map<string, Map<string, Item>>()

  const told = (resource: Resource, present: Item['object'] | undefined, previous: Item['object'] | undefined) => {
    const object = present ?? previous
    if (object === undefined) return
    const { uid } = object.metadata
    const key = `${resource.name} ${keyText(object.metadata)}`
    for (const owner of ownersOf(previous)) dependents.get(owner.uid)?.delete(uid)
    if (present === undefined) {
      byUid.delete(uid)
      for (const item of dependentsOf(uid)) queue.add(keyOf(item))
      for (const owner of ownersOf(previous)) {
        if (dependents.get(owner.uid)?.size === 0) dependents.delete(owner.uid)
        visitWaiting(owner)
      }
      return
    }
    const item = { resource, object: present }
    byUid.set(uid, item)
    for (const owner of ownersOf(present)) {
      dependents.set(owner.uid, (dependents.get(owner.uid) ?? new Map<string, Item>()).set(uid, item))
    }
    const concerns = ownersOf(present).length > 0 || isWaiting(present) || isOrphaning(present)
    if (concerns && (previous === undefined || belongsDifferently(present, previous))) queue.add(key)
    for (const owner of ownersOf(previous)) visitWaiting(owner)
  }
  const dependentsOf = (uid: string): readonly Item[] => [...(dependents.get(uid)?.values() ?? [])]
  const visitWaiting = ({ uid }: OwnerReference) => {
    const owner = byUid.get(uid)
    if (owner !== undefined && isWaiting(owner.object)) queue.add(keyOf(owner))
  }

  const reconcile = async (key: string): Promise<undefined> => {
    const [name = '', place = ''] = key.split(' ')
    const kind = kinds.get(name)
    const object = kind?.followed.get(keyFrom(place))
    if (kind === undefined || object === undefined) return
    const item = { resource: kind.resource, object }
    if (isOrphaning(object)) await orphan(item)
    else if (isWaiting(object)) await removeBefore(item)
    else if (object.metadata.deletionTimestamp === undefined) await settle(item)
  }

  /** Sets what belongs to it free, then lets it go. */
  const orphan = async (owner: Item) => {
    const { uid } = owner.object.metadata
    for (const item of dependentsOf(uid)) await forget(item, [uid])
    await letGo(owner, dependentsFinalizers.Orphan)
  }

  /** Removes what belongs to it; the last of those that block it brings us here again. */
  const removeBefore = async (owner: Item) => {
    const { uid } = owner.object.metadata
    const items = dependentsOf(uid)
    for (const item of items) if (item.object.metadata.deletionTimestamp === undefined) queue.add(keyOf(item))
    const blocks = ({ object }: Item) =>
      ownersOf(object).some((reference) => reference.uid === uid && reference.blockOwnerDeletion === true)
    if (!items.some(blocks)) await letGo(owner, dependentsFinalizers.Foreground)
  }

  const settle = async (item: Item) => {
    const owners = ownersOf(item.object)
    if (owners.length === 0) return
    const states = new Map<string, OwnerState>()
    for (const owner of owners) states.set(owner.uid, await stateOf(owner, item.object.metadata.namespace))
    const step = ownershipStep(owners, ({ uid }) => states.get(uid) ?? 'there')
    switch (step.step) {
      case 'none':
        return
      case 'forget':
        return await forget(item, step.uids)
      case 'remove':
        return await remove(item)
    }
  }

  /** What we have not heard of is asked of the store itself: its news may be late. */
  const stateOf = async (owner: OwnerReference, namespace = ''): Promise<OwnerState> => {
    const known = byUid.get(owner.uid)
    if (known !== undefined) {
      const isElsewhere = known.resource.namespaced && known.object.metadata.namespace !== namespace
      return isElsewhere ? 'gone' : isWaiting(known.object) ? 'waiting' : 'there'
    }
    const resource = resourceOf(owner)
    if (resource === undefined) return 'there'
    const found = await store.get(resource.name, { namespace: resource.namespaced ? namespace : '', name: owner.name })
    return found?.metadata.uid === owner.uid ? 'there' : 'gone'
  }

  const remove = async ({ resource, object }: Item) => {
    const { name, namespace = '', uid } = object.metadata
    let gone = false
    await rewrite({ store, clock }, resource.name, {
      key: { namespace, name },
      uid,
      change: (fresh) => {
        const plan = planDeletion(fresh, { nowMs: clock.wallMs() })
        gone = plan.remove
        return plan.remove || plan.object === fresh ? undefined : plan.object
      },
    })
    if (gone) await takeAway({ resource, object })
    log.info('Removed with its owner', { resource: resource.name, object: keyText(object.metadata) })
  }

  const forget = async ({ resource, object }: Item, uids: readonly string[]) => {
    const { name, namespace = '', uid } = object.metadata
    const change = (fresh: Item['object']) => withoutOwners(fresh, uids)
    await rewrite({ store, clock }, resource.name, { key: { namespace, name }, uid, change })
  }

  const letGo = async ({ resource, object }: Item, finalizer: string) => {
    const { name, namespace = '', uid } = object.metadata
    const change = (fresh: Item['object']) => withoutFinalizer(fresh, finalizer)
    const written = await rewrite({ store, clock }, resource.name, { key: { namespace, name }, uid, change })
    if (written !== undefined && isReleased(written)) await takeAway({ resource, object: written })
  }

  const takeAway = async ({ resource, object }: Item) => {
    await revokeIfNode({ store, clock }, resource.name, object.metadata.name)
    await removeIfThere(store, resource.name, object)
  }

  for (const resource of Object.values<Resource>(resources)) {
    if (ignored.includes(resource.name)) continue
    const followed = follow<ResourceName>({ store, clock, log }, resource.name, (present, previous) =>
      told(resource, present, previous),
    )
    kinds.set(resource.name, { resource, followed })
  }
  const work = async () => {
    await Promise.all([...kinds.values()].map(({ followed }) => followed.listed))
    if (!signal.aborted) await runController({ name: 'garbage-collector', reconcile }, queue, log, signal)
  }
  const following = [...kinds.values()].map(({ resource, followed }) => ({ name: resource.name, run: followed.run }))
  await runLoops([...following, { name: 'work', run: work }], signal, log)
}

function keyOf({ resource, object }: Item): string {
  return `${resource.name} ${keyText(object.metadata)}`
}

function ownersOf(object: Item['object'] | undefined): readonly OwnerReference[] {
  return object?.metadata.ownerReferences ?? []
}

/** Most changes are of statuses, and none of our business. */
function belongsDifferently({ metadata: now }: Item['object'], { metadata: before }: Item['object']): boolean {
  return (
    now.uid !== before.uid ||
    now.deletionTimestamp !== before.deletionTimestamp ||
    !isDeepStrictEqual(now.finalizers, before.finalizers) ||
    !isDeepStrictEqual(now.ownerReferences, before.ownerReferences)
  )
}

function isWaiting({ metadata }: Item['object']): boolean {
  return metadata.deletionTimestamp !== undefined && isHeldBy(metadata.finalizers, dependentsFinalizers.Foreground)
}

function isOrphaning({ metadata }: Item['object']): boolean {
  return metadata.deletionTimestamp !== undefined && isHeldBy(metadata.finalizers, dependentsFinalizers.Orphan)
}

function isHeldBy(finalizers: readonly string[] | undefined, finalizer: string): boolean {
  return finalizers?.includes(finalizer) === true
}

function withoutFinalizer<O extends Item['object']>(object: O, finalizer: string): O | undefined {
  const present = object.metadata.finalizers ?? []
  if (!present.includes(finalizer)) return undefined
  return { ...object, metadata: { ...object.metadata, finalizers: present.filter((name) => name !== finalizer) } }
}

/** Index of objects by uid and by owner, kept up to date by what the watches deliver. */
import { isDeepStrictEqual } from 'node:util'
import { dependentsFinalizers } from '../../api/deletion/object-deletion.ts'
import type { OwnerReference } from '../../api/meta.ts'
import type { Resource, ResourceName } from '../../api/resources.ts'
import { eachInTurns } from '../../daemon/limits/turn-limit.ts'
import { keyText } from '../store/informer.ts'
import type { StoredObject } from '../store/store.ts'

export type OwnedItem = { readonly resource: Resource; readonly object: StoredObject<ResourceName> }
type OwnedObject = OwnedItem['object']

export interface OwnershipGraph {
  observe(resource: Resource, present: OwnedObject | undefined, previous: OwnedObject | undefined): void
  item(uid: string): OwnedItem | undefined
  /** What names this owner, whether the owner exists or not. */
  dependentsOf(uid: string): readonly OwnedItem[]
}

/**
 * A visit of an owner that waits reads all that belongs to it. With more than 200 dependents their ends within a longer time are one visit, so
 * that the cost does not grow with the square of their number.
 */
const [fewDependents, dependentsPerMs] = [200, 10]

/** `enqueue` is called for every object for which there may be something to do, at once or after `afterMs`. */
export function ownershipGraph(enqueue: (item: OwnedItem, afterMs: number) => void): OwnershipGraph {
  const byUid = new Map<string, OwnedItem>()
  const dependents = new Map<string, Map<string, OwnedItem>>()

  const dependentsOf = (uid: string): readonly OwnedItem[] => [...(dependents.get(uid)?.values() ?? [])]
  const enqueueWaiting = ({ uid }: OwnerReference) => {
    const owner = byUid.get(uid)
    if (owner === undefined || !waitsForDependents(owner.object)) return
    const left = dependents.get(uid)?.size ?? 0
    enqueue(owner, left > fewDependents ? left / dependentsPerMs : 0)
  }

  return {
    observe(resource, present, previous) {
      const object = present ?? previous
      if (object === undefined) return
      const { uid } = object.metadata
      for (const owner of ownersOf(previous)) dependents.get(owner.uid)?.delete(uid)
      if (present === undefined) {
        byUid.delete(uid)
        void eachInTurns(dependentsOf(uid), (item) => enqueue(item, 0))
        for (const owner of ownersOf(previous)) {
          if (dependents.get(owner.uid)?.size === 0) dependents.delete(owner.uid)
          enqueueWaiting(owner)
        }
        return
      }
      const item = { resource, object: present }
      byUid.set(uid, item)
      for (const owner of ownersOf(present)) {
        dependents.set(owner.uid, (dependents.get(owner.uid) ?? new Map<string, OwnedItem>()).set(uid, item))
      }
      const concerns = ownersOf(present).length > 0 || waitsForDependents(present) || releasesDependents(present)
      if (concerns && (previous === undefined || belongsDifferently(present, previous))) enqueue(item, 0)
      for (const owner of ownersOf(previous)) enqueueWaiting(owner)
    },
    item: (uid) => byUid.get(uid),
    dependentsOf,
  }
}

export function ownersOf(object: OwnedObject | undefined): readonly OwnerReference[] {
  return object?.metadata.ownerReferences ?? []
}

/** Most changes are of statuses, which do not matter here. */
function belongsDifferently({ metadata: now }: OwnedObject, { metadata: before }: OwnedObject): boolean {
  return (
    now.uid !== before.uid ||
    now.deletionTimestamp !== before.deletionTimestamp ||
    !isDeepStrictEqual(now.finalizers, before.finalizers) ||
    !isDeepStrictEqual(now.ownerReferences, before.ownerReferences)
  )
}

/** Deleted in the foreground: it stays until its dependents are gone. */
export function waitsForDependents({ metadata }: OwnedObject): boolean {
  return metadata.deletionTimestamp !== undefined && isHeldBy(metadata.finalizers, dependentsFinalizers.Foreground)
}

/** Deleted with `Orphan`: its dependents are released first. */
export function releasesDependents({ metadata }: OwnedObject): boolean {
  return metadata.deletionTimestamp !== undefined && isHeldBy(metadata.finalizers, dependentsFinalizers.Orphan)
}

function isHeldBy(finalizers: readonly string[] | undefined, finalizer: string): boolean {
  return finalizers?.includes(finalizer) === true
}

/** The key of the object in the work queue. */
export function ownedItemKey({ resource, object }: OwnedItem): string {
  return `${resource.id} ${keyText(object.metadata)}`
}

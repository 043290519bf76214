/** Index of objects by uid and by owner, kept up to date by what the watches deliver. */
import { isDeepStrictEqual } from 'node:util'
import { dependentsFinalizers } from '../../../api/deletion/object-deletion.ts'
import type { OwnerReference } from '../../../api/meta.ts'
import type { ExtensionKind, ExtensionObject } from '../../../api/registration/extension-object.ts'
import type { Resource } from '../../../api/resources.ts'
import { eachInTurns } from '../../../daemon/limits/turn-limit.ts'
import { keyText } from '../../store/informer.ts'

/** `extension`: an extension server holds the object; the id is then that of `extensionResource`. */
export type OwnedResource =
  | (Pick<Resource, 'id' | 'namespaced'> & { readonly extension?: undefined })
  | ExtensionResourceRow
export type ExtensionResourceRow = {
  readonly id: string
  readonly namespaced: boolean
  readonly extension: ExtensionKind
}
export type OwnedItem = { readonly resource: OwnedResource; readonly object: OwnedObject }
export type OwnedObject = { readonly metadata: Omit<ExtensionObject['metadata'], 'resourceVersion'> }

/** No id of a kind that is stored here has a slash. */
export function extensionResource(extension: ExtensionKind): ExtensionResourceRow {
  const { group, resource, namespaced } = extension
  return { id: `${group}/${resource}`, namespaced, extension }
}

export interface OwnershipGraph {
  observe(resource: OwnedResource, present: OwnedObject | undefined, previous: OwnedObject | undefined): void
  /** The object in this store. */
  item(uid: string): OwnedItem | undefined
  /** The object that the extension server of the reference's group has. */
  extensionItem(reference: OwnerReference): OwnedItem | undefined
  /** What names this owner, whether the owner exists or not. */
  dependentsOf(owner: OwnedItem): readonly OwnedItem[]
}

/**
 * A visit of an owner that waits reads all that belongs to it. With more than 200 dependents their ends within a longer time are one visit, so
 * that the cost does not grow with the square of their number.
 */
const [fewDependents, dependentsPerMs] = [200, 10]

/** `enqueue` is called for every object for which there may be something to do, at once or after `afterMs`. */
export function ownershipGraph(enqueue: (item: OwnedItem, afterMs: number) => void): OwnershipGraph {
  const byPlace = new Map<string, OwnedItem>()
  /** By the uid of the owner, then by their place. */
  const dependents = new Map<string, Map<string, OwnedItem>>()

  const dependentsOf = ({ resource: { extension }, object }: OwnedItem): readonly OwnedItem[] => {
    const { uid } = object.metadata
    const all = [...(dependents.get(uid)?.values() ?? [])]
    if (extension === undefined) return all
    const isOf = (one: OwnerReference) => one.uid === uid && groupOf(one) === extension.group
    return all.filter((item) => ownersOf(item.object).some(isOf))
  }
  const enqueueWaiting = (reference: OwnerReference) => {
    for (const owner of [byPlace.get(reference.uid), byPlace.get(extensionPlace(reference))]) {
      if (owner === undefined || !waitsForDependents(owner.object)) continue
      const left = dependents.get(reference.uid)?.size ?? 0
      enqueue(owner, left > fewDependents ? left / dependentsPerMs : 0)
    }
  }

  const remove = (item: OwnedItem) => {
    byPlace.delete(placeOf(item))
    void eachInTurns(dependentsOf(item), (one) => enqueue(one, 0))
    for (const { uid } of ownersOf(item.object)) if (dependents.get(uid)?.size === 0) dependents.delete(uid)
  }
  const put = (item: OwnedItem, previous: OwnedObject | undefined) => {
    const place = placeOf(item)
    byPlace.set(place, item)
    for (const { uid } of ownersOf(item.object)) {
      dependents.set(uid, (dependents.get(uid) ?? new Map<string, OwnedItem>()).set(place, item))
    }
    if (concernsCollector(item.object, previous)) enqueue(item, 0)
  }

  return {
    observe(resource, present, previous) {
      const object = present ?? previous
      if (object === undefined) return
      const item = { resource, object }
      for (const { uid } of ownersOf(previous)) dependents.get(uid)?.delete(placeOf(item))
      if (present === undefined) remove(item)
      else put(item, previous)
      for (const owner of ownersOf(previous)) enqueueWaiting(owner)
    },
    item(uid) {
      const found = byPlace.get(uid)
      return found?.resource.extension === undefined ? found : undefined
    },
    extensionItem: (reference) => byPlace.get(extensionPlace(reference)),
    dependentsOf,
  }
}

/**
 * The uid; with the group where an extension server holds the object. What such a server states of an object with a uid of this fleet does
 * not stand for the object of the fleet.
 */
function placeOf({ resource: { extension }, object }: OwnedItem): string {
  const { uid } = object.metadata
  return extension === undefined ? uid : `${extension.group} ${uid}`
}

function extensionPlace(reference: OwnerReference): string {
  return `${groupOf(reference)} ${reference.uid}`
}

function groupOf({ apiVersion }: OwnerReference): string {
  return apiVersion.slice(0, Math.max(0, apiVersion.indexOf('/')))
}

export function ownersOf(object: OwnedObject | undefined): readonly OwnerReference[] {
  return object?.metadata.ownerReferences ?? []
}

function concernsCollector(object: OwnedObject, previous: OwnedObject | undefined): boolean {
  const hasPart = ownersOf(object).length > 0 || waitsForDependents(object) || releasesDependents(object)
  return hasPart && (previous === undefined || belongsDifferently(object, previous))
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

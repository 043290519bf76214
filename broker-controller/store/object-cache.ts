/** The objects in memory and their latest changes: get, list and watch read them. */
import { nodeLeaseNamespace } from '../../api/lease.ts'
import { isCustomName, type ResourceName, type ResourceRegistry } from '../../api/resources.ts'
import type { Clock } from '../../daemon/clock.ts'
import { type BoundPods, boundPods } from './bound-pods.ts'
import { type ChangeHistory, changeHistory, forgetBeyond } from './change-history.ts'
import type { AnyStoredObject, Change } from './changes.ts'
import { jsonOf } from './object-json.ts'
import { type ObjectSizes, objectSizes } from './room/object-sizes.ts'
import type { ChangeCursor, ObjectKey } from './store.ts'

export interface ObjectCache {
  get(resource: ResourceName, key: ObjectKey): AnyStoredObject | undefined
  /** By namespace and name, in the order of their code points. */
  list(resource: ResourceName, namespace?: string): readonly AnyStoredObject[]
  /** The pods that are bound to this node, in no order. */
  podsOf: BoundPods['of']
  /** Sizes of the objects. Leases of nodes are not counted: they are many, small and renewed all the time. */
  readonly sizes: ObjectSizes
  /** Adds an object that was stored before; watches do not see it. `bytes`: the length of its JSON. */
  load(resource: ResourceName, object: AnyStoredObject, bytes: number): void
  /** Applies a change and notifies the watches. */
  apply(resource: ResourceName, change: Change): void
  /** The changes of one kind after the version `from`. */
  changes(resource: ResourceName, from: number): ChangeCursor<Change>
  /** Takes these objects in the place of all it has, as of `version`. Watches of a kind that differs are Expired. */
  replace(version: number, objects: ReadonlyMap<ResourceName, readonly AnyStoredObject[]>): void
  /** Changes of this kind up to `version` may be missing: watches from there are Expired. */
  forget(resource: ResourceName, version: number): void
  /** Ends every watch. */
  close(): void
}

/**
 * `historyLength`: of the changes of the last minutes at least this many of each kind are kept, at most twice as many,
 * unless those of all kinds take more than `historyBytes` (about, on the heap). `startVersion`: no change of this kind up
 * to it is remembered. `latestVersion`: no client can have a later one of this kind.
 */
export type ObjectCacheSettings = {
  readonly resources: ResourceRegistry
  readonly clock: Pick<Clock, 'monotonicMs'>
  readonly historyLength?: number
  readonly historyBytes?: number
  readonly startVersion: (resource: ResourceName) => number
  readonly latestVersion: (resource: ResourceName) => number
}

/**
 * Ten thousand nodes renew a thousand leases a second: ten seconds of those, and of calmer kinds hours. A watcher that
 * is further behind lists again, which is cheaper for it by then.
 */
const defaultHistoryLength = 10_000
/** A quarter of what the controller takes at rest: a burst of large objects costs watches that lag, not the machine's memory. */
const defaultHistoryBytes = 16 * 1024 * 1024
/** Interval of the search for old changes, in kinds that do not change, too. */
const sweepEveryMs = 10_000

export function objectCache({
  resources,
  clock,
  historyLength = defaultHistoryLength,
  historyBytes = defaultHistoryBytes,
  startVersion,
  latestVersion,
}: ObjectCacheSettings): ObjectCache {
  const kinds = new Map(
    resources.all.map(({ id }) => [
      id,
      { shelf: shelf(), history: changeHistory(historyLength, startVersion(id), clock) },
    ]),
  )
  const histories: ChangeHistory[] = [...kinds.values()].map(({ history }) => history)
  const bound = boundPods()
  const sizes = objectSizes()
  let sweptMs = clock.monotonicMs()
  const kind = (resource: ResourceName) => {
    const found = kinds.get(resource)
    if (found !== undefined) return found
    if (!isCustomName(resource)) throw new TypeError(`No such resource: ${resource}`)
    // Kinds that are defined at run time come and go; what is stored of them does not depend on their definitions.
    const added = { shelf: shelf(), history: changeHistory(historyLength, startVersion(resource), clock) }
    kinds.set(resource, added)
    histories.push(added.history)
    return added
  }
  const put = (resource: ResourceName, object: AnyStoredObject, bytes: number) =>
    sizes.add(object.metadata.namespace ?? '', bytes - kind(resource).shelf.put(object, bytes))
  const remove = (resource: ResourceName, object: AnyStoredObject) =>
    sizes.add(object.metadata.namespace ?? '', -kind(resource).shelf.remove(object))
  const replaceKind = (resource: ResourceName, wanted: readonly AnyStoredObject[], version: number) => {
    const { shelf, history } = kind(resource)
    const present = new Map(shelf.list().map((object) => [placeText(object), object]))
    let differs = false
    for (const object of wanted) {
      const before = present.get(placeText(object))
      present.delete(placeText(object))
      if (before?.metadata.resourceVersion === object.metadata.resourceVersion) continue
      differs = true
      put(resource, object, JSON.stringify(object).length)
      bound.change(object, before)
    }
    for (const object of present.values()) {
      remove(resource, object)
      bound.change(undefined, object)
    }
    if (differs || present.size > 0) history.forgetAll(version)
  }
  return {
    get: (resource, key) => kind(resource).shelf.get(key),
    list: (resource, namespace) => kind(resource).shelf.list(namespace),
    podsOf: bound.of,
    sizes,
    load(resource, object, bytes) {
      put(resource, object, bytes)
      bound.change(object, undefined)
    },
    apply(resource, change) {
      const { history } = kind(resource)
      const isGone = change.type === 'DELETED'
      bound.change(isGone ? undefined : change.object, change.previous ?? (isGone ? change.object : undefined))
      if (isGone) remove(resource, change.object)
      else put(resource, change.object, isNodeLease(resource, change.object) ? 0 : jsonOf(change.object).length)
      history.add(change)
      forgetBeyond(historyBytes, histories)
      const nowMs = clock.monotonicMs()
      if (nowMs - sweptMs < sweepEveryMs) return
      sweptMs = nowMs
      for (const each of histories) each.forgetOld(nowMs)
    },
    changes: (resource, from) => kind(resource).history.cursor(from, latestVersion(resource)),
    replace(version, objects) {
      const empty = [...kinds.keys()].filter((resource) => isCustomName(resource) && !objects.has(resource))
      for (const [resource, wanted] of [...objects, ...empty.map((resource) => [resource, []] as const)]) {
        replaceKind(resource, wanted, version)
      }
    },
    forget: (resource, version) => kind(resource).history.forgetAll(version),
    close() {
      for (const history of histories) history.close()
    },
  }
}

function isNodeLease(resource: ResourceName, { metadata }: AnyStoredObject): boolean {
  return resource === 'leases' && metadata.namespace === nodeLeaseNamespace
}

function placeText({ metadata: { name, namespace = '' } }: AnyStoredObject): string {
  return `${namespace}/${name}`
}

/** A place of one object: its versions come and go, its place in the order stays. */
type Place = { object: AnyStoredObject; bytes: number }

/** The objects of one kind. Their order by name is kept between creations and deletions, for most lists follow none. */
function shelf() {
  const namespaces = new Map<string, { readonly places: Map<string, Place>; order: readonly Place[] | undefined }>()
  let order: readonly string[] | undefined
  const ordered = (namespace: string): readonly AnyStoredObject[] => {
    const found = namespaces.get(namespace)
    if (found === undefined) return []
    const { places } = found
    found.order ??= [...places.keys()].sort().flatMap((name) => places.get(name) ?? [])
    return found.order.map(({ object }) => object)
  }
  return {
    get: ({ namespace, name }: ObjectKey) => namespaces.get(namespace)?.places.get(name)?.object,
    list(namespace?: string): readonly AnyStoredObject[] {
      if (namespace !== undefined) return ordered(namespace)
      order ??= [...namespaces.keys()].sort()
      return order.flatMap(ordered)
    },
    /** Returns the bytes of the object that it replaces. */
    put(object: AnyStoredObject, bytes: number): number {
      const { name, namespace = '' } = object.metadata
      let found = namespaces.get(namespace)
      if (found === undefined) {
        found = { places: new Map(), order: undefined }
        namespaces.set(namespace, found)
        order = undefined
      }
      const place = found.places.get(name)
      if (place !== undefined) {
        const before = place.bytes
        place.object = object
        place.bytes = bytes
        return before
      }
      found.order = undefined
      found.places.set(name, { object, bytes })
      return 0
    },
    /** Returns the bytes of the object that was there. */
    remove(object: AnyStoredObject): number {
      const { name, namespace = '' } = object.metadata
      const found = namespaces.get(namespace)
      const place = found?.places.get(name)
      if (found === undefined || place === undefined) return 0
      found.places.delete(name)
      found.order = undefined
      if (found.places.size === 0) {
        namespaces.delete(namespace)
        order = undefined
      }
      return place.bytes
    },
  }
}

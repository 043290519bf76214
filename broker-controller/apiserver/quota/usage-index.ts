/**
 * What objects use, by kind and namespace. A namespace is counted when it is first asked for, and kept up to date by the
 * changes of the store from then on: the cost of a question does not grow with the number of objects.
 */
import { setImmediate as nextTurn } from 'node:timers/promises'
import { isApiError } from '../../../api/api-error.ts'
import type { ScopeRequirement } from '../../../api/limits/resource-quota.ts'
import type { AnyObject } from '../../../api/meta.ts'
import type { Quantity } from '../../../api/quantity.ts'
import type { ResourceName } from '../../../api/resources.ts'
import type { Clock } from '../../../daemon/clock.ts'
import type { AnyStored, ChangeCursor, Store, WatchEvent } from '../../store/store.ts'
import { type CountedKind, usageOf } from './usage.ts'
import { type Counted, countedAtOnce, type UsageTrack, usageTrack } from './usage-track.ts'

export type UsageIndexNeeds = { readonly store: Store; readonly clock: Pick<Clock, 'wallMs'> }
export type UsagePlace = { readonly kind: CountedKind; readonly namespace: string }
/** A place, and the scopes of the quota that asks about it. */
export type AskedPlace = UsagePlace & { readonly scopes?: readonly ScopeRequirement[] }

export interface UsageIndex {
  /** Resolves when these places are counted and up to date. */
  refresh(places: readonly AskedPlace[]): Promise<void>
  /** What the objects in the scopes use, as of the last refresh; undefined: the place is not counted. */
  used(place: UsagePlace, scopes: readonly ScopeRequirement[]): ReadonlyMap<string, Quantity> | undefined
  /** Whether an object of this name is counted. */
  has(place: UsagePlace, name: string): boolean
  /** Counts an object as it was written, before its change is read. */
  written(kind: CountedKind, object: AnyObject): void
  /** Reads all changes: the namespaces in which the usage is another one than at the last call. */
  changedNamespaces(): readonly string[]
  /** Calls `listener` once, when there may be changes to read. It replaces the listener before it. */
  onReady(listener: () => void): void
  /** Forgets all other namespaces. */
  keepOnly(namespaces: ReadonlySet<string>): void
}

/** The counted namespaces of one kind. */
type KindTracks = {
  readonly kind: CountedKind
  readonly cursor: ChangeCursor<WatchEvent<ResourceName>>
  /** The version of the last change that was read. */
  seen: number
  readonly namespaces: Map<string, UsageTrack>
  /** The next change of the kind calls the listener. */
  armed: boolean
}

export function usageIndex({ store, clock }: UsageIndexNeeds): UsageIndex {
  const tracked = new Map<string, KindTracks>()
  const changed = new Set<string>()
  let notify = () => {}

  const trackOf = ({ kind, namespace }: UsagePlace) => tracked.get(kind.id)?.namespaces.get(namespace)

  const arm = (tracks: KindTracks) => {
    if (tracks.armed) return
    tracks.armed = true
    tracks.cursor.onReady(() => {
      tracks.armed = false
      notify()
    })
  }

  const changedNamespaces = (tracks: KindTracks): Iterable<string> => {
    try {
      return readChanges(tracks, clock.wallMs())
    } catch (error) {
      // Too far behind: the namespaces are counted again when they are asked for.
      if (!isApiError(error, 'Expired')) throw error
      tracked.delete(tracks.kind.id)
      return tracks.namespaces.keys()
    }
  }
  const readAll = () => {
    for (const tracks of [...tracked.values()]) {
      for (const namespace of changedNamespaces(tracks)) changed.add(namespace)
    }
  }

  const count = async ({ kind, namespace }: UsagePlace) => {
    const { counted, resourceVersion } = await countedObjects(kind, namespace, { store, clock })
    let tracks = tracked.get(kind.id)
    if (tracks === undefined) {
      const cursor: KindTracks['cursor'] = store.changes(kind.id, resourceVersion)
      tracks = { kind, cursor, seen: Number(resourceVersion), namespaces: new Map(), armed: false }
      tracked.set(kind.id, tracks)
      arm(tracks)
    }
    // Another caller may have counted it meanwhile.
    if (tracks.namespaces.has(namespace)) return
    tracks.namespaces.set(namespace, usageTrack(kind, counted, Number(resourceVersion)))
  }

  return {
    async refresh(places) {
      do {
        for (const { scopes = [], ...place } of places) {
          if (trackOf(place) === undefined) await count(place)
          await trackOf(place)?.prepare(scopes)
        }
        readAll()
      } while (places.some((place) => trackOf(place) === undefined))
    },
    used: (place, scopes) => trackOf(place)?.used(scopes, clock.wallMs()),
    has: (place, name) => trackOf(place)?.has(name) ?? false,
    written(kind, object) {
      const { namespace = '', resourceVersion } = object.metadata
      const seen = tracked.get(kind.id)?.seen
      // What was read of the changes may have removed the object already.
      if (seen === undefined || resourceVersion === undefined || Number(resourceVersion) <= seen) return
      if (trackOf({ kind, namespace })?.put(object as AnyStored, clock.wallMs())) changed.add(namespace)
    },
    changedNamespaces() {
      readAll()
      const namespaces = [...changed]
      changed.clear()
      return namespaces
    },
    onReady(listener) {
      let isCalled = false
      notify = () => {
        if (!isCalled) listener()
        isCalled = true
      }
      if (changed.size > 0) notify()
      for (const tracks of tracked.values()) arm(tracks)
    },
    keepOnly(namespaces) {
      for (const [id, tracks] of tracked) {
        for (const namespace of [...tracks.namespaces.keys()]) {
          if (!namespaces.has(namespace)) tracks.namespaces.delete(namespace)
        }
        if (tracks.namespaces.size === 0) tracked.delete(id)
      }
    },
  }
}

/**
 * Counts in pieces, and again what changed meanwhile, until so little did that it can be counted at once. After the last list nothing is
 * done for each object but to compare its version.
 */
async function countedObjects(kind: CountedKind, namespace: string, { store, clock }: UsageIndexNeeds) {
  const known = new Map<string, Counted>()
  for (;;) {
    const { items, resourceVersion } = await store.list(kind.id, namespace)
    const isKnown = (object: AnyStored) =>
      known.get(object.metadata.name)?.object.metadata.resourceVersion === object.metadata.resourceVersion
    const others = items.filter((object) => !isKnown(object))
    const isLast = others.length <= countedAtOnce
    for (const [index, object] of others.entries()) {
      if (!isLast && index > 0 && index % countedAtOnce === 0) await nextTurn()
      known.set(object.metadata.name, { object, usage: usageOf(kind, object, clock.wallMs()) })
    }
    if (!isLast) {
      await nextTurn()
      continue
    }
    if (known.size > items.length) keepListed(known, items)
    return { counted: known, resourceVersion }
  }
}

function keepListed(known: Map<string, Counted>, items: readonly AnyStored[]): void {
  const names = new Set(items.map(({ metadata }) => metadata.name))
  for (const name of known.keys()) if (!names.has(name)) known.delete(name)
}

/** The counted namespaces in which the changes since the last call changed the usage. Throws ApiError Expired. */
function readChanges(tracks: KindTracks, nowMs: number): ReadonlySet<string> {
  const { cursor, namespaces } = tracks
  const changed = new Set<string>()
  for (let change = cursor.next(); change !== undefined; change = cursor.next()) {
    const { type, object, version } = change
    tracks.seen = version
    const { namespace = '' } = object.metadata
    const track = namespaces.get(namespace)
    const isOther = type === 'DELETED' ? track?.remove(object, version) : track?.put(object, nowMs)
    if (isOther) changed.add(namespace)
  }
  return changed
}

/**
 * The Leases of clients, which are in etcd, among those of nodes, which are not. All Leases take their versions from `LeaseVersions`, so
 * that watches receive their changes in one order; the revision of the key, which is the condition of a write, is remembered here.
 */
import type { AnyStoredObject, DraftChange } from '../changes.ts'
import { withVersion } from '../changes.ts'
import type { ObjectCache } from '../object-cache.ts'
import type { ObjectKey } from '../store.ts'
import type { LeaseVersions } from './lease-versions.ts'

export interface StoredLeases {
  /** 0: there is no such Lease. */
  revisionOf(key: ObjectKey): number
  /** A change in etcd; `object` undefined: deleted. One that was applied before has no effect. */
  apply(key: ObjectKey, object: AnyStoredObject | undefined, revision: number): void
  /** Takes these, whose versions are their revisions, in the place of those it has. */
  replace(objects: readonly AnyStoredObject[]): void
  /** The first Leases, or those of a controller that begins to lead: all get a new version, and watches from before are Expired. */
  begin(): void
}

/** `versions`: those of a controller that does not lead are all the same. It answers no reads of Leases. */
export function storedLeases(cache: ObjectCache, versions: LeaseVersions): StoredLeases {
  const revisions = new Map<string, number>()
  const nextVersion = () => (versions.isOpen() ? versions.next() : versions.last())
  const apply = (key: ObjectKey, object: AnyStoredObject | undefined, revision: number) => {
    const previous = cache.get('leases', key)
    const place = placeOf(key)
    if ((revisions.get(place) ?? 0) >= revision) return
    if (object === undefined) revisions.delete(place)
    else revisions.set(place, revision)
    const draft = draftOf(object, previous)
    if (draft !== undefined) cache.apply('leases', withVersion(draft, nextVersion()))
  }
  return {
    revisionOf: (key) => revisions.get(placeOf(key)) ?? 0,
    apply,
    replace(objects) {
      const wanted = new Set(objects.map(({ metadata }) => placeOf(metadata)))
      for (const place of [...revisions.keys()]) {
        const [namespace = '', name = ''] = place.split('/')
        if (!wanted.has(place)) apply({ namespace, name }, undefined, Number.POSITIVE_INFINITY)
      }
      for (const object of objects) {
        const { namespace = '', name, resourceVersion } = object.metadata
        apply({ namespace, name: name ?? '' }, object, Number(resourceVersion))
      }
    },
    begin() {
      const version = nextVersion()
      for (const object of cache.list('leases')) {
        if (!revisions.has(placeOf(object.metadata))) continue
        const begun = withVersion({ type: 'MODIFIED', object, previous: object }, version).object
        cache.load('leases', begun, JSON.stringify(begun).length)
      }
      cache.forget('leases', version)
    },
  }
}

function draftOf(object: AnyStoredObject | undefined, previous: AnyStoredObject | undefined): DraftChange | undefined {
  if (object !== undefined) return { type: previous === undefined ? 'ADDED' : 'MODIFIED', object, previous }
  return previous && { type: 'DELETED', object: previous, previous }
}

function placeOf({ namespace = '', name = '' }: Partial<ObjectKey>): string {
  return `${namespace}/${name}`
}

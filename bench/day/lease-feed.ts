/**
 * The leases of simulated nodes, in place of those of a store: a renewal costs what its reader does with it, and not the checks and
 * copies of a write. For one reader at a time, which is the node lifecycle controller.
 */
import { type BuiltInName, builtInResources } from '../../api/resources.ts'
import { cachedStore } from '../../broker-controller/store/cached-store.ts'
import type { AnyStoredObject, Change } from '../../broker-controller/store/changes.ts'
import type { ObjectCache } from '../../broker-controller/store/object-cache.ts'
import { objectSizes } from '../../broker-controller/store/room/object-sizes.ts'
import type { ObjectKey, Store } from '../../broker-controller/store/store.ts'
import { rfc3339Micro } from '../../daemon/clock.ts'
import type { FakeClock } from '../../daemon/testing/fake-clock.ts'

export interface LeaseFeed {
  renew(nodeName: string): void
  /** As in a controller that starts again: leases are in its memory. */
  forget(): void
  /** This store, with these leases. */
  over(store: Store): Store
}

export function leaseFeed(clock: FakeClock, leaseDurationSeconds: number): LeaseFeed {
  const leases = new Map<string, AnyStoredObject>()
  const waiting = new Set<() => void>()
  let changes: Change[] = []
  let next = 0
  let version = 0

  const cache: ObjectCache = {
    get: (_resource, { name }: ObjectKey) => leases.get(name),
    list: () => [...leases.values()],
    changes() {
      changes = []
      next = 0
      return {
        ended: false,
        next() {
          const change = changes[next++]
          if (change !== undefined) return change
          changes = []
          next = 0
          return undefined
        },
        onReady(listener) {
          waiting.add(listener)
          return () => void waiting.delete(listener)
        },
      }
    },
    podsOf: () => [],
    sizes: objectSizes(),
    load: readOnly,
    apply: readOnly,
    replace: readOnly,
    forget: readOnly,
    close: () => undefined,
  }
  const writer = { write: async () => readOnly(), visibleVersion: () => version, close: async () => undefined }
  /** Time of this second, shared by all nodes that renew in it. */
  let renewed = { atMs: Number.NaN, time: '' }
  const renewTime = () => {
    const atMs = clock.wallMs()
    if (renewed.atMs !== atMs) renewed = { atMs, time: rfc3339Micro(atMs) }
    return renewed.time
  }
  const aLease = (name: string): AnyStoredObject => ({
    apiVersion: 'coordination.k8s.io/v1',
    kind: 'Lease',
    metadata: {
      name,
      namespace: 'kube-node-lease',
      uid: name,
      resourceVersion: String(version),
      creationTimestamp: '2026-01-01T00:00:00Z',
    },
    spec: { holderIdentity: name, leaseDurationSeconds, renewTime: renewTime() },
  })
  const feed = cachedStore({ resources: builtInResources, cache, writer, clock })

  return {
    renew(name) {
      version += 1
      const previous = leases.get(name)
      const object = aLease(name)
      leases.set(name, object)
      changes.push({ type: previous === undefined ? 'ADDED' : 'MODIFIED', object, previous, version })
      if (waiting.size === 0) return
      const listeners = [...waiting]
      waiting.clear()
      for (const listener of listeners) listener()
    },
    forget: () => leases.clear(),
    over(store) {
      const of = (resource: BuiltInName | (string & {})) => (resource === 'leases' ? feed : store)
      return {
        ...store,
        get: (resource, key) => of(resource).get(resource, key),
        list: (resource, namespace) => of(resource).list(resource, namespace),
        changes: (resource, from) => of(resource).changes(resource, from),
      }
    },
  }
}

function readOnly(): never {
  throw new Error('Leases of simulated nodes are renewed by the nodes only')
}

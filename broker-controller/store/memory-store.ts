/** A store in memory only: for tests, and as the reference for other stores. */
import { builtInResources, type ResourceRegistry } from '../../api/resources.ts'
import type { Clock } from '../../daemon/clock.ts'
import { type ChangeWriter, cachedStore } from './cached-store.ts'
import { withVersion } from './changes.ts'
import { objectCache } from './object-cache.ts'
import type { StoreLimits } from './room/store-limits.ts'
import type { Store } from './store.ts'

export type MemoryStoreNeeds = {
  readonly clock: Clock
  /** The kinds it stores; undefined: the built-in ones. */
  readonly resources?: ResourceRegistry
  /** Makes uids repeatable. */
  readonly random?: () => number
  /** Changes of the last minutes that are kept for watches, for each kind: at least this many, at most twice as many. */
  readonly historyLength?: number
  /** Approximate limit of the heap that these changes take, in bytes, over all kinds. */
  readonly historyBytes?: number
  /** Creations beyond these are refused. undefined: none is. */
  readonly limits?: StoreLimits
}

export function memoryStore({
  clock,
  resources = builtInResources,
  random,
  historyLength,
  historyBytes,
  limits,
}: MemoryStoreNeeds): Store {
  let version = 0
  const cache = objectCache({
    resources,
    clock,
    startVersion: () => version,
    latestVersion: () => version,
    ...(historyLength !== undefined && { historyLength }),
    ...(historyBytes !== undefined && { historyBytes }),
  })
  const writer: ChangeWriter = {
    async write(resource, key, decide) {
      const present = cache.get(resource, key)
      const draft = decide(present)
      if (draft === undefined) return present
      const change = withVersion(draft, ++version)
      cache.apply(resource, change)
      return change.object
    },
    visibleVersion: () => version,
    close: async () => undefined,
  }
  return cachedStore({ resources, cache, writer, clock, limits, ...(random !== undefined && { random }) })
}

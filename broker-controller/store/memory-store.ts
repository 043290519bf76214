/** A store that forgets when the process ends: for tests, and the measure of the others. */
import { builtInResources, type ResourceRegistry } from '../../api/resources.ts'
import type { Clock } from '../../daemon/clock.ts'
import { objectImage } from './object-image.ts'
import type { Store } from './store.ts'
import { type Keeper, storeOver } from './store-over.ts'

export type MemoryStoreNeeds = {
  readonly clock: Clock
  /** The kinds it keeps; undefined: the built-in ones. */
  readonly resources?: ResourceRegistry
  /** Makes uids repeatable. */
  readonly random?: () => number
  /** Of the last minutes at least so many changes of each kind are remembered for watches, at most twice as many. */
  readonly historyLength?: number
  /** About how many bytes of heap the remembered changes of all kinds may take. */
  readonly historyBytes?: number
}

export function memoryStore({
  clock,
  resources = builtInResources,
  random,
  historyLength,
  historyBytes,
}: MemoryStoreNeeds): Store {
  let version = 0
  const image = objectImage({
    resources,
    clock,
    startVersion: version,
    latestVersion: () => version,
    ...(historyLength !== undefined && { historyLength }),
    ...(historyBytes !== undefined && { historyBytes }),
  })
  const keeper: Keeper = {
    nextVersion: () => ++version,
    present: image.get,
    keep: async (resource, change) => image.apply(resource, change),
    settled: async () => undefined,
    visibleVersion: () => version,
    close: async () => undefined,
  }
  return storeOver({ resources, image, keeper, clock, ...(random !== undefined && { random }) })
}

/**
 * Which volume a claim gets (FindMatchingVolume in component-helpers/storage/volume/pv_helpers.go, and
 * pkg/controller/volume/persistentvolume/index.go). In memory only: thousands of claims choose among thousands of volumes.
 */
import { addQuantities, compareQuantities, type Quantity, zeroQuantity } from '../../../api/quantity.ts'
import type { PersistentVolumeClaim } from '../../../api/storage/persistent-volume-claim.ts'
import {
  capacityOfVolume,
  classOfClaim,
  classOfVolume,
  hasAttributesClass,
  hasVolumeModeOf,
  isLargeEnoughFor,
  isReservedFor,
  requestOfClaim,
  selectorOfClaim,
} from '../../../api/storage/volume-matching.ts'
import { keyText } from '../../store/informer.ts'
import type { StoredObject } from '../../store/store.ts'

export type StoredVolume = StoredObject<'persistentvolumes'>

export interface VolumeIndex {
  /** Also in place of an earlier version of it. */
  put(volume: StoredVolume): void
  remove(name: string): void
  /**
   * One that names the claim, or the smallest that is free. Volumes with few access modes are looked at first, so that one
   * that many machines can write stays for who asks for that. `delayed`: the scheduler chooses among those that are free.
   * `isTaken`: another claim is about to get it.
   */
  choose(
    claim: PersistentVolumeClaim,
    how: { readonly delayed: boolean; readonly isTaken?: (name: string) => boolean },
  ): StoredVolume | undefined
}

/** The volumes with the same access modes. */
type Shelf = {
  readonly modes: readonly string[]
  /** By the key of the claim that they name. */
  readonly reserved: Map<string, SizedVolume[]>
  /** By class. */
  readonly free: Map<string, SizedVolume[]>
}

type SizedVolume = { readonly capacity: Quantity; readonly volume: StoredVolume }

/** Where a volume is kept. */
type Place = {
  readonly shelf: string
  readonly part: 'reserved' | 'free'
  readonly key: string
  readonly sized: SizedVolume
}

export function volumeIndex(): VolumeIndex {
  const shelves = new Map<string, Shelf>()
  const places = new Map<string, Place>()

  const remove = (name: string) => {
    const place = places.get(name)
    places.delete(name)
    const shelf = shelves.get(place?.shelf ?? '')
    if (place === undefined || shelf === undefined) return
    const list = shelf[place.part].get(place.key) ?? []
    const { at, isThere } = search(list, place.sized)
    if (isThere) list.splice(at, 1)
    if (list.length === 0) shelf[place.part].delete(place.key)
    if (shelf.reserved.size + shelf.free.size === 0) shelves.delete(place.shelf)
  }

  const shelfOf = (key: string, modes: readonly string[]): Shelf => {
    const shelf = shelves.get(key) ?? { modes, reserved: new Map(), free: new Map() }
    shelves.set(key, shelf)
    return shelf
  }

  return {
    remove,
    put(volume) {
      const { name } = volume.metadata
      remove(name)
      const kept = placeOf(volume)
      if (kept === undefined) return
      const modes = [...new Set(volume.spec?.accessModes ?? [])].sort()
      const sized = { capacity: addQuantities(zeroQuantity, capacityOfVolume(volume)), volume }
      const place = { ...kept, shelf: modes.join(), sized }
      const part = shelfOf(place.shelf, modes)[place.part]
      const list = part.get(place.key) ?? []
      part.set(place.key, list)
      list.splice(search(list, sized).at, 0, sized)
      places.set(name, place)
    },
    choose(claim, { delayed, isTaken = () => false }) {
      if (hasAttributesClass(claim)) return undefined
      const asked = claim.spec?.accessModes ?? []
      const able = [...shelves].filter(([, { modes }]) => asked.every((mode) => modes.includes(mode)))
      able.sort(([a, one], [b, other]) => one.modes.length - other.modes.length || (a < b ? -1 : 1))
      for (const [, shelf] of able) {
        const found = reservedIn(shelf, claim) ?? (delayed ? undefined : smallestIn(shelf, claim, isTaken))
        if (found !== undefined) return found
      }
      return undefined
    },
  }
}

/** undefined: no claim can get it now. */
function placeOf(volume: StoredVolume): Pick<Place, 'part' | 'key'> | undefined {
  const { metadata, spec = {}, status = {} } = volume
  if (metadata.deletionTimestamp !== undefined || hasAttributesClass(volume)) return undefined
  if (spec.claimRef !== undefined) return { part: 'reserved', key: keyText(spec.claimRef) }
  return status.phase === 'Available' ? { part: 'free', key: classOfVolume(volume) } : undefined
}

/** Neither its class nor its labels matter. One that names this very claim comes before one that names all of its name. */
function reservedIn({ reserved }: Shelf, claim: PersistentVolumeClaim): StoredVolume | undefined {
  const able = (reserved.get(keyText(claim.metadata)) ?? [])
    .map(({ volume }) => volume)
    .filter((one) => isReservedFor(one, claim) && isLargeEnoughFor(one, claim) && hasVolumeModeOf(one, claim))
  return able.find(({ spec }) => spec?.claimRef?.uid === claim.metadata.uid) ?? able[0]
}

function smallestIn(
  { free }: Shelf,
  claim: PersistentVolumeClaim,
  isTaken: (name: string) => boolean,
): StoredVolume | undefined {
  const list = free.get(classOfClaim(claim) ?? '') ?? []
  const selects = selectorOfClaim(claim)
  const capacity = addQuantities(zeroQuantity, requestOfClaim(claim))
  for (let at = search(list, { capacity }).at; at < list.length; at++) {
    const volume = list[at]?.volume
    if (volume === undefined || isTaken(volume.metadata.name)) continue
    if (selects(volume.metadata.labels) && hasVolumeModeOf(volume, claim)) return volume
  }
  return undefined
}

type Sought = { readonly capacity: Quantity; readonly volume?: StoredVolume }

/** The place in a list that is in the order of capacities, then of names. Without a volume: before all of that capacity. */
function search(list: readonly SizedVolume[], sought: Sought): { readonly at: number; readonly isThere: boolean } {
  let [low, high] = [0, list.length]
  while (low < high) {
    const middle = (low + high) >> 1
    const one = list[middle]
    if (one !== undefined && isBefore(one, sought)) low = middle + 1
    else high = middle
  }
  return { at: low, isThere: list[low]?.volume.metadata.name === sought.volume?.metadata.name }
}

function isBefore(one: SizedVolume, { capacity, volume }: Sought): boolean {
  const difference = compareQuantities(one.capacity, capacity)
  if (difference !== 0) return difference < 0
  return volume !== undefined && one.volume.metadata.name < volume.metadata.name
}

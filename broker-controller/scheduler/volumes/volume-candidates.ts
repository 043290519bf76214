/** The volumes that a delayed claim could get, wherever its pod runs (FindMatchingVolume of Kubernetes, without its question for the node). */
import { parseQuantity } from '../../../api/quantity.ts'
import { type LabelMatcher, type Labels, matchesNodeSelectorTerms } from '../../../api/selectors.ts'
import {
  capacityOfVolume,
  classOfClaim,
  classOfVolume,
  hasAccessModesOf,
  hasAttributesClass,
  hasVolumeModeOf,
  isLargeEnoughFor,
  isReservedFor,
  selectorOfClaim,
} from '../../../api/storage/volume-matching.ts'
import type { Steps } from '../../../daemon/watchdog/steps.ts'
import type { NodeAllocation } from '../node-usage.ts'
import type { KnownClaim, KnownVolume, VolumeView } from './volume-cache.ts'

export type Candidates = {
  /** Reserved for the claim: it takes no other one. */
  readonly own: KnownVolume | undefined
  readonly free: FreeVolumes
}

export interface FreeVolumes {
  /** The smallest that a pod on the node can use and that is not among those taken. */
  smallestOn(node: NodeAllocation, taken: ReadonlySet<KnownVolume>): KnownVolume | undefined
}

export const noCandidates: Candidates = { own: undefined, free: { smallestOn: () => undefined } }

export function* candidatesFor(claim: KnownClaim, view: Pick<VolumeView, 'volumesOfClass'>): Steps<Candidates> {
  const selects = selectorOfClaim(claim)
  const free: Sized[] = []
  for (const volume of view.volumesOfClass(classOfClaim(claim) ?? '')) {
    yield
    if (!suitsClaim(volume, claim)) continue
    if (isReservedFor(volume, claim)) return { ...noCandidates, own: volume }
    if (isFreeFor(volume, claim, selects)) free.push({ volume, size: sizeOf(volume) })
  }
  free.sort((a, b) => a.size - b.size)
  return { own: undefined, free: yield* freeVolumes(free) }
}

/** Whether a pod on the node can use the volume. */
export function isReachable({ spec }: KnownVolume, { node }: Pick<NodeAllocation, 'node'>): boolean {
  const required = spec?.nodeAffinity?.required
  return required === undefined || matchesNodeSelectorTerms(required.nodeSelectorTerms, node)
}

type Sized = { readonly volume: KnownVolume; readonly size: number }

/** Exact for whole bytes up to 9 PB. */
function sizeOf(volume: KnownVolume): number {
  const capacity = capacityOfVolume(volume)
  return Number((typeof capacity === 'object' ? capacity : parseQuantity(capacity)).nano)
}

/**
 * Most volumes of a fleet are on one node each, which they name by a label: a node is compared with those that name it, and not with
 * thousands of others. Of the rest, those that are in the same places are compared once.
 */
function* freeVolumes(sorted: readonly Sized[]): Steps<FreeVolumes> {
  const byPlaces = new Map<string, Sized[]>()
  const byLabel = new Map<string, Map<string, Sized[]>>()
  for (const one of sorted) {
    yield
    const place = placeOf(one.volume)
    if (place === undefined) listOf(byPlaces, JSON.stringify(one.volume.spec?.nodeAffinity ?? {})).push(one)
    else for (const value of new Set(place.values)) listOf(mapOf(byLabel, place.key), value).push(one)
  }
  return {
    smallestOn(usage, taken) {
      let best: Sized | undefined
      for (const list of [...byPlaces.values(), ...listsFor(byLabel, usage.labels)]) {
        const first = list.find(({ volume }) => !taken.has(volume))
        if (first === undefined || (best !== undefined && first.size >= best.size)) continue
        if (isReachable(first.volume, usage)) best = first
      }
      return best?.volume
    },
  }
}

/** The label by which the volume names its nodes, if it is only one. */
function placeOf({ spec }: KnownVolume): { readonly key: string; readonly values: readonly string[] } | undefined {
  const terms = spec?.nodeAffinity?.required?.nodeSelectorTerms ?? []
  const expressions = terms[0]?.matchExpressions ?? []
  const [first] = expressions
  if (terms.length !== 1 || expressions.length !== 1 || first?.operator !== 'In') return undefined
  return { key: first.key, values: first.values ?? [] }
}

function listOf(lists: Map<string, Sized[]>, key: string): Sized[] {
  const list = lists.get(key) ?? []
  lists.set(key, list)
  return list
}

function mapOf(maps: Map<string, Map<string, Sized[]>>, key: string): Map<string, Sized[]> {
  const map = maps.get(key) ?? new Map<string, Sized[]>()
  maps.set(key, map)
  return map
}

function* listsFor(byLabel: ReadonlyMap<string, ReadonlyMap<string, readonly Sized[]>>, labels: Labels) {
  for (const [key, byValue] of byLabel) {
    const list = byValue.get(labels[key] ?? '')
    if (list !== undefined) yield list
  }
}

/** Whether the claim could be bound to the volume now. */
export function isBindable(volume: KnownVolume, claim: KnownClaim): boolean {
  return suitsClaim(volume, claim) && (isReservedFor(volume, claim) || isFreeFor(volume, claim, selectorOfClaim(claim)))
}

/** What is asked also of a volume that is reserved for the claim. */
function suitsClaim(volume: KnownVolume, claim: KnownClaim): boolean {
  return (
    hasVolumeModeOf(volume, claim) &&
    !hasAttributesClass(volume) &&
    volume.metadata.deletionTimestamp === undefined &&
    isLargeEnoughFor(volume, claim)
  )
}

function isFreeFor(volume: KnownVolume, claim: KnownClaim, selects: LabelMatcher): boolean {
  return (
    volume.spec?.claimRef === undefined &&
    volume.status?.phase === 'Available' &&
    classOfVolume(volume) === (classOfClaim(claim) ?? '') &&
    hasAccessModesOf(volume, claim) &&
    selects(volume.metadata.labels)
  )
}

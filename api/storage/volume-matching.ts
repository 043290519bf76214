/** Whether a volume suits a claim: what the binder and the scheduler decide alike (component-helpers/storage/volume/pv_helpers.go). Pure. */
import { amountNamed, type ResourceAmounts } from '../limits/resource-amounts.ts'
import { compareQuantities, type QuantityLike, zeroQuantity } from '../quantity.ts'
import { type LabelMatcher, labelMatcher, requirementsOf } from '../selectors.ts'
import type { PersistentVolume } from './persistent-volume.ts'
import { type PersistentVolumeClaim, storageClassAnnotation } from './persistent-volume-claim.ts'
import type { StorageClass } from './storage-class.ts'

/** The class that the claim names; undefined: it names none and gets the default one. '' means no class, also later. */
export function classOfClaim({
  metadata,
  spec = {},
}: Pick<PersistentVolumeClaim, 'metadata' | 'spec'>): string | undefined {
  return metadata.annotations?.[storageClassAnnotation] ?? spec.storageClassName
}

/** The class of the volume; '': it has none. */
export function classOfVolume({ metadata, spec = {} }: Pick<PersistentVolume, 'metadata' | 'spec'>): string {
  return metadata.annotations?.[storageClassAnnotation] ?? spec.storageClassName ?? ''
}

/** How much storage the claim asks for. */
export function requestOfClaim({ spec = {} }: PersistentVolumeClaim): QuantityLike {
  return storageOf(spec.resources?.requests)
}

export function capacityOfVolume({ spec = {} }: PersistentVolume): QuantityLike {
  return storageOf(spec.capacity)
}

function storageOf(amounts: ResourceAmounts = {}): QuantityLike {
  return amountNamed(amounts, 'storage') ?? zeroQuantity
}

/** The volume names the claim, by a person or by a controller. Without a uid every claim of that name is meant (IsVolumeBoundToClaim). */
export function isReservedFor({ spec = {} }: PersistentVolume, { metadata }: PersistentVolumeClaim): boolean {
  const { claimRef } = spec
  return (
    claimRef !== undefined &&
    claimRef.name === metadata.name &&
    (claimRef.namespace ?? '') === (metadata.namespace ?? '') &&
    ((claimRef.uid ?? '') === '' || claimRef.uid === metadata.uid)
  )
}

/** Block or file system: neither can stand for the other. */
export function hasVolumeModeOf({ spec: has = {} }: PersistentVolume, { spec: asks = {} }: PersistentVolumeClaim) {
  return (has.volumeMode ?? 'Filesystem') === (asks.volumeMode ?? 'Filesystem')
}

export function hasAccessModesOf({ spec: has = {} }: PersistentVolume, { spec: asks = {} }: PersistentVolumeClaim) {
  return (asks.accessModes ?? []).every((mode) => has.accessModes?.includes(mode))
}

export function isLargeEnoughFor(volume: PersistentVolume, claim: PersistentVolumeClaim): boolean {
  return compareQuantities(capacityOfVolume(volume), requestOfClaim(claim)) >= 0
}

/** Which volumes the claim selects by their labels. A selector that cannot be read selects nothing: the API accepts none. */
export function selectorOfClaim({ spec }: PersistentVolumeClaim): LabelMatcher {
  const asked = requirementsOf(spec?.selector)
  if (asked === undefined) return () => true
  return asked.ok ? labelMatcher(asked.value) : () => false
}

/** The claim waits for a pod, so that its volume can be where the pod can run. A class that does not exist delays nothing. */
export function isDelayed(storageClass: Pick<StorageClass, 'volumeBindingMode'> | undefined): boolean {
  return storageClass?.volumeBindingMode === 'WaitForFirstConsumer'
}

/** VolumeAttributesClass is off by default in Kubernetes 1.32: a volume that has one is bound to nothing. */
export function hasAttributesClass({
  spec = {},
}: {
  readonly spec?: { readonly volumeAttributesClassName?: string }
}): boolean {
  return (spec.volumeAttributesClassName ?? '') !== ''
}

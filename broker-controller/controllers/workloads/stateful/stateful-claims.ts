/**
 * The claims of the pods of a StatefulSet, and who owns them (pkg/controller/statefulset/stateful_set_utils.go). A claim is named
 * by its place, not by its pod: a later pod of the place has the data of the earlier one. Pure.
 */
import type { OwnerReference } from '../../../../api/meta.ts'
import type { PodSpec } from '../../../../api/pod.ts'
import type { PersistentVolumeClaim } from '../../../../api/storage/persistent-volume-claim.ts'
import type { StatefulSet } from '../../../../api/workloads/stateful-set.ts'
import type { AnyStored, StoredPod } from '../../../store/store.ts'
import { controllerReference } from '../controller-ref.ts'
import { ordinalOf, ordinalRange } from './stateful-identity.ts'

type Set = AnyStored & StatefulSet

/** The claims of the pod with this ordinal, as they are made: with the labels that the set selects by. */
export function claimsOfPlace({ metadata, spec }: Set, ordinal: number): readonly PersistentVolumeClaim[] {
  return (spec.volumeClaimTemplates ?? []).map(({ metadata: template = {}, spec: claim = {} }) => ({
    apiVersion: 'v1',
    kind: 'PersistentVolumeClaim',
    metadata: {
      ...template,
      name: placeName(template.name ?? '', metadata.name, ordinal),
      ...(metadata.namespace !== undefined && { namespace: metadata.namespace }),
      labels: { ...template.labels, ...spec.selector?.matchLabels },
    },
    spec: claim,
  }))
}

function placeName(template: string, set: string, ordinal: number): string {
  return `${template}-${set}-${ordinal}`
}

/** Names of sets that a claim of this name may be of: the name of a template may have dashes, too. */
export function setsOfClaim(claim: string): readonly string[] {
  const parts = claim.split('-').slice(0, -1)
  return parts.slice(1).map((_, index) => parts.slice(index + 1).join('-'))
}

/** The volumes of the claims, in place of those of the same name. */
export function withClaimsOfPlace(
  { metadata, spec: { volumeClaimTemplates = [] } }: Set,
  ordinal: number,
  spec: PodSpec,
) {
  if (volumeClaimTemplates.length === 0) return spec
  const claims = volumeClaimTemplates.map(({ metadata: { name = '' } = {} }) => ({
    name,
    persistentVolumeClaim: { claimName: placeName(name, metadata.name, ordinal) },
  }))
  const names = new Set(claims.map(({ name }) => name))
  return { ...spec, volumes: [...claims, ...(spec.volumes ?? []).filter(({ name }) => !names.has(name))] }
}

type Claim = { readonly metadata: { readonly ownerReferences?: readonly OwnerReference[] } }

export type ClaimOwners = {
  /** The references as they should be; undefined: they are. */
  readonly change: readonly OwnerReference[] | undefined
  /** Another controller has it, or a later version of the set or its pod would: the policy is ignored. */
  readonly isConflicting: boolean
}

/**
 * What the retention policy of the set makes of a claim of this pod: what owns it goes before it. One whose owner had the name of
 * the set or the pod, and is another, is left to the garbage collector.
 */
export function claimOwners(set: Set, pod: StoredPod, claim: Claim): ClaimOwners {
  const { ownerReferences = [] } = claim.metadata
  const { whenScaled, whenDeleted } = set.spec.persistentVolumeClaimRetentionPolicy ?? {}
  const owners: readonly AnyStored[] = [set, pod]
  const isStale = owners.some((owner) => isStaleReference(ownerReferences, owner))
  if (isStale) return { change: undefined, isConflicting: false }
  const isOurs = (reference: OwnerReference) => owners.some((owner) => isNamed(reference, owner))
  const others = ownerReferences.filter((reference) => !isOurs(reference))
  const ours = ownerReferences.filter(isOurs)
  const isManaged = whenScaled === 'Delete' || whenDeleted === 'Delete'
  if (isManaged && others.some(({ controller }) => controller === true)) {
    return { change: ours.length > 0 ? others : undefined, isConflicting: true }
  }
  const owner = ownerOf(set, pod)
  const isRight =
    ours.length === (owner === undefined ? 0 : 1) &&
    ours.every(({ uid, controller }) => uid === owner?.metadata.uid && controller === true)
  const change = owner === undefined ? others : [...others, controllerReference(owner)]
  return { change: isRight ? undefined : change, isConflicting: false }
}

function ownerOf(set: Set, pod: StoredPod): AnyStored | undefined {
  const { whenScaled, whenDeleted } = set.spec.persistentVolumeClaimRetentionPolicy ?? {}
  const { first, end } = ordinalRange(set)
  const ordinal = ordinalOf(set.metadata.name, pod.metadata.name) ?? -1
  const isScaledDown = ordinal < first || ordinal >= end
  if (whenScaled === 'Delete' && isScaledDown) return pod
  return whenDeleted === 'Delete' ? set : undefined
}

/**
 * The claim goes with an earlier pod of the place, so that a new pod must not take it: it would lose its data a moment later
 * (PodClaimIsStale).
 */
export function goesWithEarlierPod({ spec }: Set, podName: string, claim: Claim): boolean {
  if (spec.persistentVolumeClaimRetentionPolicy?.whenScaled !== 'Delete') return false
  return (claim.metadata.ownerReferences ?? []).some(
    ({ apiVersion, kind, name }) => apiVersion === 'v1' && kind === 'Pod' && name === podName,
  )
}

function isStaleReference(references: readonly OwnerReference[], owner: AnyStored): boolean {
  const found = references.find((reference) => isNamed(reference, owner))
  return found !== undefined && found.uid !== owner.metadata.uid
}

function isNamed({ apiVersion, kind, name }: OwnerReference, owner: AnyStored): boolean {
  return apiVersion === owner.apiVersion && kind === owner.kind && name === owner.metadata.name
}

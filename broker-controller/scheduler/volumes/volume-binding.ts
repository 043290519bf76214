/** VolumeBinding: whether the volumes of a pod can be used on a node, and which volumes its delayed claims get there. */
import { isTopologyAllowed } from '../../../api/storage/allowed-topologies.ts'
import { localProvisioner, poolsForClass } from '../../../api/storage/pools.ts'
import type { StoredObject } from '../../store/store.ts'
import type { NodeAllocation } from '../node-usage.ts'
import type { DelayedClaim, PodVolumes } from './pod-volumes.ts'
import type { KnownClaim, KnownVolume, VolumeBinding, VolumeChoice } from './volume-cache.ts'
import { isReachable } from './volume-candidates.ts'

const conflictText = 'node(s) had volume node affinity conflict'
const bindText = "node(s) didn't find available persistent volumes to bind"
const spaceText = 'node(s) did not have enough free storage'
const missingText = 'node(s) unavailable due to one or more pvc(s) bound to non-existent pv(s)'

/** Volumes of this class are made by persons (NotSupportedProvisioner). */
const noProvisioner = 'kubernetes.io/no-provisioner'

export type VolumesOnNode = VolumeChoice | { readonly reasons: readonly string[] }

/** No preemption removes any of the reasons. */
export function volumesOn({ bound, delayed }: PlaceableVolumes, node: NodeAllocation): VolumesOnNode {
  const choice = chooseVolumes(delayed, node)
  const unusable = bound.findIndex((volume) => volume === undefined || !isReachable(volume, node))
  if (unusable < 0) return typeof choice === 'string' ? { reasons: [choice] } : choice
  const isMissing = bound[unusable] === undefined
  return {
    reasons: [
      ...(isMissing ? [] : [conflictText]),
      ...(typeof choice === 'string' ? [choice] : []),
      ...(isMissing ? [missingText] : []),
    ],
  }
}

export type PlaceableVolumes = PodVolumes & { readonly refused?: undefined }

/**
 * Or why there is no choice. A claim whose volume is elsewhere, and is being bound, gets no second one; one that a person only reserved may
 * (findMatchingVolumes).
 */
function chooseVolumes(delayed: readonly DelayedClaim[], node: NodeAllocation): VolumeChoice | string {
  const bindings: VolumeBinding[] = []
  const provisions: KnownClaim[] = []
  const taken = new Set<KnownVolume>()
  for (const one of delayed) {
    const { claim, selectedNode, storageClass } = one
    if (selectedNode !== undefined && selectedNode !== node.name) return bindText
    const volume = selectedNode === undefined ? volumeFor(one, node, taken) : undefined
    if (volume !== undefined) {
      taken.add(volume)
      bindings.push({ claim, volume })
    } else if (one.own?.spec?.claimRef?.uid || !canProvision(storageClass, node)) return bindText
    else if (hasRoom(one, node)) provisions.push(claim)
    else return spaceText
  }
  return { bindings, provisions }
}

function volumeFor(
  { own, free }: DelayedClaim,
  node: NodeAllocation,
  taken: ReadonlySet<KnownVolume>,
): KnownVolume | undefined {
  if (own === undefined) return free.smallestOn(node, taken)
  return isReachable(own, node) ? own : undefined
}

/** A CSI driver may report its capacity. For pools as for such a driver: a node without one would be refused by the provisioner, each time it is chosen. */
function hasRoom({ storageClass, room }: DelayedClaim, { node, labels }: NodeAllocation): boolean {
  if (room !== undefined) return room.some((isThere) => isThere(labels))
  return storageClass.provisioner !== localProvisioner || poolsForClass(node, storageClass).length > 0
}

function canProvision(storageClass: StoredObject<'storageclasses'>, { labels }: NodeAllocation): boolean {
  const { provisioner } = storageClass
  return provisioner !== '' && provisioner !== noProvisioner && isTopologyAllowed(storageClass, labels)
}

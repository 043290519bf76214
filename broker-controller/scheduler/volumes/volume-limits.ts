/** NodeVolumeLimits: a node takes as many volumes of a CSI driver as its CSINode states. */
import type { Pod } from '../../../api/pod.ts'
import { claimsOfPod } from '../../../api/storage/pod-claims.ts'
import { classOfClaim } from '../../../api/storage/volume-matching.ts'
import { csiVolumeName } from '../../../api/storage/volume-names.ts'
import { keyText } from '../../store/informer.ts'
import type { NodeAllocation } from '../node-usage.ts'
import { claimKeyOf, type KnownClaim, usesClaims, type VolumeView } from './volume-cache.ts'

/** A volume that takes a place of its driver on a node. `id` is the same for all pods that use it. */
export type LimitedVolume = { readonly driver: string; readonly id: string }

type View = Pick<VolumeView, 'claim' | 'volume' | 'storageClass' | 'csi'>

export const limitText = 'node(s) exceed max volume count'

/**
 * undefined: it is not of a CSI driver. A volume that does not exist yet, or does not exist any longer, is of the
 * provisioner of its class (getCSIDriverInfo in pkg/scheduler/framework/plugins/nodevolumelimits).
 */
export function limitedVolume(claim: KnownClaim, view: View): LimitedVolume | undefined {
  const volume = view.volume(claim.spec?.volumeName ?? '')
  if (volume === undefined) {
    const driver = view.storageClass(classOfClaim(claim) ?? '')?.provisioner
    return driver === undefined ? undefined : { driver, id: keyText(claim.metadata) }
  }
  const { csi } = volume.spec ?? {}
  return csi && { driver: csi.driver, id: csiVolumeName({ driver: csi.driver, handle: csi.volumeHandle }) }
}

/** Trials of preemption change the answer. */
export function exceedsLimit(wanted: readonly LimitedVolume[], node: NodeAllocation, view: View): boolean {
  const limited = wanted.filter(({ driver }) => view.csi.limitOf(node.name, driver) !== undefined)
  if (limited.length === 0) return false
  const ids = new Map<string, Set<string>>()
  const count = ({ driver, id }: LimitedVolume) => ids.set(driver, (ids.get(driver) ?? new Set()).add(id))
  for (const pod of node.pods.values()) for (const volume of volumesOf(pod, view)) count(volume)
  const before = new Map([...ids].map(([driver, some]) => [driver, some.size]))
  for (const volume of limited) count(volume)
  // A pod whose volumes are all there already takes no further place.
  return [...new Set(limited.map(({ driver }) => driver))].some((driver) => {
    const size = ids.get(driver)?.size ?? 0
    return size > (before.get(driver) ?? 0) && size > (view.csi.limitOf(node.name, driver) ?? 0)
  })
}

function volumesOf(pod: Pod, view: View): readonly LimitedVolume[] {
  if (!usesClaims(pod)) return []
  return claimsOfPod(pod).flatMap(({ name }) => {
    const claim = view.claim(claimKeyOf(pod, name))
    return (claim && limitedVolume(claim, view)) ?? []
  })
}

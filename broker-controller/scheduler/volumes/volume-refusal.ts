/** Why a pod cannot have its volumes on a node, by the first of Kubernetes' volume plugins that refuses. */
import type { NodeAllocation } from '../node-usage.ts'
import type { PodVolumes, VolumePlugin } from './pod-volumes.ts'
import { volumesOn } from './volume-binding.ts'
import { limitText } from './volume-limits.ts'
import { zoneRefusal } from './volume-zone.ts'

const takenText = 'node has pod using PersistentVolumeClaim with the same name and ReadWriteOncePod access mode'

export type VolumeRefusal = {
  readonly plugin: VolumePlugin
  readonly reasons: readonly string[]
  /** It would stand even if every pod left the node. */
  readonly isFinal: boolean
}

export function volumeRefusal(volumes: PodVolumes, node: NodeAllocation): VolumeRefusal | undefined {
  if (volumes.refused !== undefined) return final(volumes.refused.plugin, [volumes.refused.reason])
  if (volumes.isTaken()) return { plugin: 'VolumeRestrictions', reasons: [takenText], isFinal: false }
  if (volumes.exceedsLimit(node)) return { plugin: 'NodeVolumeLimits', reasons: [limitText], isFinal: false }
  const here = volumesOn(volumes, node)
  if ('reasons' in here) return final('VolumeBinding', here.reasons)
  const zone = zoneRefusal(volumes.zones, node)
  return zone === undefined ? undefined : final('VolumeZone', [zone])
}

function final(plugin: VolumePlugin, reasons: readonly string[]): VolumeRefusal {
  return { plugin, reasons, isFinal: true }
}

/** Which sizes of volumes, and which contents of the trash, are reported: small changes are not. Pure. */
import {
  type PoolUsage,
  type TrashedVolume,
  trashReportSeconds,
  type VolumeUsage,
} from '../../../api/storage/volume-messages.ts'

export type StorageUsage = {
  readonly pools?: readonly PoolUsage[]
  readonly volumes?: readonly VolumeUsage[]
  readonly trash?: readonly TrashedVolume[]
}

export type MeasuredUsage = {
  /** Those that are there and answer. */
  readonly pools: readonly PoolUsage[]
  readonly volumes: readonly VolumeUsage[]
  readonly trash: readonly TrashedVolume[]
}

const leastBytes = 64 * 2 ** 20
const leastPart = 0.01

/** The very same lists where nothing in them changed enough. */
export function reportedUsage(before: StorageUsage, { pools, volumes, trash }: MeasuredUsage): StorageUsage {
  const known = new Map(before.volumes?.map((one) => [one.uid, one]))
  const areSamePools =
    before.pools?.length === pools.length && pools.every((one, index) => isSamePool(one, before.pools?.[index]))
  const isSameVolume = ({ uid, usedBytes }: VolumeUsage) => {
    const last = known.get(uid)
    return last !== undefined && isNear(usedBytes, last.usedBytes)
  }
  const areSameVolumes = known.size === volumes.length && volumes.every(isSameVolume)
  return {
    ...((pools.length > 0 || before.pools) && { pools: areSamePools && before.pools ? before.pools : pools }),
    ...((volumes.length > 0 || before.volumes) && {
      volumes: areSameVolumes && before.volumes ? before.volumes : volumes,
    }),
    ...((trash.length > 0 || before.trash) && { trash: isSameTrash(trash, before.trash) ? before.trash : trash }),
  }
}

function isSameTrash(
  trash: readonly TrashedVolume[],
  last: readonly TrashedVolume[] | undefined,
): last is readonly TrashedVolume[] {
  const known = new Map(last?.map((one) => [one.uid, one]))
  const isSame = ({ uid, usedBytes, keptSeconds }: TrashedVolume) => {
    const before = known.get(uid)
    return before?.usedBytes === usedBytes && keptSeconds - (before?.keptSeconds ?? 0) < trashReportSeconds
  }
  return last?.length === trash.length && trash.every((one) => known.has(one.uid) && isSame(one))
}

function isSamePool(pool: PoolUsage, last: PoolUsage | undefined): boolean {
  if (last?.id !== pool.id || last.capacityBytes !== pool.capacityBytes || last.inTrash !== pool.inTrash) return false
  return isNear(pool.availableBytes, last.availableBytes)
}

function isNear(bytes: number, last: number): boolean {
  const difference = Math.abs(bytes - last)
  return difference < leastBytes || difference < last * leastPart
}

/** The volumes of claims and of CSI drivers in a summary: what the kubelet reports, with `pvcRef` for a claim. Pure. */
import type { PodStats, Summary } from '../../api/node/stats.ts'
import type { Pod } from '../../api/pod.ts'
import { claimsOfPod } from '../../api/storage/pod-claims.ts'
import type { DriverVolume, VolumeFigures } from './volume-metrics.ts'

/** `figures`: as they were measured last. A claim that was not measured, or is outside of the pools, is left out. */
export function withClaims(
  summary: Summary,
  pods: readonly Pod[],
  { pools, volumes, drivers = [] }: Omit<VolumeFigures, 'trash'>,
  time: string,
): Summary {
  if ((pools.length === 0 || volumes.length === 0) && drivers.length === 0) return summary
  const space = new Map(pools.map((pool) => [pool.id, pool]))
  const measured = new Map(volumes.map((volume) => [volume.claim, volume]))
  const byUID = new Map(pods.map((pod) => [pod.metadata.uid, pod]))
  const claimsIn = (pod: Pod): NonNullable<PodStats['volume']> =>
    claimsOfPod(pod).flatMap(({ name, volume }) => {
      const { namespace = 'default' } = pod.metadata
      const found = measured.get(`${namespace}/${name}`)
      const pool = space.get(found?.pool ?? '')
      if (found === undefined || pool === undefined) return []
      const { usedBytes } = found
      const { capacityBytes, availableBytes } = pool
      return [{ time, name: volume, usedBytes, capacityBytes, availableBytes, pvcRef: { name, namespace } }]
    })
  return {
    ...summary,
    pods: summary.pods.map((stats) => {
      const pod = byUID.get(stats.podRef.uid)
      const own = drivers.filter(({ podUID }) => podUID === stats.podRef.uid)
      const claims = pod === undefined ? [] : [...claimsIn(pod), ...driverStats(pod, own, time)]
      return claims.length === 0 ? stats : { ...stats, volume: [...(stats.volume ?? []), ...claims] }
    }),
  }
}

type VolumeStats = NonNullable<PodStats['volume']>

function driverStats(pod: Pod, drivers: readonly DriverVolume[], time: string): VolumeStats {
  const { namespace = 'default' } = pod.metadata
  const claims = claimsOfPod(pod)
  return drivers.flatMap(({ volume, claim, bytes, inodes, condition }) => {
    const found = claims.find(({ name }) => `${namespace}/${name}` === claim)
    const name = claim === undefined ? volume : found?.volume
    if (name === undefined) return []
    return [
      {
        ...{ time, name },
        ...(found && { pvcRef: { name: found.name, namespace } }),
        ...(bytes && { availableBytes: bytes.available, capacityBytes: bytes.total, usedBytes: bytes.used }),
        ...(inodes && { inodesFree: inodes.available, inodes: inodes.total, inodesUsed: inodes.used }),
        ...(condition && { volumeHealthStats: { abnormal: condition.abnormal } }),
      },
    ]
  })
}

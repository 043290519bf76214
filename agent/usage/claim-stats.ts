/** The volumes of claims in a summary: what the kubelet reports with `pvcRef`. Pure. */
import type { PodStats, Summary } from '../../api/node/stats.ts'
import type { Pod } from '../../api/pod.ts'
import { claimsOfPod } from '../../api/storage/pod-claims.ts'
import type { VolumeFigures } from './volume-metrics.ts'

/** `figures`: as they were measured last. A claim that was not measured, or is outside of the pool, is left out. */
export function withClaims(
  summary: Summary,
  pods: readonly Pod[],
  { pool, volumes }: VolumeFigures,
  time: string,
): Summary {
  if (pool === undefined || volumes.length === 0) return summary
  const used = new Map(volumes.map(({ claim, usedBytes }) => [claim, usedBytes]))
  const byUID = new Map(pods.map((pod) => [pod.metadata.uid, pod]))
  const { capacityBytes, availableBytes } = pool
  const claimsIn = (pod: Pod): NonNullable<PodStats['volume']> =>
    claimsOfPod(pod).flatMap(({ name, volume }) => {
      const { namespace = 'default' } = pod.metadata
      const usedBytes = used.get(`${namespace}/${name}`)
      if (usedBytes === undefined) return []
      return [{ time, name: volume, usedBytes, capacityBytes, availableBytes, pvcRef: { name, namespace } }]
    })
  return {
    ...summary,
    pods: summary.pods.map((stats) => {
      const pod = byUID.get(stats.podRef.uid)
      const claims = pod === undefined ? [] : claimsIn(pod)
      return claims.length === 0 ? stats : { ...stats, volume: [...(stats.volume ?? []), ...claims] }
    }),
  }
}

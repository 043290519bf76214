/** The volumes of the pool for Prometheus: under the kubelet's names, and the pool under our own. Pure. */
import type { PoolUsage } from '../../api/storage/volume-messages.ts'
import { gauge, type MetricFamily } from '../../daemon/prometheus-text.ts'

export type VolumeFigures = {
  /** undefined: the pool is missing, or was not read yet. */
  readonly pool: PoolUsage | undefined
  /** `claim`: `namespace/name`. */
  readonly volumes: readonly { readonly claim: string; readonly usedBytes: number }[]
}

/** The size of a claim is not enforced: the capacity is that of the pool's file system, as with the kubelet for a folder. */
export function* volumeMetrics({ pool, volumes }: VolumeFigures): Iterable<MetricFamily> {
  if (pool === undefined) return
  const ofPool = (value: number) => [{ labels: { pool: pool.id }, value }]
  const ofEach = (value: (usedBytes: number) => number) =>
    volumes.map(({ claim, usedBytes }) => {
      const [namespace = '', name = ''] = claim.split('/')
      return { labels: { namespace, persistentvolumeclaim: name }, value: value(usedBytes) }
    })
  yield gauge(
    'kubelet_volume_stats_capacity_bytes',
    'Size of the file system of the volume.',
    ofEach(() => pool.capacityBytes),
  )
  yield gauge(
    'kubelet_volume_stats_available_bytes',
    'Space that is free in it.',
    ofEach(() => pool.availableBytes),
  )
  yield gauge(
    'kubelet_volume_stats_used_bytes',
    'Size of the files of the volume.',
    ofEach((usedBytes) => usedBytes),
  )
  yield gauge('bramble_pool_capacity_bytes', 'Size of the file system of the pool.', ofPool(pool.capacityBytes))
  yield gauge('bramble_pool_available_bytes', 'Space that is free in it.', ofPool(pool.availableBytes))
  yield gauge('bramble_pool_trash_volumes', 'Volumes in the trash of the pool.', ofPool(pool.inTrash ?? 0))
}

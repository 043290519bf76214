/** The volumes of the pools for Prometheus: under the kubelet's names, and the pools under our own. Pure. */
import type { PoolUsage, TrashedVolume } from '../../api/storage/volume-messages.ts'
import { gauge, type MetricFamily } from '../../daemon/prometheus-text.ts'

export type VolumeFigures = {
  /** Empty: they are missing, or were not read yet. */
  readonly pools: readonly PoolUsage[]
  /** `claim`: `namespace/name`. `pool`: the id of its pool. */
  readonly volumes: readonly { readonly claim: string; readonly pool: string; readonly usedBytes: number }[]
  readonly trash: readonly Pick<TrashedVolume, 'pool' | 'usedBytes'>[]
}

/** The size of a claim is not enforced: the capacity is that of the pool's file system, as with the kubelet for a folder. */
export function* volumeMetrics({ pools, volumes, trash }: VolumeFigures): Iterable<MetricFamily> {
  if (pools.length === 0) return
  const byID = new Map(pools.map((pool) => [pool.id, pool]))
  const ofPools = (value: (pool: PoolUsage) => number) =>
    pools.map((pool) => ({ labels: { pool: pool.id }, value: value(pool) }))
  const ofEach = (value: (usedBytes: number, pool: PoolUsage) => number) =>
    volumes.flatMap(({ claim, pool: id, usedBytes }) => {
      const pool = byID.get(id)
      const [namespace = '', name = ''] = claim.split('/')
      const labels = { namespace, persistentvolumeclaim: name }
      return pool === undefined ? [] : [{ labels, value: value(usedBytes, pool) }]
    })
  yield gauge(
    'kubelet_volume_stats_capacity_bytes',
    'Size of the file system of the volume.',
    ofEach((_, { capacityBytes }) => capacityBytes),
  )
  yield gauge(
    'kubelet_volume_stats_available_bytes',
    'Space that is free in it.',
    ofEach((_, { availableBytes }) => availableBytes),
  )
  yield gauge(
    'kubelet_volume_stats_used_bytes',
    'Size of the files of the volume.',
    ofEach((usedBytes) => usedBytes),
  )
  yield gauge(
    'bramble_pool_capacity_bytes',
    'Size of the file system of the pool.',
    ofPools(({ capacityBytes }) => capacityBytes),
  )
  yield gauge(
    'bramble_pool_available_bytes',
    'Space that is free in it.',
    ofPools(({ availableBytes }) => availableBytes),
  )
  yield gauge(
    'bramble_pool_trash_volumes',
    'Volumes in the trash of the pool.',
    ofPools(({ inTrash = 0 }) => inTrash),
  )
  const trashBytes = new Map<string, number>()
  for (const { pool, usedBytes = 0 } of trash) trashBytes.set(pool, (trashBytes.get(pool) ?? 0) + usedBytes)
  yield gauge(
    'bramble_pool_trash_bytes',
    'Size of the volumes in its trash, as far as they were measured.',
    ofPools(({ id }) => trashBytes.get(id) ?? 0),
  )
}

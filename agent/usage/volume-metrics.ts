/** The volumes of the pools and of CSI drivers for Prometheus: under the kubelet's names, and the pools under our own. Pure. */
import type { PoolUsage, TrashedVolume } from '../../api/storage/volume-messages.ts'
import { gauge, type MetricFamily } from '../../daemon/prometheus-text.ts'

export type VolumeFigures = {
  /** Empty: they are missing, or were not read yet. */
  readonly pools: readonly PoolUsage[]
  /** `claim`: `namespace/name`. `pool`: the id of its pool. */
  readonly volumes: readonly { readonly claim: string; readonly pool: string; readonly usedBytes: number }[]
  readonly trash: readonly Pick<TrashedVolume, 'pool' | 'usedBytes'>[]
  readonly drivers?: readonly DriverVolume[]
}

type Amounts = { readonly available: number; readonly total: number; readonly used: number }

/** What a CSI driver states about the volume of a pod. */
export type DriverVolume = {
  readonly podUID: string
  /** The name of the PersistentVolume; of an inline volume, that in the pod. */
  readonly volume: string
  /** `namespace/name`; undefined: it is inline. */
  readonly claim?: string
  readonly bytes?: Amounts
  readonly inodes?: Amounts
  readonly condition?: { readonly abnormal: boolean; readonly message: string }
}

/** The size of a claim is not enforced in a pool: the capacity is that of the pool's file system, as with the kubelet for a folder. */
export function* volumeMetrics(figures: VolumeFigures): Iterable<MetricFamily> {
  const { pools, trash, drivers = [] } = figures
  if (pools.length === 0 && drivers.length === 0) return
  const claims = [...claimsInPools(figures), ...claimsOfDrivers(drivers)]
  const ofEach = (value: (claim: ClaimFigures) => number | undefined) =>
    claims.flatMap((claim) => {
      const [namespace = '', name = ''] = claim.claim.split('/')
      const found = value(claim)
      return found === undefined ? [] : [{ labels: { namespace, persistentvolumeclaim: name }, value: found }]
    })
  const family = (name: string, help: string, value: (claim: ClaimFigures) => number | undefined) =>
    gauge(`kubelet_volume_stats_${name}`, help, ofEach(value))
  yield family('capacity_bytes', 'Size of the file system of the volume.', ({ bytes }) => bytes?.total)
  yield family('available_bytes', 'Space that is free in it.', ({ bytes }) => bytes?.available)
  yield family('used_bytes', 'Size of the files of the volume.', ({ bytes }) => bytes?.used)
  if (drivers.length > 0) {
    yield family('inodes', 'Inodes of the volume.', ({ inodes }) => inodes?.total)
    yield family('inodes_free', 'Inodes that are free in it.', ({ inodes }) => inodes?.available)
    yield family('inodes_used', 'Inodes of the files of the volume.', ({ inodes }) => inodes?.used)
    yield family(
      'health_status_abnormal',
      'Whether its driver states that something is wrong with it.',
      (claim) => claim.condition && (claim.condition.abnormal ? 1 : 0),
    )
  }
  if (pools.length > 0) yield* poolMetrics(pools, trash)
}

type ClaimFigures = Pick<DriverVolume, 'bytes' | 'inodes' | 'condition'> & { readonly claim: string }

function claimsInPools({ pools, volumes }: Pick<VolumeFigures, 'pools' | 'volumes'>): readonly ClaimFigures[] {
  const byID = new Map(pools.map((pool) => [pool.id, pool]))
  return volumes.flatMap(({ claim, pool: id, usedBytes: used }) => {
    const pool = byID.get(id)
    return pool === undefined
      ? []
      : [{ claim, bytes: { total: pool.capacityBytes, available: pool.availableBytes, used } }]
  })
}

/** Each claim once, also where several pods have it. */
function claimsOfDrivers(drivers: readonly DriverVolume[]): readonly ClaimFigures[] {
  const byClaim = new Map(
    drivers.flatMap(({ claim, ...one }) => (claim === undefined ? [] : [[claim, { claim, ...one }] as const])),
  )
  return [...byClaim.values()]
}

function* poolMetrics(pools: readonly PoolUsage[], trash: VolumeFigures['trash']): Iterable<MetricFamily> {
  const ofPools = (value: (pool: PoolUsage) => number) =>
    pools.map((pool) => ({ labels: { pool: pool.id }, value: value(pool) }))
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

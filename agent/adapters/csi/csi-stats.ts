/**
 * Loop: what drivers state once a minute about the volumes that pods have: how full they are, and whether something is wrong with them
 * (pkg/volume/csi/csi_metrics.go, pkg/kubelet/server/stats/volume_stat_calculator.go).
 */
import type { Clock } from '../../../daemon/clock.ts'
import type { Log } from '../../../daemon/log.ts'
import type { Loop } from '../../../daemon/run.ts'
import type { VolumeEvents } from '../../pods/volumes/csi/volume-events.ts'
import type { DriverVolume } from '../../usage/volume-metrics.ts'
import type { RegisteredDriver } from './csi-calls.ts'
import type { CsiRecords, PublishedVolume } from './csi-records.ts'

export type CsiStatsNeeds = {
  readonly records: Pick<CsiRecords, 'published' | 'targetOf' | 'stagingOf'>
  readonly hasDrivers: () => boolean
  readonly driver: (name: string) => RegisteredDriver | undefined
  readonly events: Pick<VolumeEvents, 'ofPod'>
  readonly clock: Clock
  readonly log: Log
}

export interface CsiStatsLoop extends Loop {
  /** As they were read last. */
  measured(): readonly DriverVolume[]
}

type Reading = { readonly volume: PublishedVolume; readonly stats: DriverVolume }
type Readings = { readonly found: readonly Reading[]; readonly failedDriver?: string }

/** As the kubelet (volumeStatsAggPeriod). */
const everyMs = 60_000

export function csiStats({ records, hasDrivers, driver, events, clock, log }: CsiStatsNeeds): CsiStatsLoop {
  let measured: readonly DriverVolume[] = []
  /** By pod and volume: the last message. */
  let abnormal: ReadonlyMap<string, string> = new Map()
  let failures: ReadonlySet<string> = new Set()

  const read = async (volume: PublishedVolume): Promise<DriverVolume | undefined> => {
    const found = driver(volume.driver)
    if (found === undefined || !found.capabilities.hasStats) return undefined
    const { client, capabilities } = found
    const { condition, ...figures } = await client.stats({
      ...{ volumeId: volume.handle, volumePath: records.targetOf(volume) },
      ...(capabilities.stages && !volume.isInline && { stagingTargetPath: records.stagingOf(volume) }),
    })
    const { podUID, claim } = volume
    return {
      ...{ podUID, volume: volume.volume, ...figures },
      ...(claim !== undefined && { claim }),
      ...(capabilities.hasCondition && condition !== undefined && { condition }),
    }
  }

  const notify = (volumes: readonly Reading[]) => {
    const now = new Map<string, string>()
    for (const { volume, stats } of volumes) {
      if (!stats.condition?.abnormal) continue
      const { message } = stats.condition
      const key = keyOf(volume)
      now.set(key, message)
      if (abnormal.get(key) === message || volume.pod === undefined) continue
      const [namespace = '', name = ''] = volume.pod.split('/')
      const event = { type: 'Warning' as const, reason: 'VolumeConditionAbnormal' }
      events.ofPod(
        { namespace, name, uid: volume.podUID },
        { ...event, message: `Volume ${volume.volume}: ${message}` },
      )
    }
    abnormal = now
  }

  /** Those of one driver, up to the first that fails. */
  const readInTurn = async (volumes: readonly PublishedVolume[]): Promise<Readings> => {
    const found: Reading[] = []
    for (const volume of volumes) {
      try {
        const stats = await read(volume)
        if (stats !== undefined) found.push({ volume, stats })
      } catch (error) {
        if (!failures.has(volume.driver)) log.warn('Figures of a volume not read', { ...volume, error })
        return { found, failedDriver: volume.driver }
      }
    }
    return { found }
  }

  /** Drivers are asked side by side, the volumes of one after another: one that hangs has only its own figures missing. */
  const round = async () => {
    const byDriver = new Map<string, PublishedVolume[]>()
    for (const volume of await records.published())
      byDriver.set(volume.driver, [...(byDriver.get(volume.driver) ?? []), volume])
    const rounds = await Promise.all([...byDriver.values()].map(readInTurn))
    const found = rounds.flatMap((one) => one.found)
    measured = found.map(({ stats }) => stats)
    failures = new Set(rounds.flatMap(({ failedDriver }) => failedDriver ?? []))
    notify(found)
  }

  return {
    name: 'csi-stats',
    measured: () => measured,
    async run(signal) {
      while (!signal.aborted) {
        await clock.sleep(everyMs, signal)
        // Most machines have no driver, and read nothing.
        if (signal.aborted || (!hasDrivers() && measured.length === 0)) continue
        await round().catch((error: unknown) => log.warn('Figures of volumes not read', { error }))
      }
    },
  }
}

function keyOf({ podUID, volume }: PublishedVolume): string {
  return `${podUID}/${volume}`
}

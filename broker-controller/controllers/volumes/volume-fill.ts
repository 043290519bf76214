/** Loop: records Events of claims and nodes whose volumes and pools fill up, from what nodes report. */
import { labelledPools, reportedPools } from '../../../api/storage/pools.ts'
import { poolOfVolume } from '../../../api/storage/volume-place.ts'
import { type Reconciled, runController } from '../../../daemon/controller.ts'
import { type Loop, runLoops } from '../../../daemon/run.ts'
import { workQueue } from '../../../daemon/work-queue.ts'
import type { EventRecorder } from '../../store/event-recorder.ts'
import { type InformerNeeds, informer, keyText } from '../../store/informer.ts'
import { nodeReference } from '../../store/references.ts'
import type { StoredObject } from '../../store/store.ts'
import type { StorageBoard } from '../../usage/storage-board.ts'
import { fillLevel, poolFillEvent, poolPercent, volumeFillEvent, volumePercent } from './fill-level.ts'
import type { StoredVolume } from './volume-index.ts'

export type VolumeFillNeeds = InformerNeeds & {
  readonly events: EventRecorder
  readonly storage: Pick<StorageBoard, 'reportOf' | 'onReport'>
}

const component = 'volume-fill'
const mostNamed = 3

export function volumeFill(needs: VolumeFillNeeds): Loop {
  const { clock, log, events, storage } = needs
  const queue = workQueue(clock)
  const byUID = new Map<string, StoredVolume>()
  /** What was recorded last, by the uid of a volume or the id of a pool. */
  const recorded = new Map<string, number>()
  const volumes = informer(needs, 'persistentvolumes', (present, previous) => {
    const { uid = '' } = (present ?? previous)?.metadata ?? {}
    if (present === undefined) {
      byUID.delete(uid)
      recorded.delete(uid)
    } else if (poolOfVolume(present) !== undefined) byUID.set(uid, present)
  })
  const nodes = informer(needs, 'nodes', () => undefined)
  storage.onReport((node) => queue.add(node))

  const rises = (kind: 'volume' | 'pool', key: string, percent: number): boolean => {
    const before = recorded.get(key) ?? 0
    const level = fillLevel(kind, percent, before)
    if (level === 0) recorded.delete(key)
    else recorded.set(key, level)
    return level > before
  }

  const recordPools = async (
    node: StoredObject<'nodes'>,
    pools: ReadonlyMap<string, PoolUsage>,
    used: readonly UsedVolume[],
  ) => {
    const { name } = node.metadata
    for (const [id, usage] of pools) {
      const percent = poolPercent(usage)
      if (!rises('pool', id, percent)) continue
      const largest = used
        .filter(({ pool }) => pool === id)
        .sort((a, b) => b.usedBytes - a.usedBytes)
        .slice(0, mostNamed)
        .map(({ volume, usedBytes }) => ({ claim: keyText(volume.spec?.claimRef ?? {}), usedBytes }))
      const path = reportedPools(node).find((pool) => pool.id === id)?.path
      const event = poolFillEvent({ ...usage, path }, percent, largest)
      await events.record({ object: nodeReference(name), component, ...event })
    }
  }
  const reconcile = async (name: string): Promise<Reconciled> => {
    for (const source of [volumes, nodes]) source.catchUp()
    const node = nodes.get({ namespace: '', name })
    const report = storage.reportOf(name)
    if (node === undefined || report === undefined) return undefined
    // A node is believed about its own pools only.
    const own = new Set(labelledPools(node))
    const pools = new Map(report.pools.filter(({ id }) => own.has(id)).map((pool) => [pool.id, pool]))
    const used = report.volumes.flatMap(({ uid, usedBytes }) => usedIn(own, byUID.get(uid), usedBytes))
    for (const { volume, pool, usedBytes } of used) {
      const { capacity: { storage: capacity = '0' } = {}, claimRef } = volume.spec ?? {}
      const percent = volumePercent(usedBytes, String(capacity))
      if (claimRef === undefined || !rises('volume', volume.metadata.uid, percent)) continue
      const usage = pools.get(pool)
      const event = volumeFillEvent(percent, String(capacity), usage && poolPercent(usage))
      await events.record({
        object: { ...claimRef, kind: 'PersistentVolumeClaim', apiVersion: 'v1' },
        component,
        ...event,
      })
    }
    await recordPools(node, pools, used)
    return undefined
  }

  return {
    name: 'volume-fill',
    run: (signal) =>
      runLoops(
        [
          { name: 'volumes', run: volumes.run },
          { name: 'nodes', run: nodes.run },
          {
            name: 'work',
            async run(stop) {
              await Promise.all([volumes.listed, nodes.listed])
              if (!stop.aborted) await runController({ name: 'volume-fill', reconcile }, queue, log, stop)
            },
          },
        ],
        signal,
        log,
      ),
  }
}

type PoolUsage = Parameters<typeof poolPercent>[0] & Parameters<typeof poolFillEvent>[0]
type UsedVolume = { readonly volume: StoredVolume; readonly pool: string; readonly usedBytes: number }

/** None: the volume is not in one of these pools. */
function usedIn(
  pools: ReadonlySet<string>,
  volume: StoredVolume | undefined,
  usedBytes: number,
): readonly UsedVolume[] {
  const pool = volume && poolOfVolume(volume)
  return volume !== undefined && pool !== undefined && pools.has(pool) ? [{ volume, pool, usedBytes }] : []
}

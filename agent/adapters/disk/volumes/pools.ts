/** The pools of this machine: those of the configuration, or the one of the data directory. */
import { createHash } from 'node:crypto'
import { join } from 'node:path'
import type { NodeVolumeOrder } from '../../../../api/storage/volume-messages.ts'
import { messageOf } from '../../../../daemon/errors.ts'
import type { ConfiguredPool, PoolPlace } from '../../../pods/volumes/pool-settings.ts'
import { VolumeError } from '../../../pods/volumes/volume-store.ts'
import type { PoolState } from '../../../pods/volumes/volume-trash.ts'
import { diskAttachment } from './disk-attachment.ts'
import { type PoolSource, type PoolVolume, type VolumePool, volumePool } from './pool.ts'
import type { PoolFiles } from './pool-files.ts'

export interface VolumePools {
  /** Opens all, and gives each with its state, always in the same order. */
  open(): Promise<readonly OpenedPool[]>
  /** Throws VolumeError if this machine does not have the pool, or it is missing. */
  withID(id: string): Promise<VolumePool>
  /** Where the volume is in its pool. Makes its folder if it was never made; throws VolumeError if it is missing. */
  folder(volume: PoolVolume): Promise<string>
  /** Moves the folder of the volume to the trash of its pool. Throws VolumeError if it must not be. */
  discard(order: NodeVolumeOrder): Promise<void>
}

export type OpenedPool = { readonly pool: VolumePool; readonly state: PoolState }

export type PoolFolders = {
  /** Without links. */
  readonly dataDirectory: string
  /** Disks are mounted in `PATH.disks`: it goes with a boot, as they do. */
  readonly memoryDirectory: string
}

export function volumePools(
  configured: readonly ConfiguredPool[],
  folders: PoolFolders,
  files: PoolFiles,
): VolumePools {
  const sources = configured.map((one) => configuredSource(one, folders))
  const inData = dataPool(folders.dataDirectory)
  const hasData = sources.some(({ path }) => path === inData.path)
  const pools = sources.map((source) => volumePool(source, files))
  // Volumes that were made there before others were configured stay usable.
  const earlier = hasData ? undefined : volumePool({ ...inData, isDefault: configured.length === 0 }, files)

  const all = async (): Promise<readonly VolumePool[]> => {
    const isKept = configured.length === 0 || (await earlier?.remembered().catch(() => undefined))?.isUsed === true
    return earlier !== undefined && isKept ? [...pools, earlier] : pools
  }

  const open = async (): Promise<readonly OpenedPool[]> => {
    const opened: OpenedPool[] = []
    /** Where the pool of each id is. A pool that is missing keeps its own: another disk with it is a copy. */
    const places = new Map<string | undefined, string>()
    for (const pool of await all()) {
      const state = await stateOf(pool)
      const id = await idOf(pool, state)
      const other = places.get(id)
      if (id !== undefined && other === undefined) places.set(id, pool.source.path)
      // The disk that was mounted in the data directory is now configured.
      if (pool === earlier && 'missing' in state && other !== undefined) continue
      const { path, name } = pool.source
      const missing = `${path} has the identity of the pool at ${other}: one is a copy of the other`
      const isCopy = 'id' in state && other !== undefined
      opened.push({ pool, state: isCopy ? { ...(name !== undefined && { name }), missing } : state })
    }
    return opened
  }

  const withID = async (id: string): Promise<VolumePool> => {
    const opened = await open()
    const found = opened.find(({ state }) => 'id' in state && state.id === id)
    if (found !== undefined) return found.pool
    for (const { pool, state } of opened) {
      const isIt = opened.length === 1 || (await pool.remembered().catch(() => undefined))?.id === id
      if (isIt && 'missing' in state) throw new VolumeError(state.missing)
    }
    const present = opened.flatMap(({ state }) => ('id' in state ? [state.id] : []))
    const others =
      present.length > 1
        ? `the pools ${present.join(', ')}`
        : present.length === 1
          ? `the pool ${present[0]}`
          : 'no pool now'
    throw new VolumeError(`the pool ${id} is not on this machine, which has ${others}`)
  }

  return {
    open,
    withID,
    folder: async (volume) => (await withID(volume.pool)).folder(volume),
    discard: async (order) => (await withID(order.pool)).discard(order),
  }
}

/** The folder `volumes` in the data directory, or the disk that is mounted there. */
export function dataPool(dataDirectory: string): PoolSource {
  const [path, memory] = [join(dataDirectory, 'volumes'), join(dataDirectory, 'pool.json')]
  return { path, memory, isDefault: true, isMade: true }
}

function configuredSource({ name, place, reserve, isDefault }: ConfiguredPool, folders: PoolFolders): PoolSource {
  const { dataDirectory, memoryDirectory } = folders
  const inData = dataPool(dataDirectory)
  const own = { name, isDefault, reserve }
  if ('path' in place && place.path === inData.path) return { ...inData, ...own }
  const memory = join(dataDirectory, 'pools', `${nameOfPlace(place)}.json`)
  if ('path' in place) return { ...own, path: place.path, memory, isMade: false }
  const path = join(`${memoryDirectory}.disks`, place.disk)
  return { ...own, path, memory, isMade: false, attach: diskAttachment({ uuid: place.disk, path }) }
}

/** By its place, not its name: the disk that was there is remembered also if the pool is called otherwise. */
function nameOfPlace(place: PoolPlace): string {
  return 'disk' in place ? place.disk : createHash('sha256').update(place.path).digest('hex').slice(0, 12)
}

async function stateOf(pool: VolumePool): Promise<PoolState> {
  try {
    return await pool.open()
  } catch (error) {
    const { name } = pool.source
    return { ...(name !== undefined && { name }), missing: messageOf(error) }
  }
}

/** Its identity, which the node remembers of a pool that is missing. */
async function idOf(pool: VolumePool, state: PoolState): Promise<string | undefined> {
  return 'id' in state ? state.id : (await pool.remembered().catch(() => undefined))?.id
}

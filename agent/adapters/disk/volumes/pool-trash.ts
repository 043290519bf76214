/**
 * The trash of a pool: `.bramble/trash/UID` has the folder of a volume as `data`, and in `volume.json` what it was. A folder gets there by a
 * rename, and by that alone: one step in the same file system.
 */
import { join } from 'node:path'
import { decode } from '../../../../api/decode.ts'
import { type Described, integer, object, optional, text } from '../../../../api/schema.ts'
import { usualTrashSeconds } from '../../../../api/storage/trash-time.ts'
import type { NodeVolumeOrder } from '../../../../api/storage/volume-messages.ts'
import { parseJson } from '../../../../api/text/json.ts'
import { codeOf, isMissing } from '../../../../daemon/errors.ts'
import { VolumeError } from '../../../pods/volumes/volume-store.ts'
import { nextRemoval, otherVolume, type Room, type VolumeRecord } from '../../../pods/volumes/volume-trash.ts'
import type { PoolFiles } from './pool-files.ts'
import { safeFileName, type VolumeRecords, volumeRecords } from './volume-records.ts'

const DiscardedSchema = object({
  uid: text,
  volume: text,
  folder: text,
  claim: optional(text),
  claimUID: optional(text),
  capacity: optional(text),
  storageClass: optional(text),
  keepSeconds: optional(integer),
  /** For so long it was in the trash while the agent ran: a date may be wrong. */
  keptSeconds: integer,
})
export type Discarded = Described<typeof DiscardedSchema>

export interface PoolTrash {
  /** Throws VolumeError where the folder is not, or cannot be proven to be, that of the volume and its claim. */
  discard(order: NodeVolumeOrder): Promise<void>
  has(uid: string): Promise<boolean>
  /** Where the data of an entry is. */
  dataOf(uid: string): string
  /** Moves the folder of this name back from the trash, by a rename; false: it is not there. */
  restore(folder: string): Promise<boolean>
  list(): Promise<readonly Discarded[]>
  /** Removes what is old, and the oldest while the pool is full. */
  age(elapsedMs: number, room: () => Promise<Room | undefined>, signal: AbortSignal): Promise<void>
}

/** `path`: of the pool. */
export function poolTrash(path: string, files: PoolFiles): PoolTrash {
  const own = join(path, '.bramble')
  const folder = join(own, 'trash')
  const records = volumeRecords(own, files)
  const entryOf = (uid: string) => join(folder, safeFileName(uid))
  const isThere = (at: string) =>
    files.found(at).then(
      () => true,
      () => false,
    )
  const saveEntry = (discarded: Discarded) =>
    files.replace(join(entryOf(discarded.uid), 'volume.json'), `${JSON.stringify(discarded)}\n`)

  const readEntry = async (uid: string): Promise<Discarded> => {
    const found = await files.read(join(entryOf(uid), 'volume.json')).catch(() => '')
    const discarded = decode(DiscardedSchema, parseJson(found))
    // Without what it was it is kept as long as the others.
    return discarded.ok ? { ...discarded.value, uid } : { uid, volume: '', folder: '', keptSeconds: 0 }
  }
  const list = async () => {
    const names = await files.names(folder).catch((error: unknown): readonly string[] => {
      if (isMissing(error)) return []
      throw error
    })
    return await Promise.all(names.filter((name) => /^[\w-]{1,128}$/.test(name)).map(readEntry))
  }

  const move = async (order: NodeVolumeOrder, from: string) => {
    const { kind: _, pool: __, ...kept } = order
    const { uid } = order
    const entry = entryOf(uid)
    await files.makeFolder(folder)
    await files.makeFolder(entry)
    await saveEntry({ ...kept, keptSeconds: 0 })
    try {
      await files.rename(from, join(entry, 'data'))
    } catch (error) {
      if (!(await isThere(join(entry, 'data')))) await files.removeFolder(entry)
      // EXDEV, EBUSY: something is mounted there. It is never copied.
      throw new VolumeError(`${from} cannot be moved to the trash of its pool: ${codeOf(error)}`, { cause: error })
    }
    await files.sync(path)
    await files.sync(entry)
  }

  return {
    list,
    dataOf: (uid) => join(entryOf(uid), 'data'),
    has: (uid) => isThere(entryOf(uid)),
    async discard(order) {
      const from = join(path, order.folder)
      const record = await recordOfOrder(records, order)
      const found = await files.found(from).catch((error: unknown) => {
        if (isMissing(error)) return undefined
        throw new VolumeError(`${from} cannot be read: ${codeOf(error)}`, { cause: error })
      })
      if (found !== undefined) {
        if (!found.isFolder) throw new VolumeError(`${from} is not a folder`)
        if (record !== undefined) await move(order, from)
        else await removeEmpty(from, files)
      }
      if (record !== undefined) await records.remove(record.uid)
    },
    async restore(name) {
      for (const { uid, folder: was } of await list()) {
        const data = join(entryOf(uid), 'data')
        if (was !== name || !(await isThere(data))) continue
        await files.rename(data, join(path, name))
        await files.sync(path)
        await files.removeFolder(entryOf(uid))
        return true
      }
      return false
    },
    async age(elapsedMs, room, signal) {
      let entries = await list()
      for (const entry of elapsedMs > 0 ? entries : []) {
        signal.throwIfAborted()
        await saveEntry({ ...entry, keptSeconds: entry.keptSeconds + Math.round(elapsedMs / 1000) })
      }
      if (elapsedMs > 0) entries = await list()
      for (;;) {
        const kept = entries.map(({ uid, keptSeconds, keepSeconds = usualTrashSeconds }) => {
          return { id: uid, keptMs: keptSeconds * 1000, keepMs: keepSeconds * 1000 }
        })
        const next = nextRemoval(kept, entries.length === 0 ? undefined : await room())
        if (next === undefined) return
        // By another name: a half of it is not restored. What it was goes last.
        const removing = join(entryOf(next), 'removing')
        await files.rename(join(entryOf(next), 'data'), removing).catch((error: unknown) => {
          if (!isMissing(error)) throw error
        })
        await files.removeFolder(removing, signal)
        await files.removeFolder(entryOf(next))
        entries = entries.filter(({ uid }) => uid !== next)
      }
    },
  }
}

/** A power cut came between the folder and its record: no pod has had it. */
async function removeEmpty(folder: string, files: PoolFiles): Promise<void> {
  await files.removeEmptyFolder(folder).catch((cause: unknown) => {
    throw new VolumeError(`${folder} has files, and no record of the pool names its volume`, { cause })
  })
}

/** That of the volume; or, if no pod has mounted this PersistentVolume, that of the one before it, of the same claim. */
async function recordOfOrder(records: VolumeRecords, order: NodeVolumeOrder): Promise<VolumeRecord | undefined> {
  const own = await records.read(order.uid)
  const other = await records.ofFolder(order.folder, order.uid)
  if (own !== undefined && other !== undefined) {
    throw new VolumeError(`the volume ${other.uid} of the claim ${other.claim} has the same folder`)
  }
  const isUnclear = own === undefined && other !== undefined && order.claimUID === undefined
  const record = own ?? other
  const because = isUnclear ? `its folder is that of the volume ${other.uid}` : record && otherVolume(record, order)
  if (because !== undefined) throw new VolumeError(because)
  return record
}

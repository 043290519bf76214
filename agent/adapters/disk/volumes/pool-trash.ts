/**
 * The trash of a pool: `.bramble/trash/UID` has the folder of a volume as `data`, and in `volume.json` what it was. A folder gets there by a
 * rename, and by that alone: one step in the same file system.
 */
import { lstat, readdir, readFile, rename, rm, rmdir } from 'node:fs/promises'
import { join } from 'node:path'
import { decode } from '../../../../api/decode.ts'
import { type Described, integer, object, optional, text } from '../../../../api/schema.ts'
import { usualTrashSeconds } from '../../../../api/storage/trash-time.ts'
import type { NodeVolumeOrder } from '../../../../api/storage/volume-messages.ts'
import { parseJson } from '../../../../api/text/json.ts'
import { makeFolder, replaceFile, syncFolder } from '../../../../daemon/durable-file.ts'
import { codeOf, isMissing } from '../../../../daemon/errors.ts'
import { VolumeError } from '../../../pods/volumes/volume-store.ts'
import { nextRemoval, otherVolume, type Room, type VolumeRecord } from '../../../pods/volumes/volume-trash.ts'
import { removeFolder } from '../folder-removal.ts'
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
export function poolTrash(path: string): PoolTrash {
  const own = join(path, '.bramble')
  const folder = join(own, 'trash')
  const records = volumeRecords(own)
  const entryOf = (uid: string) => join(folder, safeFileName(uid))
  const saveEntry = (discarded: Discarded) =>
    replaceFile(join(entryOf(discarded.uid), 'volume.json'), `${JSON.stringify(discarded)}\n`)

  const readEntry = async (uid: string): Promise<Discarded> => {
    const found = await readFile(join(entryOf(uid), 'volume.json'), 'utf8').catch(() => '')
    const discarded = decode(DiscardedSchema, parseJson(found))
    // Without what it was it is kept as long as the others.
    return discarded.ok ? { ...discarded.value, uid } : { uid, volume: '', folder: '', keptSeconds: 0 }
  }
  const list = async () => {
    const names = await readdir(folder).catch((error: unknown): string[] => {
      if (isMissing(error)) return []
      throw error
    })
    return await Promise.all(names.filter((name) => /^[\w-]{1,128}$/.test(name)).map(readEntry))
  }

  const move = async (order: NodeVolumeOrder, from: string) => {
    const { kind: _, pool: __, ...kept } = order
    const { uid } = order
    const entry = entryOf(uid)
    await makeFolder(folder)
    await makeFolder(entry)
    await saveEntry({ ...kept, keptSeconds: 0 })
    try {
      await rename(from, join(entry, 'data'))
    } catch (error) {
      const data = await lstat(join(entry, 'data')).catch(() => undefined)
      if (data === undefined) await rm(entry, { recursive: true, force: true })
      // EXDEV, EBUSY: something is mounted there. It is never copied.
      throw new VolumeError(`${from} cannot be moved to the trash of its pool: ${codeOf(error)}`, { cause: error })
    }
    await syncFolder(path)
    await syncFolder(entry)
  }

  return {
    list,
    dataOf: (uid) => join(entryOf(uid), 'data'),
    has: async (uid) => (await lstat(entryOf(uid)).catch(() => undefined)) !== undefined,
    async discard(order) {
      const from = join(path, order.folder)
      const record = await recordOfOrder(records, order)
      const found = await lstat(from).catch((error: unknown) => {
        if (isMissing(error)) return undefined
        throw new VolumeError(`${from} cannot be read: ${codeOf(error)}`, { cause: error })
      })
      if (found !== undefined) {
        if (!found.isDirectory()) throw new VolumeError(`${from} is not a folder`)
        if (record !== undefined) await move(order, from)
        else await removeEmpty(from)
      }
      if (record !== undefined) await records.remove(record.uid)
    },
    async restore(name) {
      for (const { uid, folder: was } of await list()) {
        const data = join(entryOf(uid), 'data')
        if (was !== name || (await lstat(data).catch(() => undefined)) === undefined) continue
        await rename(data, join(path, name))
        await syncFolder(path)
        await rm(entryOf(uid), { recursive: true, force: true })
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
        await rename(join(entryOf(next), 'data'), removing).catch((error: unknown) => {
          if (!isMissing(error)) throw error
        })
        await removeFolder(removing, signal)
        await rm(entryOf(next), { recursive: true, force: true })
        entries = entries.filter(({ uid }) => uid !== next)
      }
    },
  }
}

/** A power cut came between the folder and its record: no pod has had it. */
async function removeEmpty(folder: string): Promise<void> {
  await rmdir(folder).catch((cause: unknown) => {
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

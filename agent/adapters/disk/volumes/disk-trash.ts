/** VolumeTrash on the pool of this machine. */
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { decode } from '../../../../api/decode.ts'
import { list, object, text } from '../../../../api/schema.ts'
import type { Pool } from '../../../../api/storage/pools.ts'
import type { NodeVolumeOrder } from '../../../../api/storage/volume-messages.ts'
import { parseJson } from '../../../../api/text/json.ts'
import { replaceFile } from '../../../../daemon/durable-file.ts'
import { isMissing, messageOf } from '../../../../daemon/errors.ts'
import type { CountedVolume, KnownStores, PoolState, VolumeTrash } from '../../../pods/volumes/volume-trash.ts'
import { type FilesystemUsage, filesystemUsage } from '../filesystem-usage.ts'
import { type FolderCounter, folderCounter } from '../folder-usage.ts'
import type { VolumePool } from './pool.ts'
import { poolTrash } from './pool-trash.ts'
import { trashContents } from './trash-contents.ts'
import { volumeRecords } from './volume-records.ts'

export type DiskTrashNeeds = {
  readonly pool: Pick<VolumePool, 'open'>
  /** Refuses while a pod has the volume. */
  readonly discard: (order: NodeVolumeOrder) => Promise<void>
  readonly usage?: FilesystemUsage
  readonly counter?: FolderCounter
}

export function diskTrash({
  pool,
  discard,
  usage = filesystemUsage(),
  counter = folderCounter(),
}: DiskTrashNeeds): VolumeTrash {
  /** By uid, in the order in which they were counted. */
  const counted = new Map<string, Omit<CountedVolume, 'uid'>>()
  let state: PoolState | undefined
  const opened = async (): Promise<Pool | undefined> => {
    try {
      const found = await pool.open()
      state = found
      return found
    } catch (error) {
      state = { missing: messageOf(error) }
      return undefined
    }
  }
  const contents = trashContents(counter)
  const countNext = async (path: string) => {
    const records = volumeRecords(join(path, '.bramble'))
    const uids = await records.uids()
    for (const uid of counted.keys()) if (!uids.includes(uid)) counted.delete(uid)
    const next = uids.find((uid) => !counted.has(uid)) ?? counted.keys().next().value
    const record = next === undefined ? undefined : await records.read(next)
    if (next === undefined || record === undefined) return
    const { folder, claim } = record
    const filled = folder === undefined ? undefined : await counter.usage(join(path, folder))
    const before = counted.get(next)
    counted.delete(next)
    counted.set(next, { claim, usedBytes: filled?.usedBytes ?? before?.usedBytes ?? 0 })
  }
  return {
    discard,
    poolState: () => state,
    async isEmpty() {
      const found = await opened()
      if (found === undefined) return false
      const [made, thrown] = [
        await volumeRecords(join(found.path, '.bramble')).uids(),
        await poolTrash(found.path).list(),
      ]
      return made.length + thrown.length === 0
    },
    async age(elapsedMs, signal) {
      const found = await opened()
      if (found !== undefined) await poolTrash(found.path).age(elapsedMs, () => usage(found.path), signal)
    },
    async poolUsage() {
      const found = await opened()
      const read = found && (await usage(found.path))
      if (found === undefined || read === undefined) return undefined
      const inTrash = (await poolTrash(found.path).list()).length
      const { capacityBytes, availableBytes } = read
      return { id: found.id, capacityBytes, availableBytes, ...(inTrash > 0 && { inTrash }) }
    },
    async trashed() {
      const found = await opened()
      return found === undefined ? [] : await contents.read(found)
    },
    async volumeUsage() {
      const found = await opened()
      if (found === undefined) return []
      await countNext(found.path)
      return [...counted].map(([uid, one]) => ({ uid, ...one })).sort((a, b) => (a.uid < b.uid ? -1 : 1))
    },
  }
}

const KnownSchema = object({ known: list(text) })

/** In a file of the data directory. */
export function knownStores(dataDirectory: string): KnownStores {
  const path = join(dataDirectory, 'stores.json')
  return {
    async load() {
      const found = await readFile(path, 'utf8').catch((error: unknown) => {
        if (isMissing(error)) return undefined
        throw error
      })
      const saved = found === undefined ? undefined : decode(KnownSchema, parseJson(found))
      // Damaged: every store is a stranger for a while.
      return saved?.ok ? saved.value.known : []
    },
    save: (known) => replaceFile(path, `${JSON.stringify({ known })}\n`),
  }
}

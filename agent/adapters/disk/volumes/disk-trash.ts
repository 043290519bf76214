/** VolumeTrash on the pools of this machine. */
import { join } from 'node:path'
import { decode } from '../../../../api/decode.ts'
import { list, object, text } from '../../../../api/schema.ts'
import type { Pool } from '../../../../api/storage/pools.ts'
import { mostTrashed, type NodeVolumeOrder } from '../../../../api/storage/volume-messages.ts'
import { parseJson } from '../../../../api/text/json.ts'
import { isMissing } from '../../../../daemon/errors.ts'
import {
  type CountedVolume,
  type KnownStores,
  type PoolState,
  type Room,
  staysFull,
  type VolumeTrash,
} from '../../../pods/volumes/volume-trash.ts'
import { type FilesystemUsage, filesystemUsage } from '../filesystem-usage.ts'
import { type FolderCounter, folderCounter } from '../folder-usage.ts'
import { mountableShares } from '../shares/share-mounter.ts'
import type { VolumePool } from './pool.ts'
import type { PoolFiles } from './pool-files.ts'
import type { VolumePools } from './pools.ts'
import { type TrashContents, trashContents } from './trash-contents.ts'

export type DiskTrashNeeds = {
  readonly pools: Pick<VolumePools, 'open'>
  /** Refuses while a pod has the volume. */
  readonly discard: (order: NodeVolumeOrder) => Promise<void>
  readonly usage?: FilesystemUsage
  readonly counter?: Pick<FolderCounter, 'usage'>
  /** The kinds of shares that this machine can mount. */
  readonly shareKinds?: VolumeTrash['shareKinds']
}

/** A pool that is there. */
type Present = { readonly state: Pool; readonly pool: VolumePool }

export function diskTrash({
  pools,
  discard,
  usage = filesystemUsage(),
  counter = folderCounter(),
  shareKinds = mountableShares,
}: DiskTrashNeeds): VolumeTrash {
  let states: readonly PoolState[] = []
  /** By the id of the pool. */
  const counts = new Map<string, VolumeCount>()
  const contents = new Map<string, TrashContents>()

  const roomOf = async ({ state, pool }: Present): Promise<Room | undefined> => {
    const { reserve } = pool.source
    const read = await usage(state.path)
    return read && { capacityBytes: read.capacityBytes, availableBytes: read.availableBytes, reserve }
  }
  const opened = async (): Promise<{ readonly present: readonly Present[]; readonly areAll: boolean }> => {
    const found = await pools.open()
    const before = new Map(states.flatMap((state) => ('id' in state ? [[state.id, state]] : [])))
    // Whether a pool is full is read once a minute.
    states = found.map(({ state }) => {
      const isFull = 'id' in state && before.get(state.id)?.full === true
      return isFull ? { ...state, full: true } : state
    })
    const present = found.flatMap(({ pool, state }) => ('id' in state ? [{ state, pool }] : []))
    return { present, areAll: present.length === found.length }
  }
  const each = async <T>(read: (one: Present) => Promise<readonly T[]>): Promise<readonly T[]> => {
    const all: T[] = []
    for (const one of (await opened()).present) all.push(...(await read(one)))
    return all
  }
  return {
    discard,
    shareKinds,
    poolStates: () => states,
    async isEmpty() {
      const { present, areAll } = await opened()
      for (const { pool } of present) if (!(await isUnused(pool))) return false
      return areAll
    },
    async age(elapsedMs, signal) {
      for (const one of (await opened()).present) await one.pool.trash.age(elapsedMs, () => roomOf(one), signal)
    },
    poolUsage: () =>
      each(async (one) => {
        const { id } = one.state
        const room = await roomOf(one)
        if (room === undefined) return []
        const inTrash = (await one.pool.trash.list()).length
        const wasFull = states.some((state) => 'id' in state && state.id === id && state.full === true)
        const full = staysFull(wasFull, room)
        states = states.map((state) => ('id' in state && state.id === id ? withFull(state, full) : state))
        const { capacityBytes, availableBytes } = room
        return [{ id, capacityBytes, availableBytes, ...(inTrash > 0 && { inTrash }) }]
      }),
    async trashed() {
      const all = await each(async ({ state: { id }, pool }) => {
        const own = contents.get(id) ?? trashContents(counter)
        contents.set(id, own)
        return await own.read(id, pool.trash)
      })
      return [...all].sort((a, b) => a.keptSeconds - b.keptSeconds || (a.uid < b.uid ? -1 : 1)).slice(0, mostTrashed)
    },
    async volumeUsage() {
      const all = await each(async (one) => {
        const { id } = one.state
        const own = counts.get(id) ?? volumeCount(counter)
        counts.set(id, own)
        return await own(one)
      })
      return [...all].sort((a, b) => (a.uid < b.uid ? -1 : 1))
    },
  }
}

async function isUnused({ records, trash }: VolumePool): Promise<boolean> {
  const made = await records.uids()
  const thrown = await trash.list()
  return made.length + thrown.length === 0
}

function withFull({ full: _, ...pool }: Pool, isFull: boolean): Pool {
  return isFull ? { ...pool, full: true } : pool
}

/** Counts one volume of a pool at each call, the one that was counted least recently. Gives all that were counted. */
type VolumeCount = (one: Present) => Promise<readonly CountedVolume[]>

function volumeCount(counter: Pick<FolderCounter, 'usage'>): VolumeCount {
  /** By uid, in the order in which they were counted. */
  const counted = new Map<string, Omit<CountedVolume, 'uid'>>()
  return async ({ state: { id, path }, pool: { records } }) => {
    const uids = await records.uids()
    for (const uid of counted.keys()) if (!uids.includes(uid)) counted.delete(uid)
    const next = uids.find((uid) => !counted.has(uid)) ?? counted.keys().next().value
    const record = next === undefined ? undefined : await records.read(next)
    if (next !== undefined && record !== undefined) {
      const { folder, claim } = record
      const filled = folder === undefined ? undefined : await counter.usage(join(path, folder))
      const before = counted.get(next)
      counted.delete(next)
      counted.set(next, { claim, pool: id, usedBytes: filled?.usedBytes ?? before?.usedBytes ?? 0 })
    }
    return [...counted].map(([uid, one]) => ({ uid, ...one }))
  }
}

const KnownSchema = object({ known: list(text) })

/** In a file of the data directory. */
export function knownStores(dataDirectory: string, files: Pick<PoolFiles, 'read' | 'replace'>): KnownStores {
  const path = join(dataDirectory, 'stores.json')
  return {
    async load() {
      const found = await files.read(path).catch((error: unknown) => {
        if (isMissing(error)) return undefined
        throw error
      })
      const saved = found === undefined ? undefined : decode(KnownSchema, parseJson(found))
      // Damaged: every store is a stranger for a while.
      return saved?.ok ? saved.value.known : []
    },
    save: (known) => files.replace(path, `${JSON.stringify({ known })}\n`),
  }
}

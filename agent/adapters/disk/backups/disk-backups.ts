/** VolumeBackups on the pool of this machine and on folders of it. */
import { lstat, readdir, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { readManifest } from '../../../../api/backups/backup-manifest.ts'
import { backupKeep, removable } from '../../../../api/backups/backup-retention.ts'
import type { BackupRestore } from '../../../../api/backups/backup-sessions.ts'
import { makeFolder } from '../../../../daemon/durable-file.ts'
import { isMissing } from '../../../../daemon/errors.ts'
import { shareUser } from '../../../pods/volumes/share-mount.ts'
import type { FolderOfBackups, IncomingBackup, Pieces, VolumeBackups } from '../../../pods/volumes/volume-backups.ts'
import { VolumeError } from '../../../pods/volumes/volume-store.ts'
import type { Room } from '../../../pods/volumes/volume-trash.ts'
import { filesystemUsage } from '../filesystem-usage.ts'
import type { ShareMounter } from '../shares/share-mounter.ts'
import { folderOfVolume, isOutOfSpace, noRoom, roomProblem, syncFilesystem } from '../volumes/pool-places.ts'
import type { VolumePools } from '../volumes/pools.ts'
import { receiveCopy, sendCopy } from '../volumes/volume-copy.ts'
import { safeFileName } from '../volumes/volume-records.ts'
import { type BackupFolder, backupFolder } from './backup-folder.ts'
import { compressing, decompressed } from './compressed-pieces.ts'

export type DiskBackupsNeeds = {
  readonly pools: Pick<VolumePools, 'withID'>
  readonly room?: (path: string) => Promise<Room | undefined>
  /** What was written there is on the disk. */
  readonly flush?: (folder: string) => Promise<void>
  /** Mounts a folder of a NAS for the time of a session. */
  readonly shares?: Pick<ShareMounter, 'hold'>
}

/** The free space is read so often while data comes. */
const roomBytes = 64 * 2 ** 20
const cleanMs = 60_000

export function diskBackups({
  pools,
  room = filesystemUsage(),
  flush = syncFilesystem,
  shares = noShares,
}: DiskBackupsNeeds): VolumeBackups {
  /** One at a time for each volume: they share names of files. */
  const busy = new Set<string>()
  const alone = async <T>(uid: string, act: () => Promise<T>): Promise<T> => {
    if (busy.has(uid)) throw new VolumeError('another backup of the volume has not ended yet')
    busy.add(uid)
    return await act().finally(() => busy.delete(uid))
  }

  return {
    read: (wanted, send, signal) =>
      alone(wanted.uid, async () => {
        const pool = await pools.withID(wanted.pool)
        const { moves, source } = pool
        const folder = await folderOfVolume(pool, wanted)
        const { uid, id, since, held } = wanted
        if (held !== undefined && (await moves.held(uid))?.id !== held)
          throw new VolumeError('the volume is not held: a pod may have it')
        const snapshots = snapshotsIn(source.path, uid)
        if (since !== undefined && !(await snapshots.has(since)))
          throw new VolumeError(`the pool has no list of the files of the backup ${since}`)
        const snapshot = await snapshots.file(id)
        let contentBytes = 0
        await compressing(send, async (write) => {
          const counted = async (piece: Buffer) => {
            contentBytes += piece.length
            await write(piece)
          }
          const earlier = since && (await snapshots.file(since))
          await sendCopy({ folder, since: earlier, snapshot, isLive: held === undefined }, counted, signal)
        })
        // The next one has the changes since the one with everything.
        await snapshots.keep(since ?? id)
        return contentBytes
      }),
    store: (wanted, incoming, signal) =>
      alone(`to ${wanted.uid}`, () =>
        inFolder({ ...wanted, isMade: true }, shares, (folderOf) => stored(wanted, folderOf, incoming, signal)),
      ),
    list: (wanted, send, signal) =>
      inFolder(wanted, shares, async (folderOf) => {
        for (const { text } of await folderOf(signal).list()) await send(Buffer.from(`${text}\n`))
      }),
    fetch: (wanted, send, signal) => inFolder(wanted, shares, (folderOf) => folderOf(signal).fetch(wanted.name, send)),
    restore: (wanted, next, signal) =>
      alone(wanted.uid, () => restoreInto({ pools, room, flush }, wanted, next, signal)),
  }
}

/** What is done in the folder ends with the signal. */
type FolderOf = (signal: AbortSignal) => BackupFolder

const noShares: Pick<ShareMounter, 'hold'> = {
  hold: async () => {
    throw new VolumeError('this machine mounts no shares')
  },
}

/** A folder of a NAS is mounted as long as the work lasts. `isMade`: it is made on its share if it is not there. */
async function inFolder<T>(
  { path, nas, isMade = false }: FolderOfBackups & { readonly isMade?: boolean },
  shares: Pick<ShareMounter, 'hold'>,
  work: (folderOf: FolderOf) => Promise<T>,
): Promise<T> {
  if (nas === undefined) return await work((signal) => backupFolder(path, signal))
  const { secret: _, root, ...share } = nas.share
  const user = nas.secret && shareUser(definedOnly(nas.secret))
  if (user !== undefined && 'ok' in user) throw new VolumeError(user.message)
  const held = await shares.hold({ ...share, ...(isMade && root !== undefined && { root }), ...(user && { user }) })
  try {
    return await work((signal) => backupFolder(path, signal, held.path))
  } finally {
    await held.release()
  }
}

function definedOnly(data: { readonly [key: string]: string | undefined }): { readonly [key: string]: string } {
  return Object.fromEntries(
    Object.entries(data).flatMap(([key, value]) => (value === undefined ? [] : [[key, value] as const])),
  )
}

async function stored(
  { path, mark, uid, id, name, base, keep }: Parameters<VolumeBackups['store']>[0],
  folderOf: FolderOf,
  incoming: IncomingBackup,
  signal: AbortSignal,
): Promise<readonly string[]> {
  const folder = folderOf(signal)
  const part = { uid, id }
  const found = await folder.open(mark)
  if (base !== undefined && (await folder.manifest(base)) === undefined)
    throw new VolumeError(`the backup ${base}, of which this one has the changes, is not in ${path}`)
  const before = await folder.manifest(name)
  await incoming.opened(found, before?.text.trim())
  // The controller ended before it knew.
  if (before !== undefined) return []
  const manifest = await (async () => {
    await folder.write(part, incoming.next)
    const text = await incoming.manifest()
    const value = readManifest(name, text)
    if (value === undefined) throw new VolumeError('the manifest of the backup cannot be read')
    await folder.seal(part, { text, value })
    return value
  })().catch(async (error: unknown) => {
    await dropped(folderOf, part)
    throw error
  })
  const kept = keep === undefined ? undefined : backupKeep(keep)
  if (kept === undefined || 'problem' in kept) return []
  const all = (await folder.list()).map((one) => one.manifest)
  const own = all.filter(({ claim, recipient }) => claim === manifest.claim && recipient === manifest.recipient)
  const names = removable(own, kept, manifest.name)
  if (names.length > 0) await folder.remove(names)
  return names
}

/** Also after `signal` has aborted. What is left then goes with the next attempt. */
async function dropped(folderOf: FolderOf, part: Parameters<BackupFolder['drop']>[0]): Promise<void> {
  await folderOf(AbortSignal.timeout(cleanMs))
    .drop(part)
    .catch(() => undefined)
}

type Restoring = Required<Omit<DiskBackupsNeeds, 'shares'>>

async function restoreInto(
  { pools, room, flush }: Restoring,
  wanted: BackupRestore,
  next: Pieces,
  signal: AbortSignal,
): Promise<void> {
  const { uid, id, archives, contentBytes } = wanted
  const pool = await pools.withID(wanted.pool)
  const { records, moves } = pool
  const { path } = pool.source
  if ((await records.read(uid))?.folder === wanted.folder) {
    // It was made before: a folder that is missing now is not made again.
    await folderOfVolume(pool, wanted)
    return
  }
  const checkRoom = async (bytes: number) => {
    const problem = await roomProblem({ ...pool.source, id: wanted.pool }, room, bytes)
    if (problem !== undefined) throw new VolumeError(problem)
  }
  const keep = () => moves.keep({ kind: 'keep', volume: '', ...wanted }, id)
  // An agent was killed when all data was here.
  if ((await moves.received(uid, id)) !== undefined) return await keep()
  const taken = await lstat(join(path, wanted.folder)).catch(() => undefined)
  if (taken !== undefined) throw new VolumeError(`${join(path, wanted.folder)} is there, and is not from the backup`)
  await checkRoom(contentBytes)
  await pool.use()
  // What an agent that was killed has left.
  await moves.remove(uid)
  const data = await moves.incoming(uid, id)
  try {
    const bytes = await extracted({ data, pool: wanted.pool, checkRoom }, { archives, contentBytes, next }, signal)
    await flush(data)
    await moves.saveReceived(uid, id, { round: archives, files: 0, bytes, digest: '' })
  } catch (error) {
    await moves.remove(uid)
    throw error
  }
  await keep()
}

type Extracting = {
  readonly data: string
  readonly pool: string
  readonly checkRoom: (bytes: number) => Promise<void>
}

/** One archive over the other. Gives how much data they had. */
async function extracted(
  { data, pool, checkRoom }: Extracting,
  { archives, contentBytes, next }: Pick<BackupRestore, 'archives' | 'contentBytes'> & { readonly next: Pieces },
  signal: AbortSignal,
): Promise<number> {
  let unchecked = 0
  let bytes = 0
  for (let archive = 0; archive < archives; archive++) {
    const plain = decompressed(next, contentBytes - bytes)
    try {
      const counted = async () => {
        const piece = await plain.next()
        bytes += piece?.length ?? 0
        unchecked += piece?.length ?? 0
        if (unchecked >= roomBytes) {
          unchecked = 0
          await checkRoom(0)
        }
        return piece
      }
      await receiveCopy(data, counted, signal)
      // What is behind its end belongs to no other archive.
      for (let rest = await counted(); rest !== undefined; rest = await counted());
    } catch (error) {
      throw isOutOfSpace(error) ? new VolumeError(noRoom(pool), { cause: error }) : error
    } finally {
      plain.end()
    }
  }
  return bytes
}

/** Where tar notes what a backup had, beside the data: it is lost with it, and then everything is read. */
function snapshotsIn(path: string, uid: string) {
  const folder = join(path, '.bramble', 'backups')
  const prefix = `${safeFileName(uid)}.`
  const names = async () => {
    const all = await readdir(folder).catch((error: unknown): string[] => {
      if (isMissing(error)) return []
      throw error
    })
    return all.filter((name) => name.startsWith(prefix))
  }
  const nameOf = (id: string) => `${prefix}${safeFileName(id)}.snapshot`
  return {
    has: async (id: string) => (await names()).includes(nameOf(id)),
    async file(id: string): Promise<string> {
      await makeFolder(folder)
      return join(folder, nameOf(id))
    },
    /** The others go. */
    async keep(id: string): Promise<void> {
      for (const name of await names()) if (name !== nameOf(id)) await rm(join(folder, name), { force: true })
    },
  }
}

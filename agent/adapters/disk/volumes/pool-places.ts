/** The folders of volumes in the pool of this machine, and whether the pool has space for more. */
import { lstat } from 'node:fs/promises'
import { join } from 'node:path'
import { messageOf } from '../../../../daemon/errors.ts'
import { VolumeError } from '../../../pods/volumes/volume-store.ts'
import { isFull, otherVolume, type Room } from '../../../pods/volumes/volume-trash.ts'
import { runBounded } from '../remote/bounded-child.ts'
import type { PoolSource, VolumePool } from './pool.ts'

/** A folder in a pool, and which volume is to be there. */
export type PlaceInPool = {
  readonly uid: string
  readonly pool: string
  readonly folder: string
  readonly claim?: string
  readonly claimUID?: string
}

const syncMs = 30 * 60_000

/** It is the one that the pool has noted for the volume. */
export async function folderOfVolume({ source, records }: VolumePool, place: PlaceInPool): Promise<string> {
  const folder = join(source.path, place.folder)
  const record = await records.read(place.uid)
  const other = record && otherVolume(record, place)
  if (other !== undefined) throw new VolumeError(other)
  const found = await lstat(folder).catch(() => undefined)
  if (found?.isDirectory() !== true) throw new VolumeError(`the folder ${folder} does not exist`)
  return folder
}

/** undefined: with so many bytes more it is not full. */
export async function roomProblem(
  { id, path, reserve }: Pick<PoolSource, 'path' | 'reserve'> & { readonly id: string },
  room: (path: string) => Promise<Room | undefined>,
  bytes: number,
): Promise<string | undefined> {
  const found = await room(path)
  if (found === undefined) return undefined
  return isFull({ ...found, availableBytes: found.availableBytes - bytes, reserve }) ? noRoom(id) : undefined
}

export function noRoom(pool: string): string {
  return `the pool ${pool} has not enough free space`
}

export function isOutOfSpace(error: unknown): boolean {
  return /No space left on device|Disk quota exceeded/.test(messageOf(error))
}

export async function syncFilesystem(folder: string): Promise<void> {
  const { code, stderr } = await runBounded({
    key: `sync ${folder}`,
    command: ['sync', '-f', folder],
    deadlineMs: syncMs,
  })
  if (code !== 0) throw new VolumeError(`sync of ${folder} failed: ${stderr.trim()}`)
}

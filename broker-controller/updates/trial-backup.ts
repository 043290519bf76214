/** The backup of a controller before a version is put on trial, and whether the version can use its store. */
import { open, rename, rm, stat, statfs } from 'node:fs/promises'
import { join } from 'node:path'
import { syncFolder } from '../../daemon/durable-file.ts'
import type { ReleaseManifest } from '../../daemon/updates/release-manifest.ts'
import { storeFileName } from '../data-directory/data-directory.ts'

export const trialBackupName = 'before-trial.backup'

export type TrialBackupNeeds = {
  readonly dataDir: string
  /** The folder of the updates: the backup is written there. */
  readonly folder: string
  /** Writes a verified backup to a path where nothing is. */
  readonly backUp: (path: string) => Promise<void>
  /** Free bytes where a path is. Default: as the system reports them. */
  readonly freeBytes?: (path: string) => Promise<number>
}

/**
 * Makes the backup, and refuses a release that cannot use the format of the store in it. It replaces that of an earlier trial. Nothing is
 * done for a store in etcd. Throws with the reason if the trial must not begin.
 */
export async function backUpBeforeTrial(manifest: ReleaseManifest, needs: TrialBackupNeeds): Promise<void> {
  const { dataDir, folder, backUp, freeBytes = freeBytesOf } = needs
  const store = join(dataDir, storeFileName)
  const size = await sizeOf(store)
  if (size === undefined) return
  const needed = 2 * (size + ((await sizeOf(`${store}-wal`)) ?? 0))
  for (const place of [dataDir, folder]) {
    const free = await freeBytes(place)
    if (free < needed)
      throw new Error(
        `The backup before the trial needs ${mebibytes(needed)} MiB, and ${place} has ${mebibytes(free)} free`,
      )
  }
  const made = join(folder, `${trialBackupName}.new`)
  try {
    await rm(made, { force: true })
    await backUp(made)
    const refusal = formatRefusal(manifest, await formatOf(made))
    if (refusal !== undefined) throw new Error(refusal)
    await rename(made, join(folder, trialBackupName))
    await syncFolder(folder)
  } finally {
    await rm(made, { force: true })
  }
}

/** Why a version cannot run on trial on a store of this format; undefined: it can. */
export function formatRefusal(
  { version, storeFormats = [] }: Pick<ReleaseManifest, 'version' | 'storeFormats'>,
  format: number,
): string | undefined {
  if (storeFormats.includes(format)) return undefined
  const used = storeFormats.length === 0 ? 'names none' : `uses ${storeFormats.join(' and ')}`
  return `The store has format ${format}, and version ${version} ${used}: install a release between them first, or upgrade the package with apt`
}

/** SQLite's file format: the header has the user version at offset 60, with the first byte the highest. */
const userVersionOffset = 60

async function formatOf(backup: string): Promise<number> {
  const file = await open(backup, 'r')
  try {
    const { buffer } = await file.read(Buffer.alloc(4), 0, 4, userVersionOffset)
    return buffer.readUInt32BE()
  } finally {
    await file.close()
  }
}

async function sizeOf(path: string): Promise<number | undefined> {
  return (await stat(path).catch(() => undefined))?.size
}

async function freeBytesOf(path: string): Promise<number> {
  const { bavail, bsize } = await statfs(path)
  return bavail * bsize
}

function mebibytes(bytes: number): number {
  return Math.ceil(bytes / 2 ** 20)
}

/**
 * What a copy of a volume consists of: numbers and a digest, to compare both ends of a move. The order of the entries does not matter. Contents are
 * read once: a file whose time of change (ctime) and size are the same has the same content.
 */
import { createHash } from 'node:crypto'
import { type BigIntStats, constants, type Dir } from 'node:fs'
import { type FileHandle, lstat, open, readlink } from 'node:fs/promises'
import type { CopyResult } from '../../../../api/storage/volume-messages.ts'
import { VolumeError } from '../../../pods/volumes/volume-store.ts'
import { entryOf, mountOf, openEntries, openFolder, printedName, readEntries } from '../open-folders.ts'

/** Hashes of contents, by file and the time of its last change. */
export type KnownContents = {
  readonly hashes: Map<string, string>
  /**
   * Only of files whose last change (ctime, in ms) is older. Of others a program may change pages in memory (mmap) that are not on the disk yet, and
   * the time does not show it: files must be flushed after this time, and two ticks of the clock later.
   */
  readonly beforeMs: number
}

/** A level holds two descriptors. */
const mostLevels = 128
/** 100 bytes each: the contents of other files are read again. */
const mostKnown = 50_000
const pieceBytes = 64 * 1024
const modulus = 2n ** 256n

/** `path`: without links. Sockets are not copied, and do not count. */
export async function copyResult(
  path: string,
  round: number,
  { hashes, beforeMs }: KnownContents,
  signal: AbortSignal,
): Promise<CopyResult> {
  const sum = { files: 0, bytes: 0, digest: 0n }
  const add = (entry: readonly unknown[]) => {
    const hash = createHash('sha256').update(JSON.stringify(entry)).digest('hex')
    sum.digest = (sum.digest + BigInt(`0x${hash}`)) % modulus
  }
  const top = await openFolder(path)
  const mount = await mountOf(top)
  const levels: Level[] = [await levelOf(top, '')]
  add(['', 'folder', ...ownership(await top.stat({ bigint: true }))])
  try {
    for (let level = levels.at(-1); level !== undefined; level = levels.at(-1)) {
      signal.throwIfAborted()
      const folder = level.folders.pop()
      if (folder !== undefined) await enter(level, folder)
      else if (!(await readSome(level))) {
        levels.pop()
        await close(level)
      }
    }
  } finally {
    for (const level of levels) await close(level)
  }
  return { round, files: sum.files, bytes: sum.bytes, digest: sum.digest.toString(16) }

  /** What is mounted in it is not part of the volume. */
  async function enter({ handle, name: above }: Level, folder: string): Promise<void> {
    if (levels.length >= mostLevels)
      throw new VolumeError(`the volume has folders more than ${mostLevels} levels deep: ${printedName(folder)}`)
    const below = await openFolder(entryOf(handle, folder))
    const isSame = (await mountOf(below)) === mount
    add([`${above}/${folder}`, 'folder', ...ownership(await below.stat({ bigint: true }))])
    if (isSame) levels.push(await levelOf(below, `${above}/${folder}`))
    else await below.close()
  }

  /** Resolves with false when all entries of the folder were read. */
  async function readSome(level: Level): Promise<boolean> {
    const read = await readEntries(level.entries)
    for (const { name, isFolder } of read) {
      if (isFolder) level.folders.push(name)
      else await addEntry(level, name)
    }
    return read.length > 0
  }

  async function addEntry({ handle, name: above }: Level, name: string): Promise<void> {
    const path = entryOf(handle, name)
    const stat = await lstat(path, { bigint: true })
    const head = [`${above}/${name}`, ...ownership(stat)]
    if (stat.isSocket()) return
    sum.files += 1
    if (stat.isSymbolicLink()) return add([...head, 'link', (await readlink(path, 'latin1')).toString()])
    if (!stat.isFile()) return add([...head, 'other', Number(stat.mode), String(stat.rdev)])
    sum.bytes += Number(stat.size)
    add([...head, 'file', String(stat.size), String(stat.mtimeNs), await contentOf(path, stat)])
  }

  async function contentOf(path: Buffer, { dev, ino, ctimeNs, size }: BigIntStats): Promise<string> {
    const key = [dev, ino, ctimeNs, size].join(' ')
    const before = hashes.get(key)
    if (before !== undefined) return before
    const hash = createHash('sha256')
    const file = await open(path, constants.O_RDONLY | constants.O_NOFOLLOW)
    try {
      const piece = Buffer.allocUnsafe(pieceBytes)
      for (;;) {
        signal.throwIfAborted()
        const { bytesRead } = await file.read(piece, 0, pieceBytes)
        if (bytesRead === 0) break
        hash.update(piece.subarray(0, bytesRead))
      }
    } finally {
      await file.close()
    }
    const content = hash.digest('base64')
    if (hashes.size < mostKnown && Number(ctimeNs / 1_000_000n) < beforeMs) hashes.set(key, content)
    return content
  }
}

type Level = { readonly handle: FileHandle; readonly name: string; readonly entries: Dir; readonly folders: string[] }

async function levelOf(handle: FileHandle, name: string): Promise<Level> {
  return { handle, name, entries: await openEntries(handle), folders: [] }
}

async function close({ entries, handle }: Level): Promise<void> {
  await entries.close()
  await handle.close()
}

function ownership({ mode, uid, gid }: BigIntStats): readonly number[] {
  return [Number(mode) & 0o7777, Number(uid), Number(gid)]
}

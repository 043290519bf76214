/**
 * The archive that an installed version was unpacked from, read from its files: the same files give the same archive. Nothing of it is
 * written, and only pieces of it are in memory.
 */
import { createHash } from 'node:crypto'
import { archiveEnd, fileHeader, filePadding, mostArchiveFiles } from '../release-archive.ts'
import type { UpdateDisk } from '../update-disk.ts'

export interface InstalledArchive {
  /** In bytes. */
  readonly size: number
  /** At most `most` bytes, fewer at the end. Rejects if a file was changed meanwhile. */
  read(from: number, most: number): Promise<Uint8Array>
}

/** `leftOut`: paths in the folder that its archive does not have. */
export type InstalledVersion = { readonly folder: string; readonly leftOut: readonly string[] }

/** The base of a delta that every machine has: such a delta is the compressed archive. */
export const emptyArchive: InstalledArchive = { size: 0, read: async () => new Uint8Array() }

const pieceBytes = 64 * 1024

/** Rejects if the folder has a path that an archive cannot have, or too many files. */
export async function installedArchive(
  disk: UpdateDisk,
  { folder, leftOut }: InstalledVersion,
): Promise<InstalledArchive> {
  const paths = (await pathsIn(disk, folder, '')).filter((path) => !leftOut.includes(path)).sort()
  if (paths.length > mostArchiveFiles) throw new Error(`${folder} has more than ${mostArchiveFiles} files`)
  const sections: Section[] = []
  let size = 0
  const add = (length: number, read: Section['read']) => {
    sections.push({ from: size, to: size + length, read })
    size += length
  }
  const addBytes = (bytes: Uint8Array) => add(bytes.length, async (from, most) => bytes.subarray(from, from + most))
  for (const path of paths) {
    const file = await disk.fileOf(`${folder}/${path}`)
    if (file === undefined) throw new Error(`${folder}/${path} was removed meanwhile`)
    addBytes(fileHeader(path, file.size, file.isProgram))
    add(file.size, (from, most) => disk.readPart(`${folder}/${path}`, from, most))
    addBytes(filePadding(file.size))
  }
  addBytes(archiveEnd())
  return {
    size,
    async read(from, most) {
      const to = Math.min(size, from + most)
      const pieces: Uint8Array[] = []
      for (const section of sections.filter((one) => one.from < to && one.to > from)) {
        const begin = Math.max(from, section.from)
        const length = Math.min(to, section.to) - begin
        const piece = await section.read(begin - section.from, length)
        if (piece.length !== length) throw new Error(`A file in ${folder} was changed meanwhile`)
        pieces.push(piece)
      }
      return Buffer.concat(pieces)
    },
  }
}

/** A header, a file or what fills up its last block, by its place in the archive. */
type Section = {
  readonly from: number
  readonly to: number
  readonly read: (from: number, most: number) => Promise<Uint8Array>
}

async function pathsIn(disk: UpdateDisk, folder: string, within: string): Promise<readonly string[]> {
  const paths: string[] = []
  for (const name of await disk.list(`${folder}/${within}`.replace(/\/$/, ''))) {
    const path = `${within}${name}`
    const kind = await disk.kindOf(`${folder}/${path}`)
    if (kind === 'file') paths.push(path)
    else if (kind === 'folder') paths.push(...(await pathsIn(disk, folder, `${path}/`)))
  }
  return paths
}

/** SHA-256, in hexadecimal digits. */
export async function archiveDigest({ size, read }: InstalledArchive): Promise<string> {
  const hash = createHash('sha256')
  for (let from = 0; from < size; from += pieceBytes) hash.update(await read(from, pieceBytes))
  return hash.digest('hex')
}

/**
 * Texts in one file each, named by their hash: what does not change is written once. A file whose content does not fit its name is not
 * used.
 */
import { createHash } from 'node:crypto'
import { readdir, readFile, unlink } from 'node:fs/promises'
import { join } from 'node:path'
import { makeFolder, replaceFilesIn } from '../../../../daemon/durable-file.ts'

export interface ContentFolder {
  /** undefined: there is none with this hash, or it is damaged. */
  read(hash: string): Promise<string | undefined>
  /** Writes those that are not there. All of them are flushed once the promise has resolved. */
  add(texts: ReadonlyMap<string, string>): Promise<void>
  /** It was read or written, and is not written again. */
  has(hash: string): boolean
  /** Removes all others, and what a power cut left of them. */
  keepOnly(hashes: ReadonlySet<string>): Promise<void>
}

/** The name of its file. */
export function contentHash(text: string): string {
  return createHash('sha256').update(text).digest('hex').slice(0, 32)
}

/** `path`: created with the first content. Contents may be secret. */
export function contentFolder(path: string): ContentFolder {
  const sound = new Set<string>()
  return {
    async read(hash) {
      try {
        const text = await readFile(join(path, hash), 'utf8')
        if (contentHash(text) !== hash) return undefined
        sound.add(hash)
        return text
      } catch {
        return undefined // The caller decides what a content that cannot be read means.
      }
    },
    async add(texts) {
      const missing = [...texts].filter(([hash]) => !sound.has(hash))
      if (missing.length === 0) return
      await makeFolder(path)
      await replaceFilesIn(path, missing)
      for (const [hash] of missing) sound.add(hash)
    },
    has: (hash) => sound.has(hash),
    async keepOnly(hashes) {
      const names = await readdir(path).catch((): string[] => [])
      for (const name of names.filter((one) => !hashes.has(one))) {
        sound.delete(name)
        await unlink(join(path, name)).catch(() => undefined) // The next change tries again.
      }
    },
  }
}

/** A file with a secret, out of the world as far as a file can be. */
import { randomBytes } from 'node:crypto'
import { open, unlink } from 'node:fs/promises'
import { dirname } from 'node:path'
import { syncFolder } from '../../daemon/durable-file.ts'

/**
 * Overwritten in place, then removed. A card's controller may write the new bytes elsewhere and keep the old ones out of
 * sight, which no program can help: a secret that was on a card shall be short-lived.
 */
export async function shred(path: string): Promise<void> {
  const file = await open(path, 'r+')
  try {
    const { size } = await file.stat()
    await file.write(randomBytes(size), 0, size, 0)
    await file.sync()
  } finally {
    await file.close()
  }
  await unlink(path)
  // Some file systems of boot partitions cannot sync a folder; the file's own bytes are gone by then.
  await syncFolder(dirname(path)).catch(() => undefined)
}

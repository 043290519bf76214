/** How much is in a folder? Counted file by file, so it is bounded, and takes its time in threads, not in this one. */
import type { Stats } from 'node:fs'
import { lstat, opendir, statfs } from 'node:fs/promises'
import { join } from 'node:path'
import type { Filled } from '../usage/usage.ts'

const mostEntries = 100_000
const blockBytes = 512 // what st_blocks counts in, whatever the filesystem's own block is

/** Undefined when it is not there. What is mounted in it is not its own; a file of many names is counted once. */
export async function folderUsage(path: string, most = mostEntries): Promise<Filled | undefined> {
  const top = await lstat(path).catch(() => undefined)
  if (top === undefined) return undefined
  let usedBytes = 0
  let inodesUsed = 0
  const seen = new Set<number>()
  const add = (found: Stats) => {
    if (found.nlink > 1 && !found.isDirectory()) {
      if (seen.has(found.ino)) return
      seen.add(found.ino)
    }
    usedBytes += found.blocks * blockBytes
    inodesUsed++
  }
  add(top)
  const folders = top.isDirectory() ? [path] : []
  for (let folder = folders.pop(); folder !== undefined; folder = folders.pop()) {
    const entries = await opendir(folder).catch(() => undefined) // it went meanwhile
    if (entries === undefined) continue
    for await (const { name } of entries) {
      const found = await lstat(join(folder, name)).catch(() => undefined)
      if (found === undefined || found.dev !== top.dev) continue
      add(found)
      if (found.isDirectory()) folders.push(join(folder, name))
      if (inodesUsed >= most) return { usedBytes, inodesUsed, incomplete: true }
    }
  }
  return { usedBytes, inodesUsed }
}

/** Of a filesystem of its own: it knows. */
export async function mountUsage(path: string): Promise<Filled | undefined> {
  const stats = await statfs(path).catch(() => undefined)
  if (stats === undefined) return undefined
  return { usedBytes: (stats.blocks - stats.bfree) * stats.bsize, inodesUsed: stats.files - stats.ffree }
}

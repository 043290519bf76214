/** How much is in a folder? Counted file by file, so it is bounded, and takes its time in threads, not in this one. */
import type { Stats } from 'node:fs'
import { lstat, opendir, statfs } from 'node:fs/promises'
import { join } from 'node:path'
import type { Filled } from '../usage/usage.ts'

const mostEntries = 100_000
const together = 64
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
    for await (const names of namesIn(folder)) {
      const all = await Promise.all(names.map((name) => lstat(join(folder, name)).catch(() => undefined)))
      for (const [i, found] of all.entries()) {
        if (found === undefined || found.dev !== top.dev) continue
        if (inodesUsed >= most) return { usedBytes, inodesUsed, incomplete: true }
        add(found)
        if (found.isDirectory()) folders.push(join(folder, names[i] ?? ''))
      }
    }
  }
  return { usedBytes, inodesUsed }
}

/** Not one by one: to wait for each of them would cost more than to look. */
async function* namesIn(folder: string): AsyncIterable<readonly string[]> {
  const entries = await opendir(folder, { bufferSize: together }).catch(() => undefined) // it went meanwhile
  if (entries === undefined) return
  let names: string[] = []
  for await (const { name } of entries) {
    names.push(name)
    if (names.length < together) continue
    yield names
    names = []
  }
  if (names.length > 0) yield names
}

/** Of a filesystem of its own: it knows. */
export async function mountUsage(path: string): Promise<Filled | undefined> {
  const stats = await statfs(path).catch(() => undefined)
  if (stats === undefined) return undefined
  return { usedBytes: (stats.blocks - stats.bfree) * stats.bsize, inodesUsed: stats.files - stats.ffree }
}

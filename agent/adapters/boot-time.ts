/** How long this machine takes from power on to a connection: one number in a file, written when it is another. */
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { replaceFile } from '../../daemon/durable-file.ts'

export interface BootTime {
  /** Undefined until it was measured once. */
  readonly ms: number | undefined
  /** Nothing longer is believed. */
  readonly longestMs: number
  /** A card that takes no writes is no reason to fail. */
  measured(ms: number): Promise<void>
}

/** Who finds its controller later than this waited for something else. */
const longestMs = 15 * 60_000
/** Boots differ; a card need not know by how little. */
const changedBy = 0.25

export async function openBootTime(dataDirectory: string): Promise<BootTime> {
  const path = join(dataDirectory, 'boot-seconds')
  const text = await readFile(path, 'utf8').catch(() => '')
  const ms = /^\d{1,4}\n$/.test(text) ? Number(text) * 1000 : undefined
  return {
    ms,
    longestMs,
    async measured(tookMs) {
      if (tookMs > longestMs || (ms !== undefined && Math.abs(tookMs - ms) <= ms * changedBy)) return
      await replaceFile(path, `${Math.ceil(tookMs / 1000)}\n`).catch(() => undefined)
    },
  }
}

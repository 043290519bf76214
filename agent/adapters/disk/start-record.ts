/** Records the starts of the agent since the boot, one line each, in memory (`/run`), by the monotonic clock of the machine. */
import { mkdir, readFile, writeFile } from 'node:fs/promises'
import { dirname } from 'node:path'

const kept = 10

/** Beside the agent's own folder in memory. */
export function startsPath(memoryDirectory: string): string {
  return `${memoryDirectory}.starts`
}

/** In milliseconds since the boot; empty without a record. */
export async function readStarts(path: string): Promise<readonly number[]> {
  const lines = (await readFile(path, 'utf8').catch(() => '')).split('\n')
  return lines.filter((line) => /^\d+$/.test(line)).map(Number)
}

/** Records this start. Returns all starts in milliseconds since the boot; undefined if the file cannot be written. */
export async function recordStart(path: string, uptimeMs: number): Promise<readonly number[] | undefined> {
  try {
    await mkdir(dirname(path), { mode: 0o700 }).catch(() => undefined)
    const starts = [...(await readStarts(path)), Math.round(uptimeMs)].slice(-kept)
    await writeFile(path, `${starts.join('\n')}\n`)
    return starts
  } catch {
    return undefined
  }
}

/** When the agent was started since boot: a line each, in memory (`/run`), by the clock that starts with the machine. */
import { mkdir, readFile, writeFile } from 'node:fs/promises'
import { dirname } from 'node:path'

const kept = 10

/** Beside the folder in memory that an agent has for itself. */
export function startsPath(memoryDirectory: string): string {
  return `${memoryDirectory}.starts`
}

/** As milliseconds since boot; none where nothing is recorded. */
export async function readStarts(path: string): Promise<readonly number[]> {
  const lines = (await readFile(path, 'utf8').catch(() => '')).split('\n')
  return lines.filter((line) => /^\d+$/.test(line)).map(Number)
}

/** Records this start. Gives all of them as milliseconds since boot; undefined where nothing can be written. */
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

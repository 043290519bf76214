/** When the agent was started since boot: a line each, in memory (`/run`), by the clock that starts with the machine. */
import { mkdir, readFile, writeFile } from 'node:fs/promises'
import { dirname } from 'node:path'

const kept = 10

/** Puts this start on record. Gives all of them as milliseconds since boot; undefined where that cannot be remembered. */
export async function recordStart(path: string, uptimeMs: number): Promise<readonly number[] | undefined> {
  try {
    await mkdir(dirname(path), { mode: 0o700 }).catch(() => undefined)
    const before = (await readFile(path, 'utf8').catch(() => '')).split('\n').filter((line) => /^\d+$/.test(line))
    const starts = [...before.map(Number), Math.round(uptimeMs)].slice(-kept)
    await writeFile(path, `${starts.join('\n')}\n`)
    return starts
  } catch {
    return undefined
  }
}

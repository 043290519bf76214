/** The `openssl` command: what it makes of our certificates is what the rest of the world will. */
import { execFile } from 'node:child_process'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'

const run = promisify(execFile)

/** All its output, on both channels. Rejects with it when the command fails. */
export async function openssl(...args: readonly string[]): Promise<string> {
  const { stdout, stderr } = await run('openssl', [...args], { timeout: 20_000 })
  return stdout + stderr
}

/** A new empty folder, removed by `remove`. */
export async function temporaryFolder(): Promise<{ readonly path: string; remove(): Promise<void> }> {
  const path = await mkdtemp(join(tmpdir(), 'bramble-'))
  return { path, remove: () => rm(path, { recursive: true, force: true }) }
}

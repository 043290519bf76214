/** The platforms whose programs this machine runs: its own, and those with an emulator (binfmt_misc). */
import { readdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import {
  type Emulator,
  type Platform,
  platformOf,
  platformProblem,
  readEmulator,
  runsNatively,
} from '../../runtime/platforms.ts'

export type HostPlatformNeeds = {
  /** `/`, or a saved tree. */
  readonly root: string
  /** As `uname -m` prints it. */
  readonly machine: string
}

/** Why an image does not run; emulators are read for each call that needs them. */
export function hostPlatform({ root, machine }: HostPlatformNeeds) {
  const own = platformOf(machine)
  return async (image: string, of: Platform): Promise<string | undefined> =>
    runsNatively(of, own) ? undefined : platformProblem(image, of, own, await emulatorsOf(root))
}

async function emulatorsOf(root: string): Promise<readonly Emulator[]> {
  const folder = join(root, 'proc/sys/fs/binfmt_misc')
  const names = await readdir(folder).catch(() => [])
  const texts = names
    .filter((name) => name !== 'register' && name !== 'status')
    .map((name) => readFile(join(folder, name), 'utf8').catch(() => ''))
  return (await Promise.all(texts)).flatMap((text) => readEmulator(text) ?? [])
}

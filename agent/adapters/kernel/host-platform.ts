/** Which programs this machine runs: its own kind, and those the kernel hands to an emulator (binfmt_misc). */
import { readdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import {
  type Emulator,
  type Platform,
  platformOf,
  platformProblem,
  readEmulator,
  runsNatively,
} from '../../pods/runtime/platforms.ts'

export type HostPlatformNeeds = {
  /** `/`, or a saved tree. */
  readonly root: string
  /** As `uname -m` prints it. */
  readonly machine: string
}

/** What stands in the way of the image; emulators are read again each time one is needed. */
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

/** The files of a machine for the doctor, below a root folder: reads them, and applies the steps of a fix. */

import { access, chmod, mkdir, readdir, readFile, realpath, stat } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { replaceFile } from '../../../daemon/durable-file.ts'
import { isMissing } from '../../../daemon/errors.ts'
import type { FixStep } from '../doctor-finding.ts'
import type { MachineFiles } from '../sources.ts'

export function machineFiles(root: string): MachineFiles {
  return {
    async text(path) {
      try {
        return await readFile(join(root, path), 'utf8')
      } catch (cause) {
        if (isMissing(cause)) return undefined
        throw new Error(`Cannot read ${path}`, { cause })
      }
    },
    names: async (folder) => (await readdir(join(root, folder)).catch(() => [])).toSorted(),
    mode: (path) => modeOf(join(root, path)),
    has: (path) =>
      access(join(root, path)).then(
        () => true,
        (error: unknown) => !isMissing(error),
      ),
  }
}

/** Permission bits; undefined when the file does not exist or cannot be seen. */
export async function modeOf(path: string): Promise<number | undefined> {
  try {
    return (await stat(path)).mode & 0o7777
  } catch {
    return undefined
  }
}

/** Applies one step. Repeating a step changes nothing. Throws when the file is not the one that the step was made for. */
export async function fixFiles(root: string, step: Exclude<FixStep, { kind: 'reload-logind' }>): Promise<void> {
  const path = await linkedTo(join(root, step.path))
  if (step.kind === 'mode') {
    await chmod(path, step.mode)
    return
  }
  const there = await readFile(path, 'utf8').catch((cause) => {
    if (isMissing(cause)) return undefined
    throw new Error(`Cannot read ${step.path}`, { cause })
  })
  if (there === step.content) return
  if (there !== step.instead) throw new Error(`${step.path} was changed meanwhile`)
  if (there !== undefined && step.backup !== undefined) {
    const kept = join(root, step.backup)
    if ((await modeOf(kept)) === undefined) await replaceFile(kept, there, step.mode)
  }
  await mkdir(dirname(path), { recursive: true, mode: 0o755 })
  await replaceFile(path, step.content, step.mode)
}

/** Resolves a symbolic link, so that its target is replaced and the link stays. */
async function linkedTo(path: string): Promise<string> {
  return realpath(path).catch(() => path)
}

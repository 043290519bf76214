/** A machine's files for the doctor, below a root folder: looking, and putting right what it was allowed to. */

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

/** Permission bits; undefined when there is no such file, or it may not be seen. */
export async function modeOf(path: string): Promise<number | undefined> {
  try {
    return (await stat(path)).mode & 0o7777
  } catch {
    return undefined
  }
}

/** Each step does nothing where it was done before. Throws when there is something else than it was made for. */
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

/** A link stays one: what it leads to is replaced. */
async function linkedTo(path: string): Promise<string> {
  return realpath(path).catch(() => path)
}

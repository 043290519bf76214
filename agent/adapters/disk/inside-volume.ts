/**
 * Opens a path below a folder that containers write to, so that no part of it can be replaced by a link: every part is opened
 * from the descriptor of the one before, and no link is followed.
 */

import { constants } from 'node:fs'
import { chmod, type FileHandle, mkdir, open, realpath, stat } from 'node:fs/promises'
import { join, relative } from 'node:path'
import { codeOf, messageOf } from '../../../daemon/errors.ts'
import { VolumeError } from '../../pods/volumes/volume-store.ts'
import { pathOf } from './open-folders.ts'

/** O_PATH on Linux: a handle that only identifies a path. */
const pathOnly = 0o10000000
const { O_DIRECTORY, O_NOFOLLOW } = constants

export type Held = { readonly folder: boolean; readonly link: string; release(): Promise<void> }

/** `link` is valid while the handle is open. Missing folders are created with the owner and mode of the root. */
export async function holdInside(root: string, subPath: string): Promise<Held> {
  const realRoot = await realpath(root)
  const { existing, missing } = await resolved(realRoot, subPath)
  const inside = relative(realRoot, existing)
  if (inside === '..' || inside.startsWith('../')) throw new VolumeError(`${subPath} leads out of the volume`)
  const { mode } = await stat(realRoot)
  let handle = await open(realRoot, pathOnly | O_DIRECTORY)
  try {
    for (const part of inside.split('/').filter((one) => one !== '')) handle = await step(handle, part)
    for (const part of missing) {
      await mkdir(join(pathOf(handle), part)).catch(unlessThere)
      handle = await step(handle, part)
      if (!(await handle.stat()).isDirectory()) throw new VolumeError(`${subPath} is not a directory`)
      await chmod(pathOf(handle), mode & 0o7777)
    }
    const found = await handle.stat()
    if (found.isSymbolicLink()) throw new VolumeError(`${subPath} is a symbolic link`)
    const held = handle
    return { folder: found.isDirectory(), link: pathOf(held), release: () => held.close() }
  } catch (error) {
    await handle.close()
    if (error instanceof VolumeError) throw error
    throw new VolumeError(`${subPath} cannot be used: ${messageOf(error)}`, {
      cause: error,
    })
  }
}

async function step(from: FileHandle, part: string): Promise<FileHandle> {
  const next = await open(join(pathOf(from), part), pathOnly | O_NOFOLLOW)
  await from.close()
  return next
}

/** The existing part of the path with links resolved, and the missing part. */
async function resolved(
  root: string,
  subPath: string,
): Promise<{ readonly existing: string; readonly missing: readonly string[] }> {
  const parts = subPath.split('/').filter((part) => part !== '' && part !== '.')
  for (let count = parts.length; count > 0; count--) {
    try {
      return { existing: await realpath(join(root, ...parts.slice(0, count))), missing: parts.slice(count) }
    } catch (error) {
      if (codeOf(error) !== 'ENOENT') throw new VolumeError(`${subPath} cannot be used: ${error}`)
    }
  }
  return { existing: root, missing: parts }
}

function unlessThere(error: unknown): void {
  if (codeOf(error) !== 'EEXIST') throw error
}

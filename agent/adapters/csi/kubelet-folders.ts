/** Folders that agents make in those of the kubelet, for CSI drivers. */
import { readdir, rmdir } from 'node:fs/promises'
import { codeOf } from '../../../daemon/errors.ts'
import { VolumeError } from '../../pods/volumes/volume-store.ts'

/** Names that no agent has written are passed over. */
export async function namesIn(folder: string): Promise<readonly string[]> {
  const names = await readdir(folder).catch((): string[] => [])
  return names.filter((name) => isSafe(name))
}

export async function removeEmpty(folder: string): Promise<void> {
  await rmdir(folder).catch((cause: unknown) => {
    if (codeOf(cause) === 'ENOENT') return
    throw new VolumeError(`${folder} is left by its driver and cannot be removed: ${codeOf(cause)}`, { cause })
  })
}

function isSafe(name: string): boolean {
  return /^[A-Za-z0-9][-.\w]{0,252}$/.test(name)
}

export function safeName(name: string): string {
  if (!isSafe(name)) throw new VolumeError(`Not a name for a folder: ${JSON.stringify(name)}`)
  return name
}

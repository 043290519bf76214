/**
 * The files of a program as they were before a trial: saved as a whole while the program is stopped, put back as a whole if the
 * trial fails. What is interrupted is finished at the next start. Putting them back takes no space.
 */
import { parseJson } from '../../api/text/json.ts'
import { copyOn, type UpdateDisk } from './update-disk.ts'

export type SavedState = {
  readonly disk: UpdateDisk
  /** Folder of the updates, in which the copies are. */
  readonly folder: string
  /** Folder of the program's data, and the names in it that are saved. */
  readonly dataFolder: string
  readonly names: readonly string[]
}

/** Names that did not exist: removed when the others are put back. */
const absentFile = '.absent'

/** Whether a whole copy exists. */
export async function isStateSaved({ disk, folder }: SavedState): Promise<boolean> {
  return (await disk.kindOf(`${folder}/before`)) === 'folder'
}

/** Replaces an earlier copy. */
export async function saveState(saved: SavedState): Promise<void> {
  const { disk, folder, dataFolder, names } = saved
  const part = `${folder}/before.part`
  await discardState(saved)
  await disk.makeFolder(part)
  const absent: string[] = []
  for (const name of names) {
    if ((await disk.kindOf(`${dataFolder}/${name}`)) === undefined) absent.push(name)
    else await copyOn(disk, `${dataFolder}/${name}`, `${part}/${name}`)
  }
  await disk.write(`${part}/${absentFile}`, Buffer.from(JSON.stringify(absent)), 0o600)
  await disk.sync(`${part}/${absentFile}`)
  await disk.syncFolder(part)
  await disk.rename(part, `${folder}/before`)
  await disk.syncFolder(folder)
}

/** From the first step on the copy no longer counts as whole, so that it is put back once. */
export async function restoreState(saved: SavedState): Promise<void> {
  const { disk, folder } = saved
  await disk.rename(`${folder}/before`, `${folder}/restoring`)
  await disk.syncFolder(folder)
  await finishRestoring(saved)
}

/** Does the rest of what a power cut has interrupted. */
export async function finishRestoring({ disk, folder, dataFolder, names }: SavedState): Promise<void> {
  const copies = `${folder}/restoring`
  if ((await disk.kindOf(copies)) === undefined) return
  const listed = parseJson(Buffer.from((await disk.read(`${copies}/${absentFile}`)) ?? '').toString())
  const absent = Array.isArray(listed) ? names.filter((name) => listed.includes(name)) : []
  for (const name of absent) await disk.remove(`${dataFolder}/${name}`)
  for (const name of names) {
    if ((await disk.kindOf(`${copies}/${name}`)) === undefined) continue
    await disk.remove(`${dataFolder}/${name}`)
    await disk.rename(`${copies}/${name}`, `${dataFolder}/${name}`)
  }
  await disk.syncFolder(dataFolder)
  await disk.remove(copies)
  await disk.syncFolder(folder)
}

/** A trial has ended with its own state kept, or is about to begin. */
export async function discardState({ disk, folder }: SavedState): Promise<void> {
  await disk.remove(`${folder}/before.part`)
  if ((await disk.kindOf(`${folder}/before`)) === undefined) return
  // In one step: half a copy must not count as one.
  await disk.rename(`${folder}/before`, `${folder}/before.part`)
  await disk.syncFolder(folder)
  await disk.remove(`${folder}/before.part`)
}

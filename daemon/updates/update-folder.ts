/**
 * The folder with the versions of a program beside that of its package: `state.json` with its copy, `verdict.json`, `versions/` with a
 * folder for each version, and the state of the program before a trial. Each change is on disk before the next step.
 */
import { decode } from '../../api/decode.ts'
import { object, oneOf, text } from '../../api/schema.ts'
import { parseJson } from '../../api/text/json.ts'
import type { Log } from '../log.ts'
import type { TrialVerdict } from './next-start.ts'
import { discardState, isStateSaved, type SavedState } from './saved-state.ts'
import { replaceOn, type UpdateDisk } from './update-disk.ts'
import {
  folderOf,
  initialUpdateState,
  type Release,
  readUpdateState,
  type SeenBefore,
  trialAttempts,
  type UpdateState,
  updateStateText,
} from './update-state.ts'

const stateFile = 'state.json'
const verdictFile = 'verdict.json'
const VerdictSchema = object({ digest: text, outcome: oneOf('commit', 'reject', 'inconclusive'), reason: text })

/** A file of a version, by its path in the folder of the version. */
export type VersionFile = { readonly path: string; readonly content: Uint8Array; readonly isProgram: boolean }

export interface UpdateFolder extends SavedState {
  readonly log: Log
}

/** The initial state if there is no file that can be used. */
export async function loadUpdateState({ disk, folder, log }: UpdateFolder): Promise<UpdateState> {
  for (const name of [stateFile, `${stateFile}.copy`]) {
    const path = `${folder}/${name}`
    try {
      const content = await disk.read(path)
      if (content !== undefined) return readUpdateState(Buffer.from(content).toString())
    } catch (error) {
      log.error('The state of updates cannot be used', { path, error })
    }
  }
  return initialUpdateState
}

export async function saveUpdateState({ disk, folder, log }: UpdateFolder, state: UpdateState): Promise<void> {
  const written = updateStateText(state)
  await replaceOn(disk, folder, stateFile, written)
  await replaceOn(disk, folder, `${stateFile}.copy`, written).catch((error: unknown) =>
    log.warn('Cannot copy the state of updates', { error }),
  )
}

export function versionPath({ folder }: Pick<UpdateFolder, 'folder'>, release: Release): string {
  return `${folder}/versions/${folderOf(release)}`
}

/** Folders of versions. One that is not whole has another name. */
export async function listVersions({ disk, folder }: UpdateFolder): Promise<ReadonlySet<string>> {
  return new Set((await disk.list(`${folder}/versions`)).filter((name) => !name.endsWith('.part')))
}

export async function readVerdict({ disk, folder }: UpdateFolder): Promise<TrialVerdict | undefined> {
  const content = await disk.read(`${folder}/${verdictFile}`)
  const decoded = decode(VerdictSchema, content && parseJson(Buffer.from(content).toString()))
  return decoded.ok ? decoded.value : undefined
}

/** The judge writes this file only; the state is changed by the launcher. */
export async function saveVerdict({ disk, folder }: UpdateFolder, verdict: TrialVerdict): Promise<void> {
  await replaceOn(disk, folder, verdictFile, JSON.stringify(verdict))
}

/**
 * Puts a version on trial: it is run from the next start on. An earlier trial is replaced, but for one that has been started:
 * its program may run, and what it has changed is not put back yet.
 */
export async function beginTrial(
  updates: UpdateFolder,
  release: Release,
  files: readonly VersionFile[],
  seen: SeenBefore,
): Promise<void> {
  const { disk, folder } = updates
  const state = await loadUpdateState(updates)
  const { trial: earlier } = state
  if (earlier !== undefined && earlier.attemptsLeft < trialAttempts)
    throw new Error(`Version ${earlier.version} is on trial: wait until it is committed or rolled back`)
  await removeRest(updates, state)
  const path = versionPath(updates, release)
  await unpack(disk, folder, path, files)
  await disk.remove(`${folder}/${verdictFile}`)
  await disk.syncFolder(folder)
  const { version, sequence, digest } = release
  const { wasConnected, containers, epoch, nodes } = seen
  const trial = {
    version,
    sequence,
    digest,
    attemptsLeft: trialAttempts,
    wasConnected,
    containers: [...containers],
    epoch,
    ...(nodes !== undefined && { nodes: [...nodes] }),
  }
  await saveUpdateState(updates, { ...state, trial })
}

/** Under another name until all is on disk. */
async function unpack(disk: UpdateDisk, folder: string, path: string, files: readonly VersionFile[]): Promise<void> {
  const versions = `${folder}/versions`
  await disk.makeFolder(versions)
  await disk.syncFolder(folder)
  if ((await disk.kindOf(path)) !== undefined) return
  const part = `${path}.part`
  const folders = new Set([part])
  for (const { path: name } of files) {
    const steps = name.split('/').slice(0, -1)
    for (const end of steps.keys()) folders.add(`${part}/${steps.slice(0, end + 1).join('/')}`)
  }
  for (const one of folders) await disk.makeFolder(one)
  for (const { path: name, content, isProgram } of files) {
    await disk.write(`${part}/${name}`, content, isProgram ? 0o755 : 0o644)
    await disk.sync(`${part}/${name}`)
  }
  for (const one of folders) await disk.syncFolder(one)
  await disk.rename(part, path)
  await disk.syncFolder(versions)
}

/** Removes versions that the state does not name, unfinished ones, and the saved state of a trial that has ended. */
export async function removeRest(updates: UpdateFolder, { committed, trial }: UpdateState): Promise<void> {
  const { disk, folder } = updates
  const kept = [committed, trial].flatMap((one) => (one === undefined ? [] : [folderOf(one)]))
  for (const name of await disk.list(`${folder}/versions`)) {
    // A power cut may leave half of it. It is removed again before the same release is unpacked.
    if (!kept.includes(name)) await disk.remove(`${folder}/versions/${name}`)
  }
  if (trial === undefined && (await isStateSaved(updates))) await discardState(updates)
}

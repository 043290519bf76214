/** Carries out what `next-start.ts` decides, before each start of a program. The program is stopped meanwhile. */
import { nextStart, type StartFacts, settleTrial } from './next-start.ts'
import { finishRestoring, isStateSaved, restoreState, saveState } from './saved-state.ts'
import {
  listVersions,
  loadUpdateState,
  readVerdict,
  removeRest,
  saveUpdateState,
  type UpdateFolder,
} from './update-folder.ts'
import { type Release, updateStateText } from './update-state.ts'

type Base = StartFacts['base']

/**
 * The version to start; undefined: that of the package. A version on trial is returned only when the attempt is on disk. A step that
 * fails, as on a full disk, makes the fallback run on the state that it had before the trial.
 */
export async function prepareStart(updates: UpdateFolder, base: Base): Promise<Release | undefined> {
  const { log } = updates
  await finishRestoring(updates)
  const before = await loadUpdateState(updates)
  const plan = nextStart(before, await readFacts(updates, base))
  const { run, fallback, restore, snapshot, state } = plan
  try {
    if (restore) await restoreState(updates)
    if (snapshot) await saveState(updates)
    if (updateStateText(state) !== updateStateText(before)) await saveUpdateState(updates, state)
  } catch (error) {
    log.error('Cannot prepare the start; the earlier version runs', {
      error,
      version: fallback?.version ?? base.version,
    })
    if (await isStateSaved(updates)) await restoreState(updates)
    return fallback
  }
  if (before.last !== state.last) log.info('Trial ended', { ...state.last })
  await removeRest(updates, state).catch((error: unknown) => log.warn('Cannot remove earlier versions', { error }))
  return run
}

/** The version to start where `prepareStart` is not possible. Changes nothing. */
export async function committedVersion(updates: UpdateFolder, base: Base): Promise<Release | undefined> {
  return nextStart(await loadUpdateState(updates), await readFacts(updates, base)).fallback
}

/** While the program runs: takes a verdict to commit into the state, so that it holds without another start. */
export async function commitTrial(updates: UpdateFolder, base: Base): Promise<void> {
  const before = await loadUpdateState(updates)
  const { state } = settleTrial(before, await readFacts(updates, base))
  if (state.last?.outcome !== 'Committed' || before.trial === undefined) return
  await saveUpdateState(updates, state)
  await removeRest(updates, state)
}

async function readFacts(updates: UpdateFolder, base: Base): Promise<StartFacts> {
  const [folders, isSaved, verdict] = [
    await listVersions(updates),
    await isStateSaved(updates),
    await readVerdict(updates),
  ]
  return { base, folders, isSaved, verdict }
}

/** Watches a version on trial until it is committed or must be rolled back. A process of its own, of the version of the package. */
import type { Clock } from '../clock.ts'
import type { Log } from '../log.ts'
import type { TrialVerdict } from './next-start.ts'
import type { UpdateState } from './update-state.ts'

type Judged<History> = { readonly history: History; readonly verdict: Omit<TrialVerdict, 'digest'> | undefined }

/** `Look`: what is seen of the program at one moment. `History`: what a judgement keeps of the looks before. */
export interface TrialWatch<Look, History> {
  loadState(): Promise<UpdateState>
  /** The digest of the version on trial that was started last. Undefined: another version was. */
  started(): Promise<string | undefined>
  look(version: string): Promise<Look>
  /** What counts if `look` fails. */
  readonly nothingSeen: Look
  judge(
    history: History | undefined,
    look: Look & { readonly nowMs: number },
    trial: NonNullable<UpdateState['trial']>,
  ): Judged<History>
  saveVerdict(verdict: TrialVerdict): Promise<void>
  /** Takes the verdict into the state while the program runs. */
  commit(): Promise<void>
  /** The launcher then starts the earlier version. */
  restart(): Promise<unknown>
}

/** Resolves when no version is on trial, or the verdict is carried out. */
export async function watchTrial<Look extends object, History>(
  watch: TrialWatch<Look, History>,
  everyMs: number,
  clock: Clock,
  log: Log,
  signal: AbortSignal,
): Promise<void> {
  let history: History | undefined
  let judging = ''
  for (; !signal.aborted; await clock.sleep(everyMs, signal)) {
    const { trial } = await watch.loadState()
    if (trial === undefined) return
    // It is not started yet. Or its start could not be counted, for example on a full disk: another version runs.
    if ((await watch.started()) !== trial.digest) continue
    if (judging !== trial.digest) history = undefined
    judging = trial.digest
    const look = await watch.look(trial.version).catch((error: unknown) => {
      log.warn('Cannot look at the version on trial', { version: trial.version, error })
      return watch.nothingSeen
    })
    const judged = watch.judge(history, { ...look, nowMs: clock.monotonicMs() }, trial)
    history = judged.history
    if (judged.verdict === undefined) continue
    const { digest, version } = trial
    log.info('Trial judged', { version, ...judged.verdict })
    // A disk that takes no verdict takes no count of an attempt, either: a start then runs the earlier version.
    const isSaved = await watch.saveVerdict({ digest, ...judged.verdict }).then(
      () => true,
      (error: unknown) => {
        log.error('Cannot save the verdict on a trial', { version, error })
        return false
      },
    )
    if (judged.verdict.outcome !== 'commit') {
      await watch.restart()
      return
    }
    if (isSaved) return watch.commit()
  }
}

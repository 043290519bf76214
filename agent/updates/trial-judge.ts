/** Watches a version on trial until it is committed or must be rolled back. A process of its own, of the version of the package. */
import type { Clock } from '../../daemon/clock.ts'
import type { Log } from '../../daemon/log.ts'
import type { TrialVerdict } from '../../daemon/updates/next-start.ts'
import { judgeTrial, type TrialHistory, type TrialLook, type TrialRules } from '../../daemon/updates/trial-verdict.ts'
import type { UpdateState } from '../../daemon/updates/update-state.ts'

export interface TrialWatch {
  loadState(): Promise<UpdateState>
  /** The digest of the version on trial that was started last. Undefined: another version was. */
  started(): Promise<string | undefined>
  look(version: string): Promise<Omit<TrialLook, 'nowMs'>>
  saveVerdict(verdict: TrialVerdict): Promise<void>
  /** Takes the verdict into the state while the program runs. */
  commit(): Promise<void>
  /** The launcher then starts the earlier version. */
  restart(): Promise<unknown>
}

export type TrialTimes = Pick<TrialRules, 'trialMs' | 'deafMs' | 'longestMs'> & { readonly everyMs: number }

/** Neither for the version nor against it: such a trial ends without a verdict. */
const nothingSeen = {
  unit: { state: 'starting', invocation: '', exitStatus: 0 },
  containers: undefined,
  epoch: '',
  controller: 'away',
} as const

/** Resolves when no version is on trial, or the verdict is carried out. */
export async function watchTrial(
  watch: TrialWatch,
  times: TrialTimes,
  clock: Clock,
  log: Log,
  signal: AbortSignal,
): Promise<void> {
  let history: TrialHistory | undefined
  let judging = ''
  for (; !signal.aborted; await clock.sleep(times.everyMs, signal)) {
    const { trial } = await watch.loadState()
    if (trial === undefined) return
    // It is not started yet. Or its start could not be counted, for example on a full disk: another version runs.
    if ((await watch.started()) !== trial.digest) continue
    if (judging !== trial.digest) history = undefined
    judging = trial.digest
    const look = await watch.look(trial.version).catch((error: unknown) => {
      log.warn('Cannot look at the version on trial', { version: trial.version, error })
      return nothingSeen
    })
    const judged = judgeTrial(history, { ...look, nowMs: clock.monotonicMs() }, { ...times, ...trial })
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

/**
 * Which version of a program starts next: the one on trial while it has attempts left, else the committed one, else that of the
 * package. The attempt is counted before the start. Decides only; `start-version.ts` acts.
 */
import { folderOf, type Release, trialAttempts, type UpdateState, withRejected } from './update-state.ts'

/** What was concluded about a version on trial. `inconclusive`: it may be tried again. */
export type TrialVerdict = {
  readonly digest: string
  readonly outcome: 'commit' | 'reject' | 'inconclusive'
  readonly reason: string
}

export type StartFacts = {
  /** Version of the package. */
  readonly base: Pick<Release, 'version' | 'sequence'>
  /** Folders of versions that are whole. */
  readonly folders: ReadonlySet<string>
  /** The state that the program had before the trial is saved, and whole. */
  readonly isSaved: boolean
  readonly verdict: TrialVerdict | undefined
}

export type StartPlan = {
  /** Undefined: that of the package. */
  readonly run: Release | undefined
  /** What runs if a step of the plan fails: never a version on trial. */
  readonly fallback: Release | undefined
  /** First step: put the saved state back. */
  readonly restore: boolean
  /** Second step: save the state of the program, which no trial has touched yet. */
  readonly snapshot: boolean
  /** Third step, if it differs from the state that was read: on disk before anything starts. */
  readonly state: UpdateState
}

/** How the trial of `state` ended, and its state afterwards; undefined while it goes on. */
type SettledTrial = { readonly state: UpdateState; readonly restore: boolean }

export function nextStart(before: UpdateState, facts: StartFacts): StartPlan {
  const { state, restore } = settleTrial(before, facts)
  const { committed: fallback, trial } = state
  if (trial === undefined) return { run: fallback, fallback, restore, snapshot: false, state }
  const counted = { ...trial, attemptsLeft: trial.attemptsLeft - 1 }
  return {
    run: trial,
    fallback,
    restore: false,
    snapshot: trial.attemptsLeft === trialAttempts,
    state: { ...state, trial: counted },
  }
}

/** The state without versions that are gone or older than the package, and without a trial that has ended. */
export function settleTrial(before: UpdateState, facts: StartFacts): SettledTrial {
  const state = withoutOlder(before, facts)
  const { trial } = state
  if (trial === undefined) return { state, restore: false }
  const { attemptsLeft } = trial
  const isUntouched = attemptsLeft === trialAttempts
  const end = (outcome: string, reason: string, restore = !isUntouched && facts.isSaved): SettledTrial => ({
    state: { ...without(state, 'trial'), last: { version: trial.version, outcome, reason } },
    restore,
  })
  if (trial.sequence <= facts.base.sequence) return end('Superseded', 'The package is newer', false)
  if (!facts.folders.has(folderOf(trial))) return end('Inconclusive', 'Its folder is missing')
  const verdict = facts.verdict?.digest === trial.digest ? facts.verdict : undefined
  if (verdict?.outcome === 'commit' && !isUntouched) {
    const ended = end('Committed', verdict.reason, false).state
    const { version, sequence, digest } = trial
    const highestSequence = Math.max(state.highestSequence, sequence)
    return { state: { ...ended, committed: { version, sequence, digest }, highestSequence }, restore: false }
  }
  const fault =
    verdict?.outcome === 'reject' ? verdict.reason : attemptsLeft <= 0 ? `${trialAttempts} starts failed` : undefined
  if (fault !== undefined) {
    const ended = end('RolledBack', fault)
    return { ...ended, state: withRejected(ended.state, trial, fault) }
  }
  if (verdict?.outcome === 'inconclusive') return end('Inconclusive', verdict.reason)
  // It was put back as an attempt could not be counted: what the version changes from now on could not be put back again.
  if (!isUntouched && !facts.isSaved) return end('Inconclusive', 'The state before it is no longer saved')
  return { state, restore: false }
}

function withoutOlder(state: UpdateState, { base, folders }: StartFacts): UpdateState {
  const highestSequence = Math.max(state.highestSequence, base.sequence)
  const { committed } = state
  const isKept = committed !== undefined && committed.sequence > base.sequence && folders.has(folderOf(committed))
  return { ...(isKept ? state : without(state, 'committed')), highestSequence }
}

function without(state: UpdateState, field: 'trial' | 'committed'): UpdateState {
  const { [field]: _, ...rest } = state
  return rest
}

/** What a node reports of its updates: to the controller, and as a condition for people. Decides only. */
import type { AgentRelease, AgentUpdateReport } from '../../api/node/agent-update.ts'
import { type Release, trialAttempts, type UpdateState } from '../../daemon/updates/update-state.ts'
import type { MachineCondition } from '../node/status/conditions.ts'

/** Why the release `sequence` is not installed yet. `blocked`: it cannot be, before somebody changes something. */
export type UpdateNote = { readonly sequence: number; readonly outcome: 'waiting' | 'blocked'; readonly reason: string }

export type UpdateReportFacts = {
  readonly state: UpdateState
  /** Version of the package. */
  readonly base: Pick<Release, 'version' | 'sequence'>
  /** What the controller wants to run here. */
  readonly wanted: AgentRelease | undefined
  readonly note: UpdateNote | undefined
  /** How much of the wanted release is on disk; undefined: nothing, or it is not reported. */
  readonly percent?: number | undefined
}

type Outcome = NonNullable<AgentUpdateReport['release']>

/** Reasons come from the publisher's programs and from errors of the machine, and must fit into an annotation. */
const longestReason = 300

export function updateReport({ state, base, wanted, note, percent }: UpdateReportFacts): AgentUpdateReport {
  const { committed, trial } = state
  const { version, sequence } = committed !== undefined && committed.sequence > base.sequence ? committed : base
  const about = wanted ?? trial
  if (about === undefined) return { version, sequence }
  const { reason, ...found } = outcomeOf(state, sequence, about, note)
  return {
    version,
    sequence,
    release: {
      ...{ version: about.version, sequence: about.sequence },
      ...found,
      ...(reason !== undefined && { reason: reason.slice(0, longestReason) }),
      ...(percent !== undefined && found.outcome === 'waiting' && { percent }),
    },
  }
}

function outcomeOf(
  { trial, rejected, last }: UpdateState,
  committed: number,
  about: Pick<Release, 'version' | 'sequence'>,
  note: UpdateNote | undefined,
): Pick<Outcome, 'outcome' | 'reason'> {
  if (committed >= about.sequence) return { outcome: 'committed' }
  if (trial?.sequence === about.sequence)
    return trial.attemptsLeft === trialAttempts
      ? { outcome: 'waiting', reason: 'It is installed, and starts with the next start of the agent' }
      : { outcome: 'trial' }
  const fault = rejected.find(({ version }) => version === about.version)
  if (fault !== undefined) return { outcome: 'rolledBack', reason: fault.reason }
  if (note?.sequence === about.sequence) return { outcome: note.outcome, reason: note.reason }
  const isLast = last?.version === about.version
  return isLast ? { outcome: 'waiting', reason: `${last.outcome}: ${last.reason}` } : { outcome: 'waiting' }
}

const reasons = {
  waiting: 'AgentUpdateWaiting',
  trial: 'AgentOnTrial',
  committed: 'AgentUpToDate',
  rolledBack: 'AgentRolledBack',
  blocked: 'AgentUpdateBlocked',
} as const

/** True: the release that the controller wants cannot run here. */
export function updateCondition({ version, release }: AgentUpdateReport): MachineCondition {
  const type = 'AgentUpdateFailed'
  if (release === undefined)
    return { type, status: 'False', reason: 'AgentUpToDate', message: `version ${version} is committed` }
  const { outcome } = release
  const status = outcome === 'rolledBack' || outcome === 'blocked' ? 'True' : 'False'
  return { type, status, reason: reasons[outcome], message: messageOf(version, release) }
}

function messageOf(committed: string, { version, outcome, reason }: Outcome): string {
  const why = reason === undefined ? '' : `: ${reason}`
  switch (outcome) {
    case 'waiting':
      return `version ${committed} runs, and ${version} waits${why}`
    case 'trial':
      return `version ${version} is on trial; ${committed} is committed`
    case 'committed':
      return `version ${committed} is committed`
    case 'rolledBack':
      return `version ${version} was taken back, and ${committed} runs${why}`
    case 'blocked':
      return `version ${version} cannot be installed, and ${committed} runs${why}`
  }
}

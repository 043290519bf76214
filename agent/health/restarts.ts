/** Checks for repeated starts of the machine, of Docker and of the agent. */
import { type ConditionCheck, fine, type HealthFinding, minutes, seconds, wrong } from './condition-check.ts'

export type RestartReading = {
  /** How long ago each start of the agent since the boot was; undefined where starts are not recorded. */
  readonly agentStartsAgoMs: readonly number[] | undefined
  /** The same for Docker, as far as the agent observed it. */
  readonly dockerStartsAgoMs: readonly number[]
  /** Consecutive boots before this one that ended within ten minutes. */
  readonly shortBoots: number
}

/** As node-problem-detector: five starts within twenty minutes. */
const windowMs = 20 * 60_000
const many = 5
const manyBoots = 3

export function frequentRestarts({ agentStartsAgoMs, dockerStartsAgoMs, shortBoots }: RestartReading): HealthFinding {
  const recent = (ago: readonly number[]) => ago.filter((ms) => ms < windowMs).length
  if (shortBoots >= manyBoots) {
    return wrong(
      'FrequentReboots',
      'The machine was restarted several times in a row, within ten minutes each',
      'Check its supply, its temperature and its watchdog',
    )
  }
  if (recent(dockerStartsAgoMs) >= many) {
    return wrong(
      'FrequentDockerRestarts',
      'Docker was started five times in twenty minutes',
      "See 'journalctl -u docker'",
    )
  }
  if (recent(agentStartsAgoMs ?? []) >= many) {
    return wrong(
      'FrequentAgentRestarts',
      'The agent was started five times in twenty minutes',
      "See 'journalctl -u bramble-agent'",
    )
  }
  return fine('NoFrequentRestarts', 'The machine, Docker and the agent are not restarted often')
}

export interface StartCounter {
  /** Called at each poll: counts a start since the previous one. */
  look(): readonly number[]
}

/**
 * Counts starts of a service that is polled: a start is a silence that ended, or another process ID. A restart between two polls
 * is visible only by the process ID.
 */
export function startCounter(
  seen: () => { readonly pid: number | undefined; readonly isSilent: boolean },
  clock: { monotonicMs(): number },
): StartCounter {
  let before: { readonly pid: number | undefined; readonly isSilent: boolean } | undefined
  let starts: readonly number[] = []
  return {
    look() {
      const now = seen()
      const nowMs = clock.monotonicMs()
      const isOther = now.pid !== undefined && before?.pid !== undefined && now.pid !== before.pid
      const isBack = now.pid === undefined && before?.isSilent === true && !now.isSilent
      if (isOther || isBack) starts = [...starts, nowMs].slice(-2 * many)
      before = { pid: now.pid ?? before?.pid, isSilent: now.isSilent }
      return starts.map((startMs) => nowMs - startMs)
    },
  }
}

export const restartsCheck: ConditionCheck<{ restarts(): RestartReading | Promise<RestartReading> }> = {
  type: 'FrequentRestarts',
  name: 'restarts',
  unknown: 'No starts are recorded',
  periodMs: 5 * seconds,
  holdMs: 5 * minutes,
  look: async (source) => frequentRestarts(await source.restarts()),
}

/** Does something here start again and again? */
import { type Finding, fine, wrong } from './finding.ts'

export type RestartReading = {
  /** How long ago the agent was started, each time since boot; undefined where nobody can remember it. */
  readonly agentStartsAgoMs: readonly number[] | undefined
  /** The same of Docker, as far as we saw it. */
  readonly dockerStartsAgoMs: readonly number[]
  /** How many boots before this one ended within ten minutes, in a row. */
  readonly shortBoots: number
}

/** As node-problem-detector: five starts within twenty minutes. */
const windowMs = 20 * 60_000
const many = 5
const manyBoots = 3

export function frequentRestarts({ agentStartsAgoMs, dockerStartsAgoMs, shortBoots }: RestartReading): Finding {
  const recent = (ago: readonly number[]) => ago.filter((ms) => ms < windowMs).length
  if (shortBoots >= manyBoots) {
    return wrong(
      'FrequentReboots',
      'The machine was restarted several times in a row, within ten minutes each: look at its supply, its temperature and its watchdog',
    )
  }
  if (recent(dockerStartsAgoMs) >= many) {
    return wrong(
      'FrequentDockerRestarts',
      "Docker was started five times in twenty minutes: see 'journalctl -u docker'",
    )
  }
  if (recent(agentStartsAgoMs ?? []) >= many) {
    return wrong(
      'FrequentAgentRestarts',
      "The agent was started five times in twenty minutes: see 'journalctl -u bramble-agent'",
    )
  }
  return fine('NoFrequentRestarts', 'Nothing is started again and again')
}

export interface StartCounter {
  /** Called at each look: did it start since the last one? */
  look(): readonly number[]
}

/**
 * Counts starts of something that is looked at now and then: it is silent and then not, or its process is another. A start that
 * is over between two looks is seen by its process only.
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

/** The rollout of a release of the agent, as the page shows it. */
import type { ConfigMap } from '../../api/config-map.ts'
import type { UrgencyLevel } from '../../api/dashboard/node-view.ts'
import { isPausedByOperator, readStatus, rolloutVersion } from '../../api/node/agent-rollout.ts'

export type RolloutView = {
  readonly version: string
  readonly level: UrgencyLevel
  readonly text: string
  /** One line for each ring. */
  readonly rings: readonly string[]
  /** Nodes that hold up no other. */
  readonly stragglers: string
  /** What an operator may do with it. */
  readonly action: 'pause' | 'resume' | undefined
}

/** Undefined: there is no rollout. */
export function rolloutView(map: Pick<ConfigMap, 'data'>): RolloutView | undefined {
  const version = rolloutVersion(map)
  if (version === undefined) return undefined
  const status = readStatus(map)
  if (status === undefined)
    return { version, level: 'idle', text: 'begins', rings: [], stragglers: '', action: undefined }
  const { phase, message, rings, stragglers, stragglerCount } = status
  const isPaused = phase === 'Paused'
  const level = isPaused && !isPausedByOperator(map) ? 'bad' : isPaused || phase === 'Waiting' ? 'warn' : 'good'
  const more = stragglerCount - shownStragglers
  return {
    version,
    level,
    text: `${phase}. ${message}`,
    rings: rings.map(({ name, nodes, committed, updating, failed }) =>
      [
        `${name}: ${committed} of ${nodes}`,
        ...(updating > 0 ? [`${updating} updating`] : []),
        ...(failed > 0 ? [`${failed} failed`] : []),
      ].join(', '),
    ),
    stragglers: `${stragglers.slice(0, shownStragglers).join(', ')}${more > 0 ? ` and ${more} more` : ''}`,
    action: isPaused ? 'resume' : phase === 'Complete' ? undefined : 'pause',
  }
}

const shownStragglers = 10

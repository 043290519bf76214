/** Metrics of the rollout of the agent, as the controller that leads decides it. */
import type { MetricsRegistry } from '../../../daemon/metrics-registry.ts'
import { gauge, type MetricSample } from '../../../daemon/prometheus-text.ts'
import type { RolloutStatus } from './next-rollout.ts'

export type ShownRollout = {
  readonly version: string
  readonly status: Pick<RolloutStatus, 'phase' | 'rings'>
  readonly isPausedByOperator: boolean
}

export interface RolloutMetrics {
  /** Undefined: there is no rollout. */
  show(rollout: ShownRollout | undefined): void
}

/** Registers them: once for a registry. */
export function rolloutMetrics(registry: MetricsRegistry): RolloutMetrics {
  let shown: ShownRollout | undefined
  registry.add(() => [
    gauge('bramble_rollout_phase', '1 for the phase that the rollout of the agent is in', shown ? phaseOf(shown) : []),
    gauge('bramble_rollout_nodes', 'Nodes in the rollout of the agent', shown ? nodesOf(shown) : []),
  ])
  return {
    show(rollout) {
      shown = rollout
    },
  }
}

function phaseOf({ version, status, isPausedByOperator }: ShownRollout): readonly MetricSample[] {
  const { phase } = status
  const by = phase === 'Paused' ? (isPausedByOperator ? 'operator' : 'failures') : undefined
  return [{ labels: { version, phase, by }, value: 1 }]
}

function nodesOf({ version, status }: ShownRollout): readonly MetricSample[] {
  return status.rings.flatMap(({ name: ring, nodes, committed, failed, updating }) =>
    Object.entries({ committed, failed, updating, others: nodes - committed - failed - updating }).map(
      ([state, value]) => ({ labels: { version, ring, state }, value }),
    ),
  )
}

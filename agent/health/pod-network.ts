/** Checks that pods have a network with the addresses that the controller assigned to this node. */
import { type ConditionCheck, fine, type HealthFinding, seconds, wrong } from './condition-check.ts'

/** `problem`: why there is no network; undefined when there is one, or no pod has needed one yet. */
export function podNetworkUnavailable(problem: string | undefined): HealthFinding {
  return problem === undefined
    ? fine('PodNetworkAvailable', 'Pods can get a network of their own')
    : wrong('PodNetworkNotCreated', problem)
}

export const podNetworkCheck: ConditionCheck<{ podNetworkProblem(): Promise<string | undefined> }> = {
  type: 'PodNetworkUnavailable',
  name: 'pod-network',
  unknown: 'Only a running agent checks the network of pods: see the conditions of the node',
  periodMs: 10 * seconds,
  holdMs: 0,
  look: async (source) => podNetworkUnavailable(await source.podNetworkProblem()),
}

/** Checks that pods have a network with the addresses that the controller assigned to this node, and that it is part of that of the fleet. */
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

/** Undefined: the fleet has no network of its own, or it is not known yet. `obstacle`: why this node has no part in it. */
export type FleetNetworkReading =
  | { readonly obstacle: { readonly reason: string; readonly found: string; readonly remedy: string } | undefined }
  | undefined

export function fleetNetworkUnavailable(reading: FleetNetworkReading): HealthFinding | undefined {
  if (reading === undefined) return undefined
  const { obstacle } = reading
  if (obstacle === undefined) return fine('OnFleetNetwork', 'This node is on the network of its fleet')
  return wrong(obstacle.reason, obstacle.found, obstacle.remedy)
}

type FleetNetworkSource = { fleetNetwork(): FleetNetworkReading | Promise<FleetNetworkReading> }

export const fleetNetworkCheck: ConditionCheck<FleetNetworkSource> = {
  type: 'FleetNetworkUnavailable',
  name: 'fleet-network',
  unknown: 'The fleet has no network between nodes, or this machine has not received it',
  periodMs: 5 * seconds,
  holdMs: 0,
  look: async (source) => fleetNetworkUnavailable(await source.fleetNetwork()),
}

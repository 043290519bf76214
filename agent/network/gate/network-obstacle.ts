/** Why a machine cannot take part in the network of its fleet; its pods then run in the engine's own network. */
import { type Described, object, oneOf, text } from '../../../api/schema.ts'
import { firewallProblem, firewallRemedy } from '../peers/firewall-backend.ts'
import { type FleetRanges, homeNetworks, type MachineRoute } from '../peers/home-networks.ts'

export const NetworkObstacleSchema = object({
  reason: oneOf(
    'FirewallBackend',
    'OtherAgent',
    'ProgramsMissing',
    'FirewallUnavailable',
    'AddressesOverlap',
    'ObstacleUnreadable',
  ),
  /** A sentence without its full stop. */
  found: text,
  remedy: text,
})
export type NetworkObstacle = Described<typeof NetworkObstacleSchema>

/** In place of a saved one that cannot be read: a machine that takes part has no such file. */
export const unreadableObstacle: NetworkObstacle = {
  reason: 'ObstacleUnreadable',
  found: 'This node was not part of the pod network, and the file with the reason cannot be read',
  remedy: 'The agent looks again when it connects to the controller',
}

export type ToolProblem = NetworkObstacle & { readonly reason: 'ProgramsMissing' | 'FirewallUnavailable' }

/** What counts for a machine that is not on the network of the fleet yet. */
export type GateFacts = {
  /** The process ID of another agent that has the network of pods on this machine. */
  readonly otherAgent?: number | undefined
  /** Why this agent cannot change the rules and routes of the kernel. */
  readonly tools?: ToolProblem | undefined
  readonly ranges: FleetRanges
  readonly routes: readonly MachineRoute[]
}

/** Undefined: nothing is in the way. */
export function machineObstacle({ otherAgent, tools, ranges, routes }: GateFacts): NetworkObstacle | undefined {
  if (otherAgent !== undefined) {
    return {
      reason: 'OtherAgent',
      found: `Another agent of this machine, process ${otherAgent}, has the network of pods, whose rules and routes are there once`,
      remedy: 'To give it to this one, stop the other agent for good, then restart this one',
    }
  }
  if (tools !== undefined) return tools
  const [home] = homeNetworks(ranges, routes)
  if (home === undefined) return undefined
  const found = sentence(home.found)
  return { reason: 'AddressesOverlap', found, remedy: `${sentence(home.remedy)}, then restart this agent` }
}

/** The same of the engine, also for a machine that is on the network. `backend`: as the engine reports it. */
export function engineObstacle(backend: string | undefined): NetworkObstacle | undefined {
  const found = firewallProblem(backend)
  return found === undefined ? undefined : { reason: 'FirewallBackend', found, remedy: firewallRemedy }
}

/** With what it means for the pods of the node. */
export function obstacleText({ found }: NetworkObstacle): string {
  return `${found}. Pods of this node run in Docker's own network: they reach no Services and no pods of other nodes, and no NetworkPolicies apply to them`
}

/** For the condition of the node and the doctor. `isOn`: the fleet has a network, as far as is known. */
export function fleetNetworkReading(isOn: boolean, obstacle: NetworkObstacle | undefined) {
  if (!isOn) return undefined
  return { obstacle: obstacle && { ...obstacle, found: obstacleText(obstacle) } }
}

function sentence(text: string): string {
  return `${text.charAt(0).toUpperCase()}${text.slice(1)}`
}

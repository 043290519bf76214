/** The Services of the fleet on this node: what forwards to them, in each family of addresses. */
import type { Log } from '../../daemon/log.ts'
import type { Loop } from '../../daemon/run.ts'
import { conntrackFlows } from '../adapters/network/conntrack.ts'
import { healthServers } from '../adapters/network/health-servers.ts'
import { nodeProbe } from '../adapters/network/node-probe.ts'
import { ipv6Rules } from '../network/rule-family.ts'
import { flowCleaner } from '../network/services/flow-cleaner.ts'
import { healthCheckManager } from '../network/services/health-check-manager.ts'
import { openServiceManager } from '../network/services/service-manager.ts'
import { silenceManager } from '../network/services/silence-manager.ts'
import type { ControlPlane } from '../node/connection/control-plane.ts'
import type { AgentBoard } from './board.ts'
import type { AgentMachine } from './machine.ts'

export type ServiceParts = {
  readonly root: string
  readonly nodeName: string
  /** URLs of the controllers: their API and MQTT. */
  readonly controllerUrls: () => readonly string[]
  readonly board: AgentBoard
  readonly machine: Pick<AgentMachine, 'watch'>
  readonly controlPlane: Pick<ControlPlane, 'connected'>
  readonly log: Log
}

/** Resolves when the cells have the rules of what the checkpoint has. Loops of IPv6 do nothing while the fleet has none. */
export async function serviceLoops(parts: ServiceParts): Promise<readonly Loop[]> {
  const { root, nodeName, controllerUrls, board, machine, controlPlane, log } = parts
  const { clockFor } = machine.watch
  const { ipv6ServiceRules: serviceRules, ipv6RulesCurrent: rulesCurrent, ipv6AppliedRules: appliedRules } = board
  const ofNode = { nodeName, controllerUrls, reads: board }
  const ofIPv6 = {
    family: ipv6Rules,
    reads: { ...board, silentNodes: board.ipv6SilentNodes },
    writes: { serviceRules, rulesCurrent },
  }
  return [
    await openServiceManager({ ...ofNode, writes: board, clock: clockFor('services') }),
    await openServiceManager({ ...ofNode, ...ofIPv6, clock: clockFor('services-ipv6') }),
    flowCleaner({ flows: conntrackFlows(), reads: board, clock: clockFor('udp-flows'), log }),
    flowCleaner({
      family: ipv6Rules,
      flows: conntrackFlows(undefined, ipv6Rules),
      reads: { serviceRules, appliedRules },
      clock: clockFor('udp-flows-ipv6'),
      log,
    }),
    silenceManager({
      nodeName,
      probe: nodeProbe({ root }),
      isConnected: () => controlPlane.connected,
      reads: board,
      writes: board,
      clock: clockFor('silent-nodes'),
      log,
    }),
    healthCheckManager({ nodeName, servers: healthServers(), reads: board, clock: clockFor('service-health'), log }),
  ]
}

/** The Services of the fleet on this node: what forwards to them, in each family of addresses. */
import type { IPFamily } from '../../api/text/ip-address.ts'
import type { Log } from '../../daemon/log.ts'
import type { Loop } from '../../daemon/run.ts'
import { conntrackFlows } from '../adapters/network/conntrack.ts'
import { healthServers } from '../adapters/network/health-servers.ts'
import { nodeProbe } from '../adapters/network/node-probe.ts'
import { ruleFamilies } from '../network/rule-family.ts'
import { flowCleaner } from '../network/services/flow-cleaner.ts'
import { healthCheckManager } from '../network/services/health-check-manager.ts'
import { openServiceManager } from '../network/services/service-manager.ts'
import { silenceManager } from '../network/services/silence-manager.ts'
import type { ControlPlane } from '../node/connection/control-plane.ts'
import type { AgentBoard, WriteEnds } from './board.ts'
import type { AgentMachine } from './machine.ts'

export type ServiceParts = {
  readonly root: string
  readonly nodeName: string
  /** URLs of the controllers: their API and MQTT. */
  readonly controllerUrls: () => readonly string[]
  readonly board: AgentBoard
  readonly write: WriteEnds
  readonly machine: Pick<AgentMachine, 'watch'>
  readonly controlPlane: Pick<ControlPlane, 'connected'>
  readonly log: Log
}

/** Resolves when the cells have the rules of what the checkpoint has. Loops of IPv6 do nothing while the fleet has none. */
export async function serviceLoops(parts: ServiceParts): Promise<readonly Loop[]> {
  const { root, nodeName, controllerUrls, board, write, machine, controlPlane, log } = parts
  const { clockFor } = machine.watch
  const writes = write('serviceRules', 'rulesCurrent')
  const ofFamily = async (family: IPFamily) => {
    const rules = ruleFamilies[family]
    const suffix = family === 'IPv4' ? '' : '-ipv6'
    const { serviceRules, appliedRules, silentNodes } = cellsOf(board, family)
    return [
      await openServiceManager({
        ...{ nodeName, controllerUrls, family: rules },
        reads: { ...board, silentNodes },
        writes: { serviceRules: writes.serviceRules[family], rulesCurrent: writes.rulesCurrent[family] },
        clock: clockFor(`services${suffix}`),
      }),
      flowCleaner({
        ...{ family: rules, log },
        flows: conntrackFlows(rules),
        reads: { serviceRules, appliedRules },
        clock: clockFor(`udp-flows${suffix}`),
      }),
    ]
  }
  return [
    ...(await ofFamily('IPv4')),
    ...(await ofFamily('IPv6')),
    silenceManager({
      nodeName,
      probe: nodeProbe({ root }),
      isConnected: () => controlPlane.connected,
      reads: board,
      writes: write('silentNodes'),
      clock: clockFor('silent-nodes'),
      log,
    }),
    healthCheckManager({
      nodeName,
      servers: healthServers(),
      reads: { serviceRules: board.serviceRules.IPv4, ruleProblem: board.ruleProblem.IPv4 },
      clock: clockFor('service-health'),
      log,
    }),
  ]
}

function cellsOf({ serviceRules, appliedRules, silentNodes }: AgentBoard, family: IPFamily) {
  return {
    serviceRules: serviceRules[family],
    appliedRules: appliedRules[family],
    silentNodes: silentNodes[family],
  }
}

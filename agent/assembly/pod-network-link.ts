/** What the engine needs of the network of pods before the parts of the network are built: the form that is wanted, and when it is ready. */
import { changeWithin, type Reader } from '../../daemon/cell.ts'
import { systemClock } from '../../daemon/clock.ts'
import { withinOr } from '../../daemon/deadline.ts'
import type { PodNetworkLink } from '../adapters/docker/docker-runtime.ts'
import { reflectPorts } from '../adapters/network/bridge-ports.ts'
import { podNetworkForm } from '../network/peers/peer-ipv6.ts'
import type { AgentBoard } from './board.ts'
import type { NetworkGround } from './network.ts'

/** `prepared` waits for the rules, the routes and the name server once, for at most 10 s. */
export function podNetworkLink(
  board: AgentBoard,
  { ipv6, ipv6Forwarding, hasIPv6 }: Pick<NetworkGround, 'ipv6' | 'ipv6Forwarding' | 'hasIPv6'>,
  nodeName: string,
): PodNetworkLink {
  const { networkMessage, networkObstacle, podsMayMove, peerRules, appliedRules, routesApplied, namesTried } = board
  let preparing: Promise<void> | undefined
  const prepare = async () => {
    const areThere = (rules: readonly unknown[]) => rules.length > 0
    const parts = [become(appliedRules.IPv4, areThere), become(routesApplied, Boolean)]
    if (peerRules.IPv6.get() !== undefined) parts.push(become(appliedRules.IPv6, areThere))
    await withinOr(preparedMs, undefined, Promise.all([...parts, become(namesTried, Boolean)]))
  }
  return {
    wanted: () => ({
      ...podNetworkForm(networkMessage.get(), nodeName, hasIPv6),
      podsMayMove: podsMayMove.get(),
      isOff: networkObstacle.get() !== undefined,
      hasRange: networkMessage.get()?.nodes.some(({ name }) => name === nodeName) === true,
    }),
    prepared: () => (preparing ??= prepare()),
    // The loop of peers tries it again, and reports why it cannot be done.
    prepareIPv6: () => ipv6Forwarding.enable().catch(() => undefined),
    // The loop of peers verifies it, and reports why it cannot be closed.
    closeIPv6: (bridge) => ipv6.close(bridge).catch(() => undefined),
    reflect: (bridge) => reflectPorts(bridge),
  }
}

/**
 * Before a pod is given a network: once the message of the network is there, its gate decides within moments. A pod that does not wait would be
 * started again on the other network.
 */
export async function networkDecided({
  fleetNetwork,
  networkMessage,
  networkObstacle,
}: Pick<AgentBoard, 'fleetNetwork' | 'networkMessage' | 'networkObstacle'>): Promise<void> {
  const parts = [networkMessage, networkObstacle]
  const isDecided = () => fleetNetwork.get() === undefined || parts.some((one) => one.get() !== undefined)
  if (!isDecided()) await changeWithin(preparedMs, [fleetNetwork, ...parts], isDecided, systemClock)
}

/**
 * Wait of the first pod; later ones find the network prepared. A pod that starts without its routes gets them together
 * with the node.
 */
const preparedMs = 10_000

function become<T>(reader: Reader<T>, isDone: (value: T) => boolean): Promise<void> {
  if (isDone(reader.get())) return Promise.resolve()
  return new Promise((resolve) => {
    const stop = reader.onChange((value) => {
      if (!isDone(value)) return
      stop()
      resolve()
    })
  })
}

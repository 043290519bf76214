/** The network of pods with those nodes only whose addresses are proven. */
import { isDeepStrictEqual } from 'node:util'
import type { NetworkMessage } from '../../../api/network/pod-network.ts'
import type { PeerNetwork } from '../peers/family-network.ts'
import { peerNetworkOf } from '../peers/peer-network.ts'
import { type PeerAddresses, peersToProve, type Unproven } from './peer-addresses.ts'

export type AddressProofs = {
  /** By the name of the node: the address that may be used. */
  readonly used: ReadonlyMap<string, string>
  /** By the name of the other probed nodes: why their address is not used. */
  readonly failures: ReadonlyMap<string, Unproven>
}

export const noProofs: AddressProofs = { used: new Map(), failures: new Map() }

export function proofsOf(records: PeerAddresses): AddressProofs {
  const all = [...records]
  return {
    used: new Map(
      all.flatMap(([name, { state, address }]) => (state === 'unproven' ? [] : [[name, address] as const])),
    ),
    failures: new Map(
      all.flatMap(([name, { state, because }]) => (state === 'unproven' && because ? [[name, because] as const] : [])),
    ),
  }
}

export function areSameProofs(one: AddressProofs, other: AddressProofs): boolean {
  return isDeepStrictEqual(one, other)
}

/**
 * As `peerNetworkOf`, without the nodes whose address is not proven: no route, no far end of the tunnel and no rule has it. Packets to
 * their pods are refused meanwhile, as the default route would lead them out of the house.
 */
export function provenNetworkOf(
  message: NetworkMessage,
  nodeName: string,
  proofs: AddressProofs,
  hasIPv6 = true,
): PeerNetwork | undefined {
  const unproven = new Set(unprovenNodes(message, nodeName, proofs))
  if (unproven.size === 0) return peerNetworkOf(message, nodeName, hasIPv6)
  const network = peerNetworkOf(
    { ...message, nodes: message.nodes.filter(({ name }) => !unproven.has(name)) },
    nodeName,
    hasIPv6,
  )
  return network && { ...network, isGuarded: true }
}

/** The nodes of the message that have to prove their address and have not. */
export function unprovenNodes(message: NetworkMessage, nodeName: string, { used }: AddressProofs): readonly string[] {
  return peersToProve(message, nodeName).flatMap(({ name, address, probePort }) =>
    probePort === undefined || used.get(name) === address ? [] : [name],
  )
}

/** Why nodes are not used whose address was probed, each as a sentence. */
export function unprovenAddresses(
  message: NetworkMessage,
  nodeName: string,
  { used, failures }: AddressProofs,
): readonly string[] {
  return peersToProve(message, nodeName).flatMap(({ name, address, probePort }) => {
    const failure = failures.get(name)
    if (probePort === undefined || failure === undefined || used.get(name) === address) return []
    return [`no route to the pods of ${name}, whose address ${address} is not proven: ${reason(failure, probePort)}`]
  })
}

function reason(failure: Unproven, port: number): string {
  switch (failure.why) {
    case 'no answer':
      return `its agent has not answered at UDP port ${port}; start it, open the port, or find the machine that has the address`
    case 'no certificate':
      return 'what answers there has no certificate of the fleet; find the machine that has the address'
    case 'other node':
      return `node ${failure.node} answers there; the fleet follows when the other one has reported its address`
  }
}

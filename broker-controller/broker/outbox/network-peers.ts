/** Decides what other nodes are sent of a Node: how they reach its pods. */
import { parseProbePort, probePort, probePortAnnotation } from '../../../api/network/address-probe.ts'
import type { NetworkPeer } from '../../../api/network/pod-network.ts'
import { segmentOf } from '../../../api/network/segment.ts'
import {
  relayAnnotation,
  wireguardEndpointAnnotation,
  wireguardEndpointProblem,
  wireguardKeyAnnotation,
  wireguardKeyProblem,
} from '../../../api/network/wireguard.ts'
import { ipv6PodRangeOf, podRangeOf } from '../../../api/node/pod-range.ts'
import { internalIPsOf, specialAddressProblem } from '../../../api/node/reported-addresses.ts'
import type { Node } from '../../../api/node.ts'
import { ipVersion } from '../../../api/text/ip-address.ts'
import { formatIPv6, isRoutableIPv6, parseIPv6 } from '../../../api/text/ipv6-range.ts'

const zoneLabel = 'topology.kubernetes.io/zone'

/**
 * undefined: the node has no IPv4 range for pods yet, no IPv4 address, or no part in the network. `wireguard`: the fleet uses it between segments. `ipv6`: its
 * pods have addresses of both families.
 */
export function networkPeer(
  node: Node,
  { wireguard = false, ipv6 = false }: { readonly wireguard?: boolean; readonly ipv6?: boolean } = {},
): NetworkPeer | undefined {
  const { metadata } = node
  const podCIDR = podRangeOf(node)
  const address = internalAddresses(node).find((one) => ipVersion(one) === 4)
  if (podCIDR === undefined || address === undefined || metadata.name === undefined || isOff(node)) return undefined
  const port = probePortOf(node)
  const zone = metadata.labels?.[zoneLabel]
  return {
    name: metadata.name,
    podCIDR,
    address,
    ...(ipv6 && ipv6Fields(node)),
    segment: segmentOf(metadata.annotations, address),
    ...(port !== undefined && { probePort: port }),
    ...(zone && { zone }),
    ...(wireguard && wireguardFields(metadata.annotations)),
  }
}

/** Its pods are on the network of its engine, and it answers no proof of its address. */
function isOff({ status }: Node): boolean {
  return (
    status?.conditions?.some(({ type, status }) => type === 'FleetNetworkUnavailable' && status === 'True') === true
  )
}

/** Agents that could not prove their addresses were built before. */
const allProveSinceMs = Date.parse('2026-12-01T00:00:00Z')

/**
 * undefined: an agent of an earlier version, whose address is used without a proof. What an agent writes about its version does not suffice for that,
 * for an attacker writes what he likes: the controller sets the date of a Node.
 */
function probePortOf({ metadata }: Node): number | undefined {
  const port = parseProbePort(metadata.annotations?.[probePortAnnotation])
  const madeMs = Date.parse(metadata.creationTimestamp ?? '')
  return port ?? (madeMs < allProveSinceMs ? undefined : probePort)
}

/** An address that leads nowhere from another node is left out, such as one of its link. */
function ipv6Fields(node: Node): Pick<NetworkPeer, 'ipv6'> {
  const podCIDR = ipv6PodRangeOf(node)
  if (podCIDR === undefined) return {}
  const routable = internalAddresses(node)
    .map(parseIPv6)
    .find((one) => one !== undefined && isRoutableIPv6(one))
  return { ipv6: { podCIDR, ...(routable !== undefined && { address: formatIPv6(routable) }) } }
}

/** A Node may have others from before they were checked. */
function internalAddresses(node: Node): readonly string[] {
  return internalIPsOf(node).filter((ip) => specialAddressProblem(ip) === undefined)
}

/** Invalid values are left out: a Node may have them from before they were checked. */
function wireguardFields(annotations: Node['metadata']['annotations'] = {}): Partial<NetworkPeer> {
  const { [wireguardKeyAnnotation]: key, [wireguardEndpointAnnotation]: endpoint } = annotations
  return {
    ...(key !== undefined && wireguardKeyProblem(key) === undefined && { wireguardKey: key }),
    ...(endpoint !== undefined && wireguardEndpointProblem(endpoint) === undefined && { wireguardEndpoint: endpoint }),
    ...(annotations[relayAnnotation] === 'true' && { relay: true }),
  }
}

export interface KeyOwners {
  /** The key that the Node has in its annotation; undefined: none. Whether it is this Node's. */
  claim(name: string, key: string | undefined): boolean
}

/** A key belongs to the first Node that has it: with the key of another one a node could get packets that are for that one. */
export function keyOwners(): KeyOwners {
  const owners = new Map<string, string>()
  const held = new Map<string, string>()
  return {
    claim(name, key) {
      const before = held.get(name)
      if (before !== undefined && before !== key) {
        owners.delete(before)
        held.delete(name)
      }
      if (key === undefined) return false
      const owner = owners.get(key) ?? name
      if (owner !== name) return false
      owners.set(key, name)
      held.set(name, key)
      return true
    },
  }
}

/** The settings of the fleet's network, as far as the configuration turns it on. */
import { dnsSubdomainProblem } from '../../api/names.ts'
import { defaultClusterDomain } from '../../api/network/cluster-dns.ts'
import type { IPv6Ranges } from '../../api/network/ipv6-ranges.ts'
import { usualWireguardPort } from '../../api/network/wireguard.ts'
import type { NetworkRanges } from './network-ranges.ts'

export type PodNetworkSettings = {
  readonly clusterCIDR: string
  readonly serviceCIDR: string
  /** undefined: pods and Services have IPv4 addresses only. */
  readonly ipv6?: IPv6Ranges
  /** Without dots at its ends. */
  readonly clusterDomain: string
  /** Between nodes of different segments; undefined: VXLAN. */
  readonly wireguard?: { readonly port: number }
}

/** `node`: the pods of a node reach those of no other, and Services have no data path. */
export type PodNetworkKind = 'node' | 'routed'

export type PodNetworkFields = {
  readonly podNetwork: PodNetworkKind
  readonly clusterDomain?: string
  readonly podNetworkTunnel?: 'vxlan' | 'wireguard'
  readonly wireguardPort?: number
}

/** Kind for a new fleet whose configuration does not choose. Routes need an address range for each node. */
export function podNetworkOfNewFleet({ allocateNodeCIDRs }: { readonly allocateNodeCIDRs?: boolean }): PodNetworkKind {
  return allocateNodeCIDRs === false ? 'node' : 'routed'
}

/** undefined: the pods of a node reach those of no other, and Services have no data path. Adds what is wrong to `problems`. */
export function podNetworkSettings(
  file: PodNetworkFields,
  { nodeCidrs, serviceCIDR, ipv6 }: NetworkRanges,
  problems: string[],
): PodNetworkSettings | undefined {
  const { podNetwork, clusterDomain = defaultClusterDomain } = file
  const { podNetworkTunnel = 'vxlan', wireguardPort: port = usualWireguardPort } = file
  const problem = dnsSubdomainProblem(clusterDomain)
  if (problem !== undefined) problems.push(`clusterDomain: ${JSON.stringify(clusterDomain)} ${problem}`)
  if (port < 1 || port > 65_535) problems.push(`wireguardPort: ${port} must be a port, 1 to 65535`)
  if (podNetwork === 'node') {
    if (ipv6 !== undefined) {
      problems.push(
        `clusterCIDR: ${ipv6.clusterCIDR} needs podNetwork: routed, as an IPv6 range: set it, or remove the range`,
      )
    }
    return undefined
  }
  if (nodeCidrs === undefined) {
    problems.push(
      'podNetwork: routed needs an address range for each node: remove allocateNodeCIDRs: false, or set podNetwork: node',
    )
    return undefined
  }
  const { clusterCIDR } = nodeCidrs
  return {
    clusterCIDR,
    serviceCIDR,
    ...(ipv6 && { ipv6 }),
    clusterDomain,
    ...(podNetworkTunnel === 'wireguard' && { wireguard: { port } }),
  }
}

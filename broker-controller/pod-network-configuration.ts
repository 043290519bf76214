/** The settings of the fleet's network, as far as the configuration turns it on. */
import { dnsSubdomainProblem } from '../api/names.ts'
import { defaultClusterDomain } from '../api/network/cluster-dns.ts'
import { usualWireguardPort } from '../api/network/wireguard.ts'
import type { NodeCidrSettings } from './controllers/node-cidr.ts'

export type PodNetworkSettings = {
  readonly clusterCIDR: string
  readonly serviceCIDR: string
  /** Without dots at its ends. */
  readonly clusterDomain: string
  /** Between nodes of different segments; undefined: VXLAN. */
  readonly wireguard?: { readonly port: number }
}

export type PodNetworkFields = {
  readonly podNetwork?: 'node' | 'routed'
  readonly clusterDomain?: string
  readonly podNetworkTunnel?: 'vxlan' | 'wireguard'
  readonly wireguardPort?: number
}

/** undefined: the pods of a node reach those of no other, and Services have no data path. Adds what is wrong to `problems`. */
export function podNetworkSettings(
  file: PodNetworkFields,
  ranges: { readonly nodeCidrs: NodeCidrSettings | undefined; readonly serviceCIDR: string },
  problems: string[],
): PodNetworkSettings | undefined {
  const { podNetwork = 'node', clusterDomain = defaultClusterDomain } = file
  const { podNetworkTunnel = 'vxlan', wireguardPort: port = usualWireguardPort } = file
  const problem = dnsSubdomainProblem(clusterDomain)
  if (problem !== undefined) problems.push(`clusterDomain: ${JSON.stringify(clusterDomain)} ${problem}`)
  if (port < 1 || port > 65_535) problems.push(`wireguardPort: ${port} must be a port, 1 to 65535`)
  if (podNetwork === 'node') return undefined
  const { nodeCidrs, serviceCIDR } = ranges
  if (nodeCidrs === undefined) {
    problems.push('podNetwork: routed needs an address range for each node: remove allocateNodeCIDRs: false')
    return undefined
  }
  const { clusterCIDR } = nodeCidrs
  return { clusterCIDR, serviceCIDR, clusterDomain, ...(podNetworkTunnel === 'wireguard' && { wireguard: { port } }) }
}

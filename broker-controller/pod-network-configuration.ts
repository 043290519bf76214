/** The settings of the fleet's network, as far as the configuration turns it on. */
import { dnsSubdomainProblem } from '../api/names.ts'
import { defaultClusterDomain } from '../api/network/cluster-dns.ts'
import type { NodeCidrSettings } from './controllers/node-cidr.ts'

export type PodNetworkSettings = {
  readonly clusterCIDR: string
  readonly serviceCIDR: string
  /** Without dots at its ends. */
  readonly clusterDomain: string
}

/** undefined: the pods of a node reach those of no other, and Services have no data path. Adds what is wrong to `problems`. */
export function podNetworkSettings(
  file: { readonly podNetwork?: 'node' | 'routed'; readonly clusterDomain?: string },
  ranges: { readonly nodeCidrs: NodeCidrSettings | undefined; readonly serviceCIDR: string },
  problems: string[],
): PodNetworkSettings | undefined {
  const { podNetwork = 'node', clusterDomain = defaultClusterDomain } = file
  const problem = dnsSubdomainProblem(clusterDomain)
  if (problem !== undefined) problems.push(`clusterDomain: ${JSON.stringify(clusterDomain)} ${problem}`)
  if (podNetwork === 'node') return undefined
  const { nodeCidrs, serviceCIDR } = ranges
  if (nodeCidrs === undefined) {
    problems.push('podNetwork: routed needs an address range for each node: remove allocateNodeCIDRs: false')
    return undefined
  }
  return { clusterCIDR: nodeCidrs.clusterCIDR, serviceCIDR, clusterDomain }
}

/** The settings `clusterCIDR` and `serviceCIDR`: the addresses of pods and Services, in one IP family or in both. */
import { type IPv6Ranges, ipv6Ranges, rangePair } from '../../api/network/ipv6-ranges.ts'
import { defaultServiceCIDR, serviceCidrBeside, serviceCidrProblem } from '../../api/network/service-range.ts'
import { defaultNodeCidrSettings, type NodeCidrSettings, nodeCidrProblem } from '../controllers/node-cidr.ts'

export type NetworkRanges = {
  /** undefined: nodes get no addresses for pods from us. */
  readonly nodeCidrs: NodeCidrSettings | undefined
  /** The IPv4 range from which Services get their addresses. */
  readonly serviceCIDR: string
  /** undefined: pods and Services have IPv4 addresses only. */
  readonly ipv6: IPv6Ranges | undefined
}

export type NetworkRangeFields = {
  readonly allocateNodeCIDRs?: boolean
  readonly clusterCIDR?: string
  readonly nodeCIDRMaskSize?: number
  readonly serviceCIDR?: string
}

/** Adds what is wrong to `problems`. Without `allocateNodeCIDRs` the range of pods is not read. */
export function networkRanges(file: NetworkRangeFields, problems: string[]): NetworkRanges {
  const pods = file.allocateNodeCIDRs === false ? {} : pairOf('clusterCIDR', file.clusterCIDR)
  const services = pairOf('serviceCIDR', file.serviceCIDR)
  const named = [pods.problem, services.problem].filter((problem) => problem !== undefined)
  problems.push(...named)
  const ipv6 = named.length > 0 ? undefined : ipv6Ranges({ clusterCIDR: pods.ipv6, serviceCIDR: services.ipv6 })
  problems.push(...(ipv6?.problems ?? []))
  const nodeCidrs = nodeCidrsIn(file, pods.ipv4, problems)
  return { nodeCidrs, serviceCIDR: serviceCidrIn(services.ipv4, nodeCidrs, problems), ipv6: ipv6?.ranges }
}

const usual = { clusterCIDR: defaultNodeCidrSettings.clusterCIDR, serviceCIDR: defaultServiceCIDR }

function pairOf(field: 'clusterCIDR' | 'serviceCIDR', text: string | undefined) {
  return text === undefined ? {} : rangePair(field, text, usual[field])
}

function nodeCidrsIn(
  file: NetworkRangeFields,
  clusterCIDR: string = defaultNodeCidrSettings.clusterCIDR,
  problems: string[],
): NodeCidrSettings | undefined {
  if (file.allocateNodeCIDRs === false) return undefined
  const { nodeCIDRMaskSize = defaultNodeCidrSettings.nodeCIDRMaskSize } = file
  const problem = nodeCidrProblem({ clusterCIDR, nodeCIDRMaskSize })
  if (problem !== undefined) problems.push(problem)
  return { clusterCIDR, nodeCIDRMaskSize }
}

function serviceCidrIn(given: string | undefined, pods: NodeCidrSettings | undefined, problems: string[]): string {
  const serviceCIDR = given ?? serviceCidrBeside(pods?.clusterCIDR)
  const problem = serviceCidrProblem(serviceCIDR, pods?.clusterCIDR)
  if (problem !== undefined) problems.push(problem)
  return serviceCIDR
}

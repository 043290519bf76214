/** The addresses of Services, and the one that belongs to the API. */
import { type Cidr, cidrsOverlap, formatIPv4, parseCidr } from '../text/cidr.ts'
import type { Service } from './service.ts'

/** As kubeadm's `networking.serviceSubnet`. */
export const defaultServiceCIDR = '10.96.0.0/12'
/** That of k3s: the default where pods have addresses in the other one. */
const otherServiceCIDR = '10.43.0.0/16'

/** The range where none is configured. `clusterCIDR`: of the pods; undefined: Bramble assigns none. */
export function serviceCidrBeside(clusterCIDR: string | undefined): string {
  const overlaps = serviceCidrProblem(defaultServiceCIDR, clusterCIDR) !== undefined
  return overlaps ? otherServiceCIDR : defaultServiceCIDR
}

/** kube-apiserver accepts no larger range than /12; a /29 is the smallest with some addresses to allocate. */
const bits = { least: 12, most: 29 } as const

/** What is wrong with the setting `serviceCIDR`; undefined: nothing. `clusterCIDR`: the range of the pods, if there is one. */
export function serviceCidrProblem(serviceCIDR: string, clusterCIDR: string | undefined): string | undefined {
  const range = parseCidr(serviceCIDR)
  if (range === undefined || range.bits < bits.least || range.bits > bits.most) {
    const sizes = `/${bits.least} to /${bits.most}`
    return `serviceCIDR: ${JSON.stringify(serviceCIDR)} must be an IPv4 range of ${sizes} (like ${defaultServiceCIDR})`
  }
  const pods = clusterCIDR === undefined ? undefined : parseCidr(clusterCIDR)
  if (pods === undefined || !cidrsOverlap(range, pods)) return undefined
  return `serviceCIDR: ${serviceCIDR} must not overlap clusterCIDR ${clusterCIDR}`
}

/** Offset of `default/kubernetes` in the IPv4 range: the first usable address. */
export const kubernetesServicePlace = 1

export function kubernetesServiceAddress({ first }: Cidr): string {
  return formatIPv4(first + kubernetesServicePlace)
}

export function isKubernetesService({ metadata }: Pick<Service, 'metadata'>): boolean {
  return metadata.name === 'kubernetes' && metadata.namespace === 'default'
}

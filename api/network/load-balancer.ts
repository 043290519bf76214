/** Services of the type LoadBalancer: what the controller and the nodes share. */
import type { Service } from './service.ts'

/**
 * On a Service whose `status.loadBalancer` the controller has filled: the node that answers for its addresses, or `allNodes`. A controller
 * that finds another node here moves them to it, so it can be set by hand.
 */
export const loadBalancerNodeAnnotation = 'bramble.dev/load-balancer-node'
/** The addresses of the Service are those of nodes: each answers for its own. Not a name that a node can have. */
export const allNodes = '*'
/** The address that a Service asks for, or one of each family with a comma between them; `spec.loadBalancerIP` is deprecated. */
export const loadBalancerIPAnnotation = 'bramble.dev/load-balancer-ip'
/** The first one with a value counts. The others are MetalLB's, its names of now and of before. */
export const loadBalancerIPAnnotations: readonly string[] = [
  loadBalancerIPAnnotation,
  'metallb.io/loadBalancerIPs',
  'metallb.universe.tf/loadBalancerIPs',
]
/** MetalLB's: Services of a namespace with one value may have one address. */
export const allowSharedIPAnnotations: readonly string[] = [
  'metallb.io/allow-shared-ip',
  'metallb.universe.tf/allow-shared-ip',
]

/** The only node that takes the addresses of the Service; undefined: none is chosen, or they are not Bramble's to take. */
export function loadBalancerNodeOf({ metadata, spec = {} }: Service): string | undefined {
  const node = metadata.annotations?.[loadBalancerNodeAnnotation]
  return spec.type !== 'LoadBalancer' || !node || node === allNodes ? undefined : node
}

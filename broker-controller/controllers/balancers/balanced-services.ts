/** Which Services get addresses of a load balancer from this controller, and what they ask for. */
import { loadBalancerIPAnnotation, loadBalancerNodeAnnotation } from '../../../api/network/load-balancer.ts'
import type { Service } from '../../../api/network/service.ts'
import { ipVersion } from '../../../api/text/ip-address.ts'
import type { StoredObject } from '../../store/store.ts'

/** What decisions need of a Service of the type LoadBalancer. */
export type BalancedService = {
  /** `namespace/name` */
  readonly key: string
  readonly createdAt: string
  readonly policy: 'Cluster' | 'Local'
  readonly ports: readonly BalancedPortKey[]
  /** undefined: any address will do. */
  readonly requestedIP?: string
  /** Of `status.loadBalancer`, of IPv4. */
  readonly ips: readonly string[]
  /** Of its annotation: a node, `allNodes`, or undefined: Bramble has written nothing. */
  readonly node?: string
  /** Names of nodes with a ready endpoint; of a Service with the policy Local. */
  readonly endpointNodes: ReadonlySet<string>
  /** Nodes forward to it in IPv6 only: an address of IPv4 would lead nowhere. */
  readonly isIPv6Only?: true
}

/** `TCP/80` */
export type BalancedPortKey = string

/** What a Service should have; `problem`: why it has no address, or not the one that it asks for. */
export type Balancing = {
  readonly ips: readonly string[]
  readonly node?: string
  readonly problem?: string
}

export const notBalanced: Balancing = { ips: [] }

/** Of a Service with addresses of IPv6 only. */
export const ipv6Only: Balancing = {
  ips: [],
  problem:
    'Load balancers have addresses of IPv4, and the Service has IPv6 only: add IPv4 to its ipFamilies, with ipFamilyPolicy PreferDualStack',
}

/** A Service with a class belongs to another program (core/v1 ServiceSpec.loadBalancerClass). */
export function isBalanced({ metadata, spec = {} }: Service): boolean {
  return spec.type === 'LoadBalancer' && !spec.loadBalancerClass && metadata.deletionTimestamp === undefined
}

export function portKey(protocol: string | undefined, port: number): BalancedPortKey {
  return `${protocol || 'TCP'}/${port}`
}

/** `key`: of this Service. */
export function balancedService(
  key: string,
  { metadata, spec = {}, status }: StoredObject<'services'>,
  endpointNodes: ReadonlySet<string>,
): BalancedService {
  const requestedIP = metadata.annotations?.[loadBalancerIPAnnotation] || spec.loadBalancerIP
  const node = metadata.annotations?.[loadBalancerNodeAnnotation]
  return {
    key,
    createdAt: metadata.creationTimestamp ?? '',
    policy: spec.externalTrafficPolicy === 'Local' ? 'Local' : 'Cluster',
    ports: (spec.ports ?? []).map(({ protocol, port }) => portKey(protocol, port)),
    ips: (status?.loadBalancer?.ingress ?? []).flatMap(({ ip = '' }) => (ipVersion(ip) === 4 ? [ip] : [])),
    ...(requestedIP && { requestedIP }),
    ...(node && { node }),
    endpointNodes,
    ...(spec.ipFamilies?.every((family) => family === 'IPv6') && { isIPv6Only: true }),
  }
}

/** The oldest first: of two that want the same, it has the right to it. */
export function olderFirst(a: BalancedService, b: BalancedService): number {
  return a.createdAt < b.createdAt || (a.createdAt === b.createdAt && a.key < b.key) ? -1 : 1
}

/**
 * Another program has filled the status, and this controller leaves it alone. `mayBeOurs`: an address that this controller gives; a client
 * that replaces the Service may have removed the annotation.
 */
export function isForeign({ ips, node }: BalancedService, mayBeOurs: (ip: string) => boolean): boolean {
  return node === undefined && ips.length > 0 && !ips.every(mayBeOurs)
}

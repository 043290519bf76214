/** Which Services get addresses of a load balancer from this controller, and what they ask for. */
import { loadBalancerIPAnnotation, loadBalancerNodeAnnotation } from '../../../api/network/load-balancer.ts'
import type { Service } from '../../../api/network/service.ts'
import { canonicalIPv6, type IPFamily, ipVersion } from '../../../api/text/ip-address.ts'
import type { StoredObject } from '../../store/store.ts'

/** What decisions need of a Service of the type LoadBalancer. */
export type BalancedService = {
  /** `namespace/name` */
  readonly key: string
  readonly createdAt: string
  readonly policy: 'Cluster' | 'Local'
  readonly ports: readonly BalancedPortKey[]
  /** At most one of each family is given; without one of a family any address of it will do. */
  readonly requestedIPs?: readonly string[]
  /** In which nodes forward to it, the preferred one first. */
  readonly families: readonly IPFamily[]
  /** It is to have addresses of all of them, or none. */
  readonly needsAll?: boolean
  /** Of `status.loadBalancer`, of its families; those of IPv6 in canonical form. */
  readonly ips: readonly string[]
  /** Of its annotation: a node, `allNodes`, or undefined: Bramble has written nothing. */
  readonly node?: string
  /** Names of nodes with a ready endpoint; of a Service with the policy Local. */
  readonly endpointNodes: ReadonlySet<string>
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

/** A Service with a class belongs to another program (core/v1 ServiceSpec.loadBalancerClass). */
export function isBalanced({ metadata, spec = {} }: Service): boolean {
  return spec.type === 'LoadBalancer' && !spec.loadBalancerClass && metadata.deletionTimestamp === undefined
}

export function portKey(protocol: string | undefined, port: number): BalancedPortKey {
  return `${protocol || 'TCP'}/${port}`
}

/** What is longer is no address (`INET6_ADDRSTRLEN` of netinet/in.h, without its end). */
const longestAddress = 45

/** `key`: of this Service. `endpointNodes`: those with a ready endpoint of the family. `ipv6`: pods of the fleet have addresses of both families. */
export function balancedService(
  key: string,
  { metadata, spec = {}, status }: StoredObject<'services'>,
  endpointNodes: (family: IPFamily) => ReadonlySet<string>,
  ipv6: boolean,
): BalancedService {
  const families = familiesOf(spec.ipFamilies)
  const requested = metadata.annotations?.[loadBalancerIPAnnotation] || spec.loadBalancerIP || ''
  // The API takes 1.5 MB here, and each pass looks at all of them.
  const requestedIPs = requested.split(',', 2).map((text) => canonical(text.trim().slice(0, longestAddress + 1)))
  const node = metadata.annotations?.[loadBalancerNodeAnnotation]
  return {
    key,
    createdAt: metadata.creationTimestamp ?? '',
    policy: spec.externalTrafficPolicy === 'Local' ? 'Local' : 'Cluster',
    ports: (spec.ports ?? []).map(({ protocol, port }) => portKey(protocol, port)),
    families,
    ...(ipv6 && spec.ipFamilyPolicy === 'RequireDualStack' && { needsAll: true }),
    ips: (status?.loadBalancer?.ingress ?? []).flatMap(({ ip = '' }) =>
      hasFamilyOf(ip, families) ? [canonical(ip)] : [],
    ),
    ...(requested && { requestedIPs: requestedIPs.filter((text) => text !== '') }),
    ...(node && { node }),
    endpointNodes: endpointNodes(families.includes('IPv4') ? 'IPv4' : 'IPv6'),
  }
}

/** A Service from before IPv6 may name none. */
function familiesOf(named: readonly string[] = []): readonly IPFamily[] {
  const known = named.filter((family) => family === 'IPv4' || family === 'IPv6')
  return known.length === 0 ? ['IPv4'] : known
}

function hasFamilyOf(ip: string, families: readonly IPFamily[]): boolean {
  const family = addressFamily(ip)
  return family !== undefined && families.includes(family)
}

/** undefined: it is no address. */
export function addressFamily(ip: string): IPFamily | undefined {
  const version = ipVersion(ip)
  return version && `IPv${version}`
}

function canonical(ip: string): string {
  return canonicalIPv6(ip) ?? ip
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

/** Which Services get addresses of a load balancer from this controller, and what they ask for. */
import {
  allowSharedIPAnnotations,
  loadBalancerIPAnnotations,
  loadBalancerNodeAnnotation,
} from '../../../api/network/load-balancer.ts'
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
  /** Addresses in `status.loadBalancer` of its families; IPv6 addresses in canonical form. */
  readonly ips: readonly string[]
  /** Value of its annotation: a node, or `allNodes`; undefined: Bramble has written nothing. */
  readonly node?: string
  /** Names of nodes with a ready endpoint; filled for a Service with the policy Local. */
  readonly endpointNodes: ReadonlySet<string>
  /** undefined: it shares its addresses with no other Service. */
  readonly sharing?: Sharing
}

/** Services share addresses where both are the same. */
export type Sharing = {
  /** Its namespace, and the value of its annotation. */
  readonly key: string
  /** With the policy Local one node must have endpoints of each: its selector. '' with the policy Cluster. */
  readonly backend: string
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

/** What is longer is not an address (`INET6_ADDRSTRLEN` of netinet/in.h, without its end). */
const longestAddress = 45
/** A longer sharing key is ignored: each pass compares them all. */
const longestSharingKey = 253

/** `key`: of this Service. `endpointNodes`: those with a ready endpoint of the family. `ipv6`: pods of the fleet have addresses of both families. */
export function balancedService(
  key: string,
  { metadata, spec = {}, status }: StoredObject<'services'>,
  endpointNodes: (family: IPFamily) => ReadonlySet<string>,
  ipv6: boolean,
): BalancedService {
  const families = familiesOf(spec.ipFamilies)
  const requested = annotated(metadata, loadBalancerIPAnnotations) || spec.loadBalancerIP || ''
  // The API takes 1.5 MB here, and each pass looks at all of them.
  const requestedIPs = requested.split(',', 2).map((text) => canonical(text.trim().slice(0, longestAddress + 1)))
  const node = metadata.annotations?.[loadBalancerNodeAnnotation]
  const sharing = sharingOf(metadata, spec)
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
    ...(sharing !== undefined && { sharing }),
  }
}

function annotated({ annotations }: Service['metadata'], names: readonly string[]): string {
  return names.map((name) => annotations?.[name] ?? '').find((value) => value !== '') ?? ''
}

/** Not across namespaces: the value is not a secret, and ports of the address are what one namespace would take from another. */
function sharingOf(metadata: Service['metadata'], spec: NonNullable<Service['spec']>): Sharing | undefined {
  const value = annotated(metadata, allowSharedIPAnnotations)
  if (value === '' || value.length > longestSharingKey) return undefined
  const key = `${metadata.namespace}/${value}`
  if (spec.externalTrafficPolicy !== 'Local') return { key, backend: '' }
  const selector = Object.entries(spec.selector ?? {}).sort(([one], [other]) => (one < other ? -1 : 1))
  // Endpoints that no selector chooses are those of one Service.
  return selector.length === 0 ? undefined : { key, backend: JSON.stringify(selector) }
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

/** undefined: it is not an address. */
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

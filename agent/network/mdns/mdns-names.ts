/** Which names this node publishes on a link, each with its addresses there. */
import { dnsLabelProblem } from '../../../api/names.ts'
import type { ServiceState } from '../../../api/network/service-endpoints.ts'
import { isWithin } from '../../../api/text/cidr.ts'
import { isInIPv6Range } from '../../../api/text/ipv6-range.ts'
import type { HostName } from './mdns-message.ts'

/**
 * A connection of this machine to a local network: an IPv4 address on an interface, and the IPv6 addresses of that
 * interface.
 */
export type MdnsLink = {
  readonly device: string
  readonly address: string
  /** Range of the address: `192.168.1.0/24`. */
  readonly range: string
  /** undefined: the interface has no link-local address (`fe80::/10`), from which IPv6 messages are sent. */
  readonly ipv6:
    | {
        /**
         * Routable, lasting addresses in canonical form: not temporary, not deprecated, not those of load balancers.
         */
        readonly addresses: readonly string[]
        /** Ranges of all routable addresses: `fd00:7::/64`. */
        readonly ranges: readonly string[]
      }
    | undefined
}

export type MdnsSettings = {
  /** By name; undefined: the one with the address of the node. */
  readonly interfaces: readonly string[] | undefined
  /** Load balancers too, whose address this node has. */
  readonly services: boolean
}

export type PublishedFacts = {
  readonly nodeName: string
  readonly services: ReadonlyMap<string, ServiceState>
  /** The addresses of load balancers that this machine has. */
  readonly balancers: ReadonlySet<string>
}

/** Names published on one link: they fill a few packets. */
const mostNames = 64
/** IPv6 addresses of the node on one link, which has one or two prefixes. */
const mostAddresses = 4

export function linksToUse(
  links: readonly MdnsLink[],
  { interfaces }: MdnsSettings,
  nodeAddress: string | undefined,
): readonly MdnsLink[] {
  if (interfaces !== undefined) return links.filter(({ device }) => interfaces.includes(device))
  return links.filter(({ address }) => address === nodeAddress)
}

/**
 * `NODE.local`, and `SERVICE.NAMESPACE.local` of load balancers, sorted. None for a node whose name has a dot: it would be a name of
 * another one's. Link-local addresses are not published: no Service and no pod of the node is reached by them.
 */
export function namesToPublish(
  { nodeName, services, balancers }: PublishedFacts,
  { address, range, ipv6 }: MdnsLink,
  settings: MdnsSettings,
): readonly HostName[] {
  const ofNode = [address, ...(ipv6?.addresses ?? []).slice(0, mostAddresses)]
  const own = dnsLabelProblem(nodeName) === undefined ? [{ name: `${nodeName}.local`, addresses: ofNode }] : []
  if (!settings.services) return own
  const isHere = (ip: string) => balancers.has(ip) && (isWithin(ip, range) || isOfRanges(ip, ipv6?.ranges))
  const ofServices = [...services.values()].flatMap(({ namespace, name, type, loadBalancerNode, loadBalancerIPs }) => {
    if (type !== 'LoadBalancer' || loadBalancerNode !== nodeName) return []
    const here = (loadBalancerIPs ?? []).filter(isHere)
    const [ipv4, second] = [here.find((ip) => !ip.includes(':')), here.find((ip) => ip.includes(':'))]
    const addresses = [ipv4, second].filter((ip) => ip !== undefined)
    return addresses.length === 0 ? [] : [{ name: `${name}.${namespace}.local`, addresses }]
  })
  return [...own, ...ofServices.sort((one, other) => (one.name < other.name ? -1 : 1))].slice(0, mostNames)
}

/** Whether messages of this address may be of the link (RFC 6762, section 11). `from`: as the kernel writes it, with the zone of an address of the link. */
export function isOnLink(from: string, { range, ipv6 }: MdnsLink): boolean {
  if (!from.includes(':')) return isWithin(from, range)
  return isOfRanges(withoutZone(from), ['fe80::/10', ...(ipv6?.ranges ?? [])])
}

/** `fe80::1%eth0` becomes `fe80::1`. */
export function withoutZone(address: string): string {
  return address.replace(/%.*/s, '')
}

function isOfRanges(ip: string, ranges: readonly string[] = []): boolean {
  return ranges.some((range) => isInIPv6Range(ip, range))
}

/** Which names this node publishes on a link, each with one address. */
import { dnsLabelProblem } from '../../../api/names.ts'
import type { ServiceState } from '../../../api/network/service-endpoints.ts'
import { isWithin } from '../../../api/text/cidr.ts'
import type { AddressRecord } from './mdns-message.ts'

/** A connection of this machine to a network of the house. */
export type MdnsLink = {
  readonly device: string
  readonly address: string
  /** Of the address: `192.168.1.0/24`. */
  readonly range: string
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

/** Of a link: some packets of them. */
const mostNames = 64

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
 * another one's.
 */
export function namesToPublish(
  { nodeName, services, balancers }: PublishedFacts,
  { address, range }: MdnsLink,
  settings: MdnsSettings,
): readonly AddressRecord[] {
  const own = dnsLabelProblem(nodeName) === undefined ? [{ name: `${nodeName}.local`, address }] : []
  if (!settings.services) return own
  const ofServices = [...services.values()].flatMap(({ namespace, name, type, loadBalancerNode, loadBalancerIPs }) => {
    if (type !== 'LoadBalancer' || loadBalancerNode !== nodeName) return []
    const here = loadBalancerIPs?.find((ip) => balancers.has(ip) && isWithin(ip, range))
    return here === undefined ? [] : [{ name: `${name}.${namespace}.local`, address: here }]
  })
  return [...own, ...ofServices.sort((one, other) => (one.name < other.name ? -1 : 1))].slice(0, mostNames)
}

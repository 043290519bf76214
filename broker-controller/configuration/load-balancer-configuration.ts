/** The settings of load balancers: where the addresses of Services of the type LoadBalancer come from. */
import { isIP } from 'node:net'
import type { IPv6Ranges } from '../../api/network/ipv6-ranges.ts'
import { isRoutableIPv6 } from '../../api/text/ipv6-range.ts'
import {
  type AddressPool,
  type AddressRange,
  boundsOf,
  mostPoolAddresses,
  parseAddressRange,
  poolOf,
  rangesOverlap,
} from '../controllers/balancers/address-pool.ts'
import { portKey } from '../controllers/balancers/balanced-services.ts'
import type { LoadBalancerSettings } from '../controllers/balancers/load-balancer-controller.ts'
import type { PodNetworkKind } from './pod-network-configuration.ts'

export type LoadBalancerFields = {
  readonly podNetwork: PodNetworkKind
  readonly loadBalancer?: 'pool' | 'nodes' | 'none'
  readonly loadBalancerPool?: readonly string[]
}

/** What a pool must leave alone, and the ports that no Service takes at the addresses of nodes. */
export type LoadBalancerSurroundings = {
  readonly nodeCidrs: { readonly clusterCIDR: string } | undefined
  readonly serviceCIDR: string
  /** undefined: pods and Services have IPv4 addresses only. */
  readonly ipv6?: IPv6Ranges | undefined
  /** Names and addresses of the controller, as far as they are configured. */
  readonly controllerHosts: readonly (string | undefined)[]
  /** Ports of its API and MQTT. */
  readonly controllerPorts: readonly number[]
  /** UDP: between nodes of different segments. */
  readonly tunnelPorts: readonly number[]
}

const sshPort = 22

function usualMode(pool: LoadBalancerFields['loadBalancerPool'], isRouted: boolean): LoadBalancerSettings['mode'] {
  if (pool !== undefined) return 'pool'
  return isRouted ? 'nodes' : 'none'
}

function needsRouting({ loadBalancer, loadBalancerPool }: LoadBalancerFields, mode: string): string {
  const [field, name] =
    loadBalancer === undefined
      ? [`loadBalancerPool: ${loadBalancerPool?.join(', ')}`, 'loadBalancerPool']
      : [`loadBalancer: ${mode}`, 'loadBalancer']
  const reason = 'which gives Services a data path on every node'
  return `${field} needs podNetwork: routed, ${reason}: set it, or remove ${name}`
}

/** Without settings: a pool where one is configured, else the addresses of nodes. Adds what is wrong to `problems`. */
export function loadBalancerSettings(
  file: LoadBalancerFields,
  around: LoadBalancerSurroundings,
  problems: string[],
): LoadBalancerSettings {
  const { podNetwork, loadBalancerPool } = file
  const isRouted = podNetwork === 'routed'
  const mode = file.loadBalancer ?? usualMode(loadBalancerPool, isRouted)
  if (mode !== 'none' && !isRouted) problems.push(needsRouting(file, mode))
  if (mode !== 'pool') {
    if (loadBalancerPool !== undefined) {
      problems.push(`loadBalancerPool: not used with loadBalancer: ${mode}; remove one of them`)
    }
    if (mode === 'none') return { mode }
    const ports = [sshPort, ...around.controllerPorts].map((port) => portKey('TCP', port))
    return { mode, keptPorts: new Set([...ports, ...around.tunnelPorts.map((port) => portKey('UDP', port))]) }
  }
  const pool = poolIn(loadBalancerPool ?? [], problems)
  for (const range of pool) problems.push(...rangeProblems(range, around))
  return { mode, pool }
}

function poolIn(texts: readonly string[], problems: string[]): AddressPool {
  if (texts.length === 0) {
    problems.push(
      'loadBalancerPool: must have at least one range with loadBalancer: pool (like 192.168.1.240-192.168.1.250)',
    )
  }
  const pool: AddressRange[] = []
  for (const text of texts) {
    const range = parseAddressRange(text)
    const other = range && pool.find((known) => rangesOverlap(known, range))
    if (range === undefined) {
      problems.push(`loadBalancerPool: ${JSON.stringify(text)} must be ${expected(text)}`)
    } else if (other !== undefined) {
      problems.push(`loadBalancerPool: ${text} must not overlap ${other.text}: remove one of them, or make it smaller`)
    } else pool.push(range)
  }
  for (const family of ['IPv4', 'IPv6'] as const) {
    const size = poolOf(pool, family).reduce((sum, { first, last }) => sum + last - first + 1n, 0n)
    if (size <= mostPoolAddresses) continue
    const addresses = family === 'IPv4' ? 'addresses' : 'IPv6 addresses'
    problems.push(
      `loadBalancerPool: ${size} ${addresses} must be at most ${mostPoolAddresses}: make the ranges smaller`,
    )
  }
  return pool
}

function expected(text: string): string {
  return text.includes(':')
    ? 'a range of addresses of one family (like fd00:9::240-fd00:9::250 or fd00:9::2:0/120)'
    : 'an IPv4 range (like 192.168.1.240-192.168.1.250 or 192.168.2.0/28)'
}

/** Addresses that no machine on a link has: this host, loopback, link-local, multicast and reserved (RFC 6890). */
const unusable = ['0.0.0.0/8', '127.0.0.0/8', '169.254.0.0/16', '224.0.0.0/3']

function rangeProblems(range: AddressRange, around: LoadBalancerSurroundings): readonly string[] {
  const { nodeCidrs, serviceCIDR, ipv6, controllerHosts } = around
  const remedy = 'choose addresses of your network that its DHCP server does not assign'
  const overlaps = (text: string) => {
    const bounds = boundsOf(text)
    return bounds !== undefined && rangesOverlap(range, bounds)
  }
  const named = [
    ...(nodeCidrs === undefined ? [] : [['clusterCIDR', nodeCidrs.clusterCIDR] as const]),
    ['serviceCIDR', serviceCIDR] as const,
    ...(ipv6 === undefined
      ? []
      : [['clusterCIDR', ipv6.clusterCIDR] as const, ['serviceCIDR', ipv6.serviceCIDR] as const]),
  ]
  return [
    ...named
      .filter(([, cidr]) => overlaps(cidr))
      .map(([field, cidr]) => `loadBalancerPool: ${range.text} must not overlap ${field} ${cidr}: ${remedy}`),
    ...unusable
      .filter(overlaps)
      .map(
        (cidr) => `loadBalancerPool: ${range.text} must not overlap ${cidr}, whose addresses no machine has: ${remedy}`,
      ),
    ...(range.family === 'IPv6' ? ipv6Problems(range, ipv6) : []),
    ...controllerHosts
      .filter((host) => host !== undefined && overlaps(`${host}/${isIP(host) === 6 ? 128 : 32}`))
      .map((host) => `loadBalancerPool: ${range.text} must not have ${host}, an address of the controller: ${remedy}`),
  ]
}

function ipv6Problems({ text, first, last }: AddressRange, ipv6: IPv6Ranges | undefined): readonly string[] {
  if (ipv6 === undefined) {
    return [
      `loadBalancerPool: ${text} has IPv6 addresses, which Services of this fleet do not have: add an IPv6 range to clusterCIDR and serviceCIDR, or remove it`,
    ]
  }
  if (isRoutableIPv6(first) && isRoutableIPv6(last)) return []
  return [
    `loadBalancerPool: ${text} must be of 2000::/3 or fc00::/7, the addresses of single machines: choose addresses of your network`,
  ]
}

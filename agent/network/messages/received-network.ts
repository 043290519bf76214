/** The message of the fleet's network as a node uses it: its values go into routes and packet filters, so each is checked. */
import { isDeepStrictEqual } from 'node:util'
import { type Decoded, decode } from '../../../api/decode.ts'
import { dnsSubdomainProblem } from '../../../api/names.ts'
import { isProbePort } from '../../../api/network/address-probe.ts'
import { type NetworkMessage, NetworkMessageSchema, type NetworkPeer } from '../../../api/network/pod-network.ts'
import { wireguardEndpointProblem, wireguardKeyProblem } from '../../../api/network/wireguard.ts'
import { invalid } from '../../../api/problem.ts'
import { parseCidr } from '../../../api/text/cidr.ts'
import { canonicalIPv6, ipVersion } from '../../../api/text/ip-address.ts'
import {
  boundsOfIPv6Range,
  formatIPv6Range,
  isRoutableIPv6,
  parseIPv6,
  parseIPv6Range,
} from '../../../api/text/ipv6-range.ts'
import { isObject } from '../../../api/text/json.ts'

/** `problems`: of the parts that were left out, as sentences. */
export type Received<T> = { readonly message: T; readonly problems: readonly string[] }

/** The name of a part that cannot be decoded, for a sentence; its fields may be of any shape. */
export function nameIn(item: unknown): string {
  const { namespace, name } = isObject(item) ? item : {}
  return JSON.stringify(
    [namespace, name]
      .filter((part) => typeof part === 'string')
      .join('/')
      .slice(0, 320),
  )
}

/** A node with an invalid value is dropped; a message whose own values are invalid is refused. Never throws. */
export function decodeNetwork(input: unknown): Decoded<Received<NetworkMessage>> {
  const decoded = decode(NetworkMessageSchema, input)
  if (!decoded.ok) return decoded
  const { clusterCIDR, serviceCIDR, ipv6, clusterDomain, wireguard, nodes } = decoded.value
  const ranges = Object.entries({ clusterCIDR, serviceCIDR }).filter(([, range]) => parseCidr(range) === undefined)
  const problems = ranges.map(([field, range]) => invalid(field, range, 'must be an IPv4 range'))
  const ofIPv6 = Object.entries(ipv6 ?? {}).filter(([, range]) => !isRoutableRange(range))
  const wanted = 'must be an IPv6 range, global or unique local'
  problems.push(...ofIPv6.map(([field, range]) => invalid(`ipv6.${field}`, range, wanted)))
  const domain = dnsSubdomainProblem(clusterDomain)
  if (domain !== undefined) problems.push(invalid('clusterDomain', clusterDomain, domain))
  const port = wireguard?.port ?? 1
  if (port < 1 || port > 65_535) problems.push(invalid('wireguard.port', port, 'must be a port'))
  const { unknownFields } = decoded
  if (problems.length > 0) return { ok: false, problems, unknownFields }
  const left = nodes.filter((peer) => !isUsable(peer)).map(({ name }) => `node ${JSON.stringify(name.slice(0, 253))}`)
  const message = left.length === 0 ? decoded.value : { ...decoded.value, nodes: nodes.filter(isUsable) }
  return { ok: true, value: { message, problems: left }, unknownFields }
}

function isUsable({ name, podCIDR, address, segment, zone = '', ...peer }: NetworkPeer): boolean {
  const { wireguardKey: key, wireguardEndpoint: endpoint } = peer
  const isNamed = dnsSubdomainProblem(name) === undefined && isShort(segment) && isShort(zone)
  const isAddressed = parseCidr(podCIDR) !== undefined && ipVersion(address) === 4 && isUsableIPv6(peer.ipv6)
  const isProbed = peer.probePort === undefined || isProbePort(peer.probePort)
  const hasKey = key === undefined || wireguardKeyProblem(key) === undefined
  return (
    isNamed &&
    isAddressed &&
    isProbed &&
    hasKey &&
    (endpoint === undefined || wireguardEndpointProblem(endpoint) === undefined)
  )
}

/** Link-local addresses are valid on one link only, so they are not gateways here. */
function isUsableIPv6(ipv6: NetworkPeer['ipv6']): boolean {
  if (ipv6 === undefined) return true
  const { podCIDR, address } = ipv6
  return isIPv6Range(podCIDR) && (address === undefined || isGateway(address))
}

function isGateway(address: string): boolean {
  const number = canonicalIPv6(address) === address ? parseIPv6(address) : undefined
  return number !== undefined && isRoutableIPv6(number)
}

/** As a controller takes it: packets to addresses of links, to groups and to IPv4-mapped ones are not for pods. */
function isRoutableRange(text: string): boolean {
  const range = parseIPv6Range(text)
  return range !== undefined && isIPv6Range(text) && boundsOfIPv6Range(range).every(isRoutableIPv6)
}

/** In canonical form. */
function isIPv6Range(text: string): boolean {
  const range = parseIPv6Range(text)
  return range !== undefined && formatIPv6Range(range) === text
}

function isShort(text: string): boolean {
  return text.length <= 253
}

/** Does it mean the same, in whichever message it was? */
export function isSameNetwork(before: NetworkMessage | undefined, after: NetworkMessage | undefined): boolean {
  if (before === undefined || after === undefined) return before === after
  return isDeepStrictEqual({ ...before, epoch: '', version: 0 }, { ...after, epoch: '', version: 0 })
}

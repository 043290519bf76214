/** What nodes publish of themselves for WireGuard between segments (docs/network.md, "Between sites"). */
import { dnsSubdomainProblem } from '../names.ts'
import { ipVersion } from '../text/ip-address.ts'
import { parseIPv6 } from '../text/ipv6-range.ts'

/** On a Node, written by the node itself only: its public key. */
export const wireguardKeyAnnotation = 'bramble.dev/wireguard-public-key'
/** On a Node: where nodes of other segments reach it, as `HOST:PORT`, or `none`. undefined: its InternalIP and the fleet's port. */
export const wireguardEndpointAnnotation = 'bramble.dev/wireguard-endpoint'
/** On a Node, not for the node itself to write: `true` where it passes packets on between nodes that cannot reach each other. */
export const relayAnnotation = 'bramble.dev/relay'

/** The endpoint of a node that cannot be reached: it connects to others. */
export const noEndpoint = 'none'

/** UDP. Not 51820, the port of a VPN that a machine may have of its own; Cilium uses this one. */
export const usualWireguardPort = 51_871

/** The base64 of 32 bytes; the last digit has two bits that are not used. All zeros are not a key. */
const keyForm = /^(?!A{43})[A-Za-z0-9+/]{42}[AEIMQUYcgkosw048]=$/

/** Why a public or private key is invalid, as WireGuard writes it; undefined: it is valid. */
export function wireguardKeyProblem(text: string): string | undefined {
  return keyForm.test(text) ? undefined : 'must be the base64 of the 32 bytes of a WireGuard key'
}

export type WireguardEndpoint = {
  /** An address, of IPv6 without brackets, or a name to resolve. */
  readonly host: string
  readonly port: number
}

/** `192.0.2.7:51871`, `[2001:db8::7]:51871` or `home.example.org:51871`; undefined: none of these. */
export function parseWireguardEndpoint(text: string): WireguardEndpoint | undefined {
  const match = /^(?:\[([0-9a-fA-F:.]+)\]|([^[\]:]+)):([1-9]\d{0,4})$/.exec(text)
  if (match === null) return undefined
  const [, inBrackets, plain, digits] = match
  const port = Number(digits)
  if (port > 65_535) return undefined
  if (inBrackets !== undefined) return isUnicastIPv6(inBrackets) ? { host: inBrackets, port } : undefined
  return plain !== undefined && isHost(plain) ? { host: plain, port } : undefined
}

/** Why the value of the annotation is invalid; undefined: it is an endpoint or `none`. */
export function wireguardEndpointProblem(text: string): string | undefined {
  if (text === noEndpoint || parseWireguardEndpoint(text) !== undefined) return undefined
  return "must be HOST:PORT with an address or a name (like 'home.example.org:51871'), or 'none'"
}

/** The last part of a name is not a number: `10.1` is an address to the resolver of the C library. */
function isHost(text: string): boolean {
  if (ipVersion(text) === 4) return isUnicast(text)
  return dnsSubdomainProblem(text) === undefined && /[a-z]/.test(text.slice(text.lastIndexOf('.') + 1))
}

/** Neither this host nor a group. */
function isUnicast(address: string): boolean {
  const first = Number(address.slice(0, address.indexOf('.')))
  return first !== 0 && first !== 127 && first < 224
}

/** The same for IPv6, without link-local addresses, which need the name of an interface, and IPv4-mapped ones. */
function isUnicastIPv6(text: string): boolean {
  const address = parseIPv6(text)
  if (address === undefined || address >> 32n === 0xffffn) return false
  return address > 1n && address >> 118n !== 0x3fan && address >> 120n !== 0xffn
}

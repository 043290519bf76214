/**
 * Rules for the ports of bridges that pods are on: what a pod sends has its own addresses. Docker gives pods NET_RAW, with which one could
 * else answer for the router of its neighbours by ARP or neighbour discovery, and get all that they send.
 */
import { formatIPv6, parseIPv6 } from '../../../api/text/ipv6-range.ts'

/** A pod of this node at a port of a bridge. */
export type PodPort = {
  /** The interface of this machine that leads to the pod. */
  readonly port: string
  readonly mac: string
  readonly ip: string
  /** In canonical form; undefined: the pod has none. */
  readonly ipv6?: string
}

/** Before br_netfilter passes packets to other rules, and before the bridge learns addresses (netfilter_bridge.h, NF_BR_PRI_FILTER_BRIDGED). */
const priority = -200

/** Agents of several nodes may run on one machine. */
export function portGuardName(nodeName: string): string {
  return `${portGuardPrefix}${nodeName}`.slice(0, longestName)
}

export const portGuardPrefix = 'bramble-'
/** NFT_NAME_MAXLEN (linux/netfilter/nf_tables.h) has the NUL at the end, too. */
const longestName = 255

/**
 * A transaction of nft, which replaces the table as a whole. `gateways`: addresses of the node on these bridges. A port that is not known, such
 * as that of a pod which is starting or of a container of others, may send with any address that is not of a pod or the node.
 *
 * Packets with the addresses of their port are the most: one lookup accepts them. nft 1.0.6 has no `icmpv6 taddr`; the target is
 * 64 bits behind the beginning of the message (RFC 4861, 4.4). What is neither ARP nor IP would pass policies by, and so would tagged frames:
 * `ether type` is that of the tag, where `meta protocol`, which `ip saddr` alone would look at, is that of the packet.
 */
export function portGuardTable(name: string, ports: readonly PodPort[], gateways: readonly string[]): string {
  const ipv6 = ports.flatMap((one) => ipv6Of(one).map((address) => ({ ...one, address })))
  const taken = [...ports.map(({ ip }) => ip), ...gateways.filter((one) => !one.includes(':'))]
  const takenIPv6 = [...ipv6.map(({ address }) => address), ...gateways.filter(isGlobalIPv6)]
  const unspecified = (address: string) => ports.map(({ port, mac }) => `"${port}" . ${mac} . ${address}`)
  return [
    // `delete` of what is not there fails; `add` of what is there does nothing.
    `add table bridge ${name}`,
    `delete table bridge ${name}`,
    `table bridge ${name} {`,
    // A question whether an address is in use comes from 0.0.0.0 or :: (RFC 5227, 2.1.1; RFC 4862, 5.4.2).
    ...set('own', 'type ifname . ether_addr . ipv4_addr', [
      ...ports.map(({ port, mac, ip }) => `"${port}" . ${mac} . ${ip}`),
      ...unspecified('0.0.0.0'),
    ]),
    ...set('own-ipv6', 'type ifname . ether_addr . ipv6_addr', [
      ...ipv6.map(({ port, mac, address }) => `"${port}" . ${mac} . ${address}`),
      ...unspecified('::'),
    ]),
    ...set(
      'own-targets',
      'typeof iifname . @th,64,128',
      ipv6.map(({ port, address }) => `"${port}" . ${hexOf(address)}`),
    ),
    ...set(
      'ports',
      'type ifname',
      ports.map(({ port }) => `"${port}"`),
    ),
    ...set(
      'links',
      'type ether_addr',
      ports.map(({ mac }) => mac),
    ),
    ...set('taken', 'type ipv4_addr', taken),
    ...set('taken-ipv6', 'type ipv6_addr', takenIPv6),
    ...set('taken-targets', 'typeof @th,64,128', takenIPv6.map(hexOf)),
    ...chain('prerouting', [
      `type filter hook prerouting priority ${priority}; policy accept;`,
      'ether type ip iifname . ether saddr . ip saddr @own accept',
      'iifname @ports goto pod',
      'goto other',
    ]),
    ...chain('pod', [
      'iifname . ether saddr . arp saddr ip @own iifname . arp saddr ether . arp saddr ip @own accept',
      'icmpv6 type { nd-router-advert, nd-redirect } drop',
      'icmpv6 type nd-neighbor-advert iifname . @th,64,128 != @own-targets drop',
      'ether type ip6 iifname . ether saddr . ip6 saddr @own-ipv6 accept',
      'drop',
    ]),
    ...chain('other', [
      'ether saddr @links drop',
      'ip saddr @taken drop',
      'arp saddr ip @taken drop',
      'icmpv6 type nd-neighbor-advert @th,64,128 @taken-targets drop',
      'ip6 saddr @taken-ipv6 drop',
    ]),
    '}',
    '',
  ].join('\n')
}

/** Removes the tables of these names, which are there. */
export function portGuardRemoval(names: readonly string[]): string {
  return names.map((name) => `delete table bridge ${name}\n`).join('')
}

function set(name: string, type: string, elements: readonly string[]): readonly string[] {
  const distinct = [...new Set(elements)]
  const filled = distinct.length === 0 ? [] : [`    elements = { ${distinct.join(', ')} }`]
  return [`  set ${name} {`, `    ${type}`, ...filled, '  }']
}

function chain(name: string, rules: readonly string[]): readonly string[] {
  return [`  chain ${name} {`, ...rules.map((rule) => `    ${rule}`), '  }']
}

/** Its own, and that of its link, which the kernel derives from its MAC (RFC 4291, appendix A). */
function ipv6Of({ mac, ipv6 }: PodPort): readonly string[] {
  return [...(ipv6 === undefined ? [] : [ipv6]), linkAddress(mac)]
}

function linkAddress(mac: string): string {
  const [first = 0, second = 0, third = 0, fourth = 0, fifth = 0, sixth = 0] = mac
    .split(':')
    .map((part) => Number.parseInt(part, 16))
  const bytes = [first ^ 2, second, third, 0xff, 0xfe, fourth, fifth, sixth]
  const host = bytes.reduce((value, byte) => (value << 8n) | BigInt(byte), 0n)
  return formatIPv6((0xfe80n << 112n) | host)
}

/** Other bridges of Docker have the same address of the link, fe80::1, and so may a router of the house. */
function isGlobalIPv6(address: string): boolean {
  return address.includes(':') && !/^fe80:/i.test(address)
}

function hexOf(address: string): string {
  return `0x${(parseIPv6(address) ?? 0n).toString(16).padStart(32, '0')}`
}

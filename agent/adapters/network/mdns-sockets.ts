/** Port 5353 of the links of this machine, for multicast DNS (RFC 6762). */
import { createSocket, type Socket } from 'node:dgram'
import { once } from 'node:events'
import { networkInterfaces } from 'node:os'
import { join } from 'node:path'
import { formatCidr, maskedCidr } from '../../../api/text/cidr.ts'
import type { IPFamily } from '../../../api/text/ip-address.ts'
import { formatIPv6, formatIPv6Range, isRoutableIPv6, maskedIPv6Range } from '../../../api/text/ipv6-range.ts'
import { codeOf } from '../../../daemon/errors.ts'
import type { MdnsLink } from '../../network/mdns/mdns-names.ts'
import type { MdnsChannel, MdnsHost, MdnsPeer, MdnsSocket } from '../../network/mdns/mdns-publisher.ts'
import { textOf } from '../kernel/kernel-files.ts'
import { sendDatagram } from './datagram.ts'

const groups = { IPv4: '224.0.0.251', IPv6: 'ff02::fb' } as const
const mdnsPort = 5353
/** Section 11. */
const timeToLive = 255

/** `root`: where the kernel's files are found. */
export function mdnsHost(root: string): MdnsHost {
  return {
    links() {
      const ofIPv6 = ipv6LinksIn(textOf(join(root, 'proc/net/if_inet6')) ?? '')
      return Object.entries(networkInterfaces()).flatMap(([device, addresses = []]) =>
        addresses.flatMap(({ family, internal, address, cidr }) => {
          const range = family === 'IPv4' && !internal && cidr !== null ? rangeOf(cidr) : undefined
          return range === undefined ? [] : [{ device, address, range, ipv6: ofIPv6.get(device) }]
        }),
      )
    },
    addresses: () =>
      new Set(Object.values(networkInterfaces()).flatMap((all = []) => all.map(({ address }) => address))),
    open: openMdnsSocket,
  }
}

/** Why this machine cannot take part in multicast DNS beside its other programs; undefined: it can. */
export async function mdnsPortProblem(): Promise<string | undefined> {
  return (await problemOf('IPv4', groups.IPv4)) ?? (await problemOf('IPv6', '::'))
}

async function problemOf(family: IPFamily, address: string): Promise<string | undefined> {
  const socket = newSocket(family)
  try {
    await bound(socket, address)
    return undefined
  } catch (error) {
    const code = codeOf(error)
    const hasNone = family === 'IPv6' && (code === 'EAFNOSUPPORT' || code === 'EADDRNOTAVAIL')
    return hasNone ? undefined : code || 'it cannot be opened'
  } finally {
    socket.close()
  }
}

/**
 * Bound to the address of the group: packets to the machine's own address stay with avahi or systemd-resolved, which share the port
 * (SO_REUSEADDR). The kernel hands an IPv4 socket what arrives on any link that a program has joined: see the check of the source. One of IPv6
 * gets what arrives on its interface alone, as its address has a zone (ipv6(7), sin6_scope_id).
 */
async function openMdnsSocket(
  { link: { device, address }, family }: MdnsChannel,
  receive: (message: Buffer, from: MdnsPeer) => void,
): Promise<MdnsSocket> {
  const [group, membership] = family === 'IPv4' ? [groups.IPv4, address] : [`${groups.IPv6}%${device}`, `::%${device}`]
  const socket = newSocket(family)
  try {
    await bound(socket, group)
    socket.addMembership(groups[family], membership)
    socket.setMulticastInterface(membership)
    socket.setMulticastTTL(timeToLive)
    socket.setTTL(timeToLive)
    // Other programs of this machine ask by it, too.
    socket.setMulticastLoopback(true)
  } catch (cause) {
    socket.close()
    const at = family === 'IPv4' ? address : device
    throw new Error(`Cannot take part in multicast DNS of ${family} at ${at}, UDP port ${mdnsPort}`, { cause })
  }
  socket.on('message', receive)
  const ended = new Promise<Error>((resolve) => socket.on('error', resolve))
  return {
    ended,
    multicast: (message) => sendDatagram(socket, message, { address: group, port: mdnsPort }),
    unicast: (message, to) => sendDatagram(socket, message, to),
    close: () => new Promise((resolve) => socket.close(() => resolve())),
  }
}

function newSocket(family: IPFamily): Socket {
  return family === 'IPv4'
    ? createSocket({ type: 'udp4', reuseAddr: true })
    : createSocket({ type: 'udp6', reuseAddr: true, ipv6Only: true })
}

async function bound(socket: Socket, address: string): Promise<void> {
  socket.bind({ address, port: mdnsPort, exclusive: true })
  await once(socket, 'listening')
}

/** `192.168.1.5/24` becomes `192.168.1.0/24`; undefined: an address without neighbours. */
function rangeOf(cidr: string): string | undefined {
  const range = maskedCidr(cidr)
  return range === undefined || range.bits > 30 ? undefined : formatCidr(range)
}

/**
 * Flags of linux/if_addr.h: IFA_F_TEMPORARY, IFA_F_DADFAILED, IFA_F_DEPRECATED, IFA_F_TENTATIVE. Addresses of load
 * balancers are deprecated.
 */
const passing = 0x01 | 0x08 | 0x20 | 0x40
/** IFA_F_DADFAILED, IFA_F_TENTATIVE: no socket can be bound to it. */
const unusable = 0x08 | 0x40

/**
 * Links of `/proc/net/if_inet6` (address, index, length, scope, flags and interface, in hexadecimal) by interface,
 * without those that have no link-local address.
 */
export function ipv6LinksIn(text: string): ReadonlyMap<string, NonNullable<MdnsLink['ipv6']>> {
  const found = new Map<string, { addresses: string[]; ranges: Set<string>; isReady: boolean }>()
  for (const line of text.split('\n')) {
    const [digits = '', , length = '', , flagText = '', device = ''] = line.trim().split(/\s+/)
    if (!/^[0-9a-f]{32}$/.test(digits)) continue
    const [number, flags] = [BigInt(`0x${digits}`), Number.parseInt(flagText, 16)]
    const link = found.get(device) ?? { addresses: [], ranges: new Set(), isReady: false }
    found.set(device, link)
    // fe80::/10 (RFC 4291, section 2.5.6).
    if (number >> 118n === 0x3fan && (flags & unusable) === 0) link.isReady = true
    if (!isRoutableIPv6(number)) continue
    const range = maskedIPv6Range(`${formatIPv6(number)}/${Number.parseInt(length, 16)}`)
    if (range !== undefined) link.ranges.add(formatIPv6Range(range))
    if ((flags & passing) === 0) link.addresses.push(formatIPv6(number))
  }
  return new Map(
    [...found].flatMap(([device, { addresses, ranges, isReady }]) =>
      isReady ? [[device, { addresses: addresses.sort(), ranges: [...ranges].sort() }] as const] : [],
    ),
  )
}

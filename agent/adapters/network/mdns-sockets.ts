/** Port 5353 of the links of this machine, for multicast DNS (RFC 6762). */
import { createSocket, type Socket } from 'node:dgram'
import { once } from 'node:events'
import { networkInterfaces } from 'node:os'
import { formatCidr, maskedCidr } from '../../../api/text/cidr.ts'
import { codeOf } from '../../../daemon/errors.ts'
import type { MdnsLink } from '../../network/mdns/mdns-names.ts'
import type { MdnsHost, MdnsPeer, MdnsSocket } from '../../network/mdns/mdns-publisher.ts'
import { sendDatagram } from './datagram.ts'

const group = '224.0.0.251'
const mdnsPort = 5353
/** Section 11. */
const timeToLive = 255

export function mdnsHost(): MdnsHost {
  return {
    links: () =>
      Object.entries(networkInterfaces()).flatMap(([device, addresses = []]) =>
        addresses.flatMap(({ family, internal, address, cidr }) => {
          const range = family === 'IPv4' && !internal && cidr !== null ? rangeOf(cidr) : undefined
          return range === undefined ? [] : [{ device, address, range }]
        }),
      ),
    addresses: () =>
      new Set(Object.values(networkInterfaces()).flatMap((all = []) => all.map(({ address }) => address))),
    open: openMdnsSocket,
  }
}

/** Why this machine cannot take part in multicast DNS beside its other programs; undefined: it can. */
export async function mdnsPortProblem(): Promise<string | undefined> {
  const socket = createSocket({ type: 'udp4', reuseAddr: true })
  try {
    await bound(socket)
    return undefined
  } catch (error) {
    return codeOf(error) || 'it cannot be opened'
  } finally {
    socket.close()
  }
}

/**
 * Bound to the address of the group: packets to the machine's own address stay with avahi or systemd-resolved, which share the port
 * (SO_REUSEADDR). The kernel hands a socket what arrives on any link that a program has joined: see the check of the source.
 */
async function openMdnsSocket(
  { address }: MdnsLink,
  receive: (message: Buffer, from: MdnsPeer) => void,
): Promise<MdnsSocket> {
  const socket = createSocket({ type: 'udp4', reuseAddr: true })
  try {
    await bound(socket)
    socket.addMembership(group, address)
    socket.setMulticastInterface(address)
    socket.setMulticastTTL(timeToLive)
    // Other programs of this machine ask by it, too.
    socket.setMulticastLoopback(true)
  } catch (cause) {
    socket.close()
    throw new Error(`Cannot take part in multicast DNS at ${address}, UDP port ${mdnsPort}`, { cause })
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

async function bound(socket: Socket): Promise<void> {
  socket.bind({ address: group, port: mdnsPort, exclusive: true })
  await once(socket, 'listening')
}

/** Of `192.168.1.5/24`: `192.168.1.0/24`. undefined: an address without neighbours. */
function rangeOf(cidr: string): string | undefined {
  const range = maskedCidr(cidr)
  return range === undefined || range.bits > 30 ? undefined : formatCidr(range)
}

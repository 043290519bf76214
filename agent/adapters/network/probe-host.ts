/** The socket of probes, and what the kernel has of the machines of its links. */
import { createSocket } from 'node:dgram'
import { once } from 'node:events'
import { networkInterfaces } from 'node:os'
import { join } from 'node:path'
import { cidrsOverlap, maskedCidr, parseCidr } from '../../../api/text/cidr.ts'
import type { ProbeHost } from '../../network/probes/probe-manager.ts'
import { textOf } from '../kernel/kernel-files.ts'
import { readNetworkState } from '../kernel/network-changes.ts'
import { hasOwnAddress } from '../kernel/own-address.ts'
import { sendDatagram } from './datagram.ts'

/** `claim`: rejects while another agent of the machine has the network of pods, whose socket it is then. */
export function probeHost(root: string, claim: () => Promise<void>): ProbeHost {
  return {
    isOwn: hasOwnAddress,
    neighbours: neighboursOf(root),
    links: async () => [...readNetworkState(root)].sort().join(),
    /**
     * Challenges are sent from the port that they go to: where two nodes probe each other, a firewall that lets answers pass lets the
     * challenges pass, too.
     */
    async open(port, receive) {
      await claim()
      const socket = createSocket('udp4')
      try {
        socket.bind({ port, exclusive: true })
        await once(socket, 'listening')
      } catch (cause) {
        socket.close()
        throw new Error(`Cannot listen on UDP port ${port}`, { cause })
      }
      socket.on('message', receive)
      let closed: Promise<void> | undefined
      const close = () => {
        closed ??= new Promise((resolve) => socket.close(() => resolve()))
        return closed
      }
      return {
        // Closed first: the next one gets the port.
        ended: new Promise<Error>((resolve) => socket.on('error', (error) => void close().then(() => resolve(error)))),
        send: (message, to) => sendDatagram(socket, message, to),
        close,
      }
    },
  }
}

/**
 * Listing all interfaces takes long on a node with many pods, because each pod has one: it is done again when one of the kernel's tables of
 * neighbours and routes has changed.
 */
function neighboursOf(root: string): ProbeHost['neighbours'] {
  let found: { readonly tables: string; readonly neighbours: ReadonlyMap<string, string> } | undefined
  return async () => {
    const [table = '', routes] = ['arp', 'route'].map((name) => textOf(join(root, 'proc/net', name)))
    const tables = `${table}\n${routes}`
    if (found?.tables !== tables) found = { tables, neighbours: neighboursIn(table) }
    return found.neighbours
  }
}

/**
 * `/proc/net/arp`: address, type, flags, hardware address, mask, device; with ATF_COM (2) it has answered, or asked (if_arp.h). Of links that
 * the address belongs to only: a pod can ask by ARP with the address of a node, and would make its address doubted.
 */
function neighboursIn(table: string): ReadonlyMap<string, string> {
  const links = new Map(
    Object.entries(networkInterfaces()).map(([device, addresses = []]) => [
      device,
      addresses.flatMap(({ cidr }) => maskedCidr(cidr ?? '') ?? []),
    ]),
  )
  const isOnLink = (address: string, device: string) => {
    const own = parseCidr(`${address}/32`)
    return own !== undefined && links.get(device)?.some((range) => cidrsOverlap(range, own)) === true
  }
  const rows = table.split('\n').map((line) => line.trim().split(/\s+/))
  return new Map(
    rows.flatMap(([address, , flags, mac, , device]) =>
      address !== undefined && mac !== undefined && (Number(flags) & 2) !== 0 && isOnLink(address, device ?? '')
        ? [[address, mac] as const]
        : [],
    ),
  )
}

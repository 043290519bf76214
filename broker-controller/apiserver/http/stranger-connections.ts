/** The connections without a trusted certificate, those in their handshake among them. */
import type { Socket } from 'node:net'
import { addressKey, peerAddress } from '../access/peer-address.ts'

export type ConnectionEnds = Pick<Socket, 'remoteAddress' | 'remotePort' | 'localAddress' | 'localPort'>

export type StrangerLimits = { readonly strangersPerAddress: number; readonly strangers: number }

export type Surplus<S> = { readonly socket: S; readonly reason: 'AddressLimit' | 'StrangerLimit' }

export interface StrangerConnections<S> {
  /** The connection that is to be closed for this one. */
  add(socket: S): Surplus<S> | undefined
  remove(socket: S): void
  /** The TLS connection between these ends has a trusted certificate. */
  identified(secure: ConnectionEnds): void
}

/**
 * Over the limit the oldest connection is closed: every client is a stranger until its handshake ends, so rejecting the newest
 * would let one stranger lock out all other clients.
 */
export function strangerConnections<S extends ConnectionEnds>({
  strangersPerAddress,
  strangers,
}: StrangerLimits): StrangerConnections<S> {
  const all = new Set<S>()
  const byAddress = new Map<string, Set<S>>()
  /** The socket below a TLS socket, found by the addresses of both ends. */
  const byEnds = new Map<string, S>()
  const facts = new WeakMap<S, { readonly address: string; readonly ends: string }>()

  const remove = (socket: S) => {
    const known = facts.get(socket)
    if (known === undefined || !all.delete(socket)) return
    // The kernel may have given the port to another connection before this one's end was noticed.
    if (byEnds.get(known.ends) === socket) byEnds.delete(known.ends)
    const others = byAddress.get(known.address)
    others?.delete(socket)
    if (others?.size === 0) byAddress.delete(known.address)
  }

  return {
    remove,
    identified(secure) {
      const socket = byEnds.get(endsOf(secure))
      if (socket !== undefined) remove(socket)
    },
    add(socket) {
      const address = addressKey(peerAddress(socket))
      const ends = endsOf(socket)
      facts.set(socket, { address, ends })
      all.add(socket)
      byEnds.set(ends, socket)
      const others = byAddress.get(address) ?? new Set()
      byAddress.set(address, others.add(socket))
      const [oldestOfAddress] = others
      const [oldest] = all
      const reason = others.size > strangersPerAddress ? 'AddressLimit' : 'StrangerLimit'
      const surplus = reason === 'AddressLimit' ? oldestOfAddress : oldest
      if ((reason === 'StrangerLimit' && all.size <= strangers) || surplus === undefined) return undefined
      remove(surplus)
      return { socket: surplus, reason }
    },
  }
}

function endsOf({ remoteAddress, remotePort, localAddress, localPort }: ConnectionEnds): string {
  return `${remoteAddress} ${remotePort} ${localAddress} ${localPort}`
}

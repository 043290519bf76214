/** The connections on which no credentials were accepted, those in their handshake among them. */
import type { Socket } from 'node:net'
import { addressKey, peerAddress } from '../authentication/peer-address.ts'

export type ConnectionEnds = Pick<Socket, 'remoteAddress' | 'remotePort' | 'localAddress' | 'localPort'>

export type StrangerLimits = { readonly strangersPerAddress: number; readonly strangers: number }

export type Surplus<S> = { readonly socket: S; readonly reason: 'AddressLimit' | 'StrangerLimit' }

export interface StrangerConnections<S> {
  /** The connection that is to be closed for this one. */
  add(socket: S): Surplus<S> | undefined
  remove(socket: S): void
  /** A request came on the TLS connection between these ends. */
  spoke(secure: ConnectionEnds): void
  /** The TLS connection between these ends is that of a known client. false: it was already, or is closed. */
  identified(secure: ConnectionEnds): boolean
}

/**
 * Over the limit an old connection is closed: every client is a stranger until its handshake ends, so rejecting the newest
 * would let one stranger lock out all other clients. Silent ones go first, on which no request came, and of those the oldest. But a
 * quarter of the places is theirs: otherwise strangers that send a request each would lock out those in their handshake.
 */
export function strangerConnections<S extends ConnectionEnds>({
  strangersPerAddress,
  strangers,
}: StrangerLimits): StrangerConnections<S> {
  const [silent, spoken] = [connectionPool<S>(), connectionPool<S>()]
  /** The socket below a TLS socket, found by the addresses of both ends. */
  const byEnds = new Map<string, S>()
  const facts = new WeakMap<S, { readonly address: string; readonly ends: string }>()

  const remove = (socket: S) => {
    const known = facts.get(socket)
    if (known === undefined || !(silent.delete(socket, known.address) || spoken.delete(socket, known.address))) return
    // The kernel may have given the port to another connection before this one's end was noticed.
    if (byEnds.get(known.ends) === socket) byEnds.delete(known.ends)
  }
  const isSilentSurplus = (count: number, limit: number) => count > Math.max(1, limit / 4)
  const surplusOf = (address: string): S | undefined => {
    const isSilent = isSilentSurplus(silent.sizeOf(address), strangersPerAddress)
    return (isSilent ? undefined : spoken.oldestOf(address)) ?? silent.oldestOf(address)
  }
  const surplusOfAll = (): S | undefined =>
    (isSilentSurplus(silent.size, strangers) ? undefined : spoken.oldestOfLargest()) ?? silent.oldestOfLargest()

  return {
    remove,
    spoke(secure) {
      const socket = byEnds.get(endsOf(secure))
      const address = socket && facts.get(socket)?.address
      if (socket !== undefined && address !== undefined && silent.delete(socket, address)) spoken.add(socket, address)
    },
    identified(secure) {
      const socket = byEnds.get(endsOf(secure))
      if (socket !== undefined) remove(socket)
      return socket !== undefined
    },
    add(socket) {
      const address = addressKey(peerAddress(socket))
      const ends = endsOf(socket)
      facts.set(socket, { address, ends })
      silent.add(socket, address)
      byEnds.set(ends, socket)
      const isOverOfAddress = silent.sizeOf(address) + spoken.sizeOf(address) > strangersPerAddress
      if (!isOverOfAddress && silent.size + spoken.size <= strangers) return undefined
      const surplus = isOverOfAddress ? surplusOf(address) : surplusOfAll()
      if (surplus === undefined) return undefined
      remove(surplus)
      return { socket: surplus, reason: isOverOfAddress ? 'AddressLimit' : 'StrangerLimit' }
    },
  }
}

/** Connections by address, oldest first. */
function connectionPool<S>() {
  const byAddress = new Map<string, Set<S>>()
  let size = 0
  const oldestOf = (address: string): S | undefined => byAddress.get(address)?.values().next().value
  return {
    get size() {
      return size
    },
    sizeOf: (address: string) => byAddress.get(address)?.size ?? 0,
    oldestOf,
    /** Oldest connection of the address with the most, so that few addresses do not take the places of all others. */
    oldestOfLargest(): S | undefined {
      let [largest, most] = ['', 0]
      for (const [address, { size }] of byAddress) if (size > most) [largest, most] = [address, size]
      return oldestOf(largest)
    },
    add(socket: S, address: string) {
      byAddress.set(address, (byAddress.get(address) ?? new Set()).add(socket))
      size += 1
    },
    delete(socket: S, address: string): boolean {
      const own = byAddress.get(address)
      if (own?.delete(socket) !== true) return false
      size -= 1
      if (own.size === 0) byAddress.delete(address)
      return true
    },
  }
}

function endsOf({ remoteAddress, remotePort, localAddress, localPort }: ConnectionEnds): string {
  return `${remoteAddress} ${remotePort} ${localAddress} ${localPort}`
}

/**
 * Connections before an accepted CONNECT: which of them may begin their handshake? A handshake costs about 75 kB of memory
 * and a millisecond of CPU, so few run at a time; the others wait as plain sockets, and addresses take turns.
 */

export type PendingLimits = {
  /** Handshakes in progress, each until its CONNECT is accepted. */
  readonly handshakes: number
  readonly handshakesPerAddress: number
  /** Connections that wait or are in their handshake. */
  readonly pending: number
  readonly pendingPerAddress: number
  /** How long a connection may wait for its turn. */
  readonly waitMs: number
  /** From the beginning of the handshake to an accepted CONNECT. */
  readonly handshakeMs: number
}

export interface PendingConnections<T> {
  /** False: there are too many, close it. `start` and `close` may be called before this returns. */
  add(connection: T, address: string, nowMs: number): boolean
  /** Its CONNECT was accepted, or it is closed. */
  remove(connection: T, nowMs: number): void
  /** The connections that waited or were in their handshake for too long, to be closed. */
  overdue(nowMs: number): readonly T[]
  readonly size: number
}

type Entry<T> = { readonly group: Group<T>; sinceMs: number; isStarted: boolean }
type Group<T> = { readonly name: string; readonly waiting: Map<T, Entry<T>>; started: number }

/**
 * `start` begins the handshake of a connection whose turn it is. `close` ends one that waited, of the address with the most, for a
 * connection of an address with fewer: otherwise a few addresses would keep out all others.
 */
export function pendingConnections<T>(
  limits: PendingLimits,
  start: (connection: T) => void,
  close: (connection: T) => void,
): PendingConnections<T> {
  const entries = new Map<T, Entry<T>>()
  const groups = new Map<string, Group<T>>()
  /** Addresses with a connection that may start, the next one first. */
  const turns = new Set<Group<T>>()
  let started = 0

  const plan = (group: Group<T>) => {
    turns.delete(group)
    if (group.waiting.size > 0 && group.started < limits.handshakesPerAddress) turns.add(group)
    if (group.waiting.size === 0 && group.started === 0) groups.delete(group.name)
  }

  const startNext = (nowMs: number) => {
    for (const group of turns) {
      if (started >= limits.handshakes) return
      const [first] = group.waiting
      if (first === undefined) continue
      const [connection, entry] = first
      group.waiting.delete(connection)
      group.started += 1
      started += 1
      entry.isStarted = true
      entry.sinceMs = nowMs
      plan(group)
      start(connection)
    }
  }

  const remove = (connection: T, nowMs: number) => {
    const entry = entries.get(connection)
    if (entry === undefined) return
    const { group } = entry
    entries.delete(connection)
    group.waiting.delete(connection)
    if (entry.isStarted) {
      group.started -= 1
      started -= 1
    }
    plan(group)
    startNext(nowMs)
  }
  const sizeOf = ({ waiting, started }: Group<T>) => waiting.size + started
  /** The newest of the largest group, if that has more than this one would have. */
  const surplusFor = (group: Group<T>): T | undefined => {
    let largest = group
    for (const one of groups.values()) if (one.waiting.size > 0 && sizeOf(one) > sizeOf(largest)) largest = one
    return sizeOf(largest) >= sizeOf(group) + 2 ? [...largest.waiting.keys()].pop() : undefined
  }

  return {
    add(connection, address, nowMs) {
      const name = addressGroup(address)
      const group = groups.get(name) ?? { name, waiting: new Map<T, Entry<T>>(), started: 0 }
      if (sizeOf(group) >= limits.pendingPerAddress) return false
      if (entries.size >= limits.pending) {
        const surplus = surplusFor(group)
        if (surplus === undefined) return false
        remove(surplus, nowMs)
        close(surplus)
      }
      groups.set(name, group)
      const entry = { group, sinceMs: nowMs, isStarted: false }
      group.waiting.set(connection, entry)
      entries.set(connection, entry)
      plan(group)
      startNext(nowMs)
      return true
    },
    remove,
    overdue(nowMs) {
      const isOverdue = ({ isStarted, sinceMs }: Entry<T>) =>
        nowMs - sinceMs > (isStarted ? limits.handshakeMs : limits.waitMs)
      return [...entries].filter(([, entry]) => isOverdue(entry)).map(([connection]) => connection)
    },
    get size() {
      return entries.size
    },
  }
}

/** One subscriber has a whole /64 of IPv6 (RFC 6177), so its addresses count as one. */
export function addressGroup(address: string): string {
  if (!address.includes(':')) return address
  const [head = '', tail = ''] = address.split('::')
  const first = head === '' ? [] : head.split(':')
  const last = tail === '' ? [] : tail.split(':')
  const zeros = Array.from({ length: Math.max(0, 8 - first.length - last.length) }, () => '0')
  return `${[...first, ...zeros, ...last].slice(0, 4).join(':')}::/64`
}

/**
 * Streams between clients of the API and nodes, such as those of `kubectl logs`. A handler of the API opens a session; the
 * broker publishes its request to the node; the node connects its end under the same id. In memory only: a session ends with
 * its client, with the connection of its node, after `longestMs`, and with the controller.
 */
import { randomUUID } from 'node:crypto'
import { type Duplex, finished } from 'node:stream'
import { ApiError } from '../../api/api-error.ts'
import type { Clock } from '../../daemon/clock.ts'
import { displacedFor, type Weighted } from '../../daemon/limits/fair-share.ts'

/** A session that a node is to connect. What it is for is the first thing that is sent on it. */
export type RequestedSession = { readonly id: string; readonly node: string }

/** For whom a session is opened. */
export type SessionClient = {
  /** Whose share of the sessions it takes: a user, or the service accounts of a namespace. */
  readonly user: string
  /** Aborts when the client is gone. */
  readonly signal: AbortSignal
}

export interface SessionBoard {
  /**
   * Resolves with the stream when the node has connected it. Where the node or all nodes have too many sessions, that of a user
   * with the most ends for one with fewer. Throws ApiError TooManyRequests if there is none, if this user has too many, or if this one
   * ends for another user's while it waits; ServiceUnavailable if the node is not connected, does not connect in time or its connection ends.
   */
  open(node: string, client: SessionClient): Promise<Duplex>
  /** A session of this node waits under this id. */
  awaits(node: string, id: string): boolean
  /** The node's end of a session. False: no session of this node waits under this id, and the stream is destroyed. */
  connect(node: string, id: string, stream: Duplex): boolean
  /** The node has a connection to the broker: sessions can be requested of it. */
  connected(node: string): void
  /** Its connection has ended, and so do its sessions. */
  disconnected(node: string): void
  /** The requests that are to be published, each once. */
  takeRequests(): readonly RequestedSession[]
  /** Calls `listener` when there is a request to publish. One listener. Its requests are not published before there is one. */
  onRequest(listener: () => void): void
  /** Sessions that wait or run. */
  readonly size: number
  /** Ends all sessions; later ones are refused. */
  close(): void
}

export type SessionBoardLimits = {
  readonly perNode: number
  readonly total: number
  /** Limits of one user. */
  readonly ofUser: { readonly perNode: number; readonly total: number }
  /** For the node to connect its end. */
  readonly connectMs: number
  readonly longestMs: number
}

/**
 * The kubelet ends an idle stream after 4 hours (streamingConnectionIdleTimeout, KubeletConfiguration v1beta1). Each session
 * takes about 100 KB: two sockets with TLS and their buffers. Each connection through a port-forward is one of its own, and a
 * browser opens six at a time.
 */
export const defaultSessionBoardLimits: SessionBoardLimits = {
  perNode: 64,
  total: 512,
  ofUser: { perNode: 32, total: 256 },
  connectMs: 15_000,
  longestMs: 4 * 3600_000,
}

type Session = Weighted & {
  readonly node: string
  readonly user: string
  /** Ends the session in whatever state it is. */
  readonly end: (error?: Error) => void
  /** undefined: connected already. */
  connected: ((stream: Duplex) => void) | undefined
}

export type SessionBoardNeeds = {
  readonly clock: Clock
  readonly limits?: SessionBoardLimits
  readonly newID?: () => string
}

export function sessionBoard({
  clock,
  limits = defaultSessionBoardLimits,
  newID = randomUUID,
}: SessionBoardNeeds): SessionBoard {
  const sessions = new Map<string, Session>()
  const requests = new Map<string, RequestedSession>()
  const present = new Set<string>()
  let notify: () => void = () => undefined
  let isClosed = false

  const endAll = (isEnded: (session: Session) => boolean, because: string) => {
    for (const session of [...sessions.values()]) if (isEnded(session)) session.end(unavailable(because))
  }

  return {
    async open(node, { user, signal }) {
      if (isClosed) throw unavailable('The controller is stopping')
      if (!present.has(node)) throw unavailable(`node "${node}" has no connection to the controller`)
      const displaced = displacedBy({ node, user }, [...sessions.values()], limits)
      if (signal.aborted) throw unavailable('The client is gone')
      for (const session of displaced) session.end(displacedError(session.user))
      const id = newID()
      const over = new AbortController()
      try {
        return await new Promise<Duplex>((resolve, reject) => {
          let stream: Duplex | undefined
          const end = (error?: Error) => {
            if (!sessions.delete(id)) return
            requests.delete(id)
            signal.removeEventListener('abort', clientGone)
            over.abort('ended')
            if (stream === undefined) reject(error ?? unavailable('The session ended'))
            else stream.destroy(error)
          }
          const clientGone = () => end(unavailable('The client is gone'))
          const session: Session = {
            node,
            user,
            weight: 1,
            end,
            connected(connected) {
              session.connected = undefined
              stream = connected
              finished(connected, () => end())
              resolve(connected)
            },
          }
          sessions.set(id, session)
          requests.set(id, { id, node })
          signal.addEventListener('abort', clientGone, { once: true })
          const slow = `node "${node}" did not connect its stream within ${limits.connectMs / 1000} s`
          const waits = () => stream === undefined
          void after(clock, limits.connectMs, over.signal, () => waits() && end(unavailable(slow)))
          const long = `A stream ends after ${limits.longestMs / 3600_000} h`
          void after(clock, limits.longestMs, over.signal, () => end(unavailable(long)))
          notify()
        })
      } catch (error) {
        // A listener that throws leaves no session behind, which would count against the limits of the node.
        sessions.get(id)?.end()
        throw error
      }
    },
    awaits(node, id) {
      const session = sessions.get(id)
      return session?.node === node && session.connected !== undefined
    },
    connect(node, id, stream) {
      const session = sessions.get(id)
      if (session?.connected === undefined || session.node !== node || stream.destroyed) {
        stream.destroy()
        return false
      }
      session.connected(stream)
      return true
    },
    connected: (node) => void present.add(node),
    disconnected(node) {
      present.delete(node)
      endAll((session) => session.node === node, `the connection of node "${node}" ended`)
    },
    takeRequests() {
      const taken = [...requests.values()]
      requests.clear()
      return taken
    },
    onRequest(listener) {
      notify = listener
      if (requests.size > 0) listener()
    },
    get size() {
      return sessions.size
    },
    close() {
      isClosed = true
      endAll(() => true, 'The controller is stopping')
    },
  }
}

async function after(clock: Clock, ms: number, unless: AbortSignal, act: () => unknown): Promise<void> {
  await clock.sleep(ms, unless)
  if (!unless.aborted) act()
}

/** The sessions that end for the wanted one. Throws TooManyRequests. */
function displacedBy(
  wanted: Pick<Session, 'node' | 'user'>,
  sessions: readonly Session[],
  { perNode, total, ofUser }: SessionBoardLimits,
): readonly Session[] {
  const { node, user } = wanted
  const onNode = sessions.filter((session) => session.node === node)
  const ofThisUser = (some: readonly Session[]) => some.filter((session) => session.user === user).length
  assertBelow(`user "${user}" has on node "${node}"`, ofThisUser(onNode), ofUser.perNode)
  assertBelow(`user "${user}" has`, ofThisUser(sessions), ofUser.total)
  const there = displacedOf(user, onNode, perNode)
  if (there === undefined) throw tooMany(`node "${node}" has`, onNode.length, perNode)
  const left = sessions.filter((session) => !there.includes(session))
  const anywhere = displacedOf(user, left, total)
  if (anywhere === undefined) throw tooMany('there are', sessions.length, total)
  return [...there, ...anywhere]
}

function displacedOf(user: string, sessions: readonly Session[], limit: number): readonly Session[] | undefined {
  const byUser = new Map<string, Session[]>([[user, []]])
  for (const session of sessions) {
    const known = byUser.get(session.user)
    if (known === undefined) byUser.set(session.user, [session])
    else known.push(session)
  }
  const own = byUser.get(user)?.length ?? 0
  byUser.delete(user)
  return displacedFor<Session>({ own, weight: 1 }, byUser.values(), sessions.length + 1 - limit)
}

function assertBelow(who: string, count: number, limit: number): void {
  if (count >= limit) throw tooMany(who, count, limit)
}

function tooMany(who: string, count: number, limit: number): ApiError {
  const message = `Too many streams: ${who} ${count} streams, the limit is ${limit}`
  return new ApiError('TooManyRequests', message, { retryAfterSeconds: 5 })
}

/** For one that the node has not connected yet: its client may try again, as one that finds no place. */
function displacedError(user: string): ApiError {
  const message = `Too many streams: users with fewer streams need one of user "${user}"`
  return new ApiError('TooManyRequests', message, { retryAfterSeconds: 5 })
}

/** Without a time to try again: kubectl would, up to ten times and in silence. */
function unavailable(message: string): ApiError {
  return new ApiError('ServiceUnavailable', message)
}

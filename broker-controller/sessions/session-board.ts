/**
 * Streams between clients of the API and nodes, such as those of `kubectl logs`. A handler of the API opens a session; the
 * broker publishes its request to the node; the node connects its end under the same id. In memory only: a session ends with
 * its client, with the connection of its node, after `longestMs`, and with the controller.
 */
import { randomUUID } from 'node:crypto'
import { type Duplex, finished } from 'node:stream'
import { ApiError } from '../../api/api-error.ts'
import type { Clock } from '../../daemon/clock.ts'

/** A session that a node is to connect. `request` is what the handler wants of the node. */
export type SessionRequest<Request> = { readonly id: string; readonly node: string; readonly request: Request }

export interface SessionBoard<Request> {
  /**
   * Resolves with the stream when the node has connected it. Throws ApiError TooManyRequests if the node, or all nodes, have too
   * many sessions, and ServiceUnavailable if the node does not connect in time or its connection ends. `signal`: the client's.
   */
  open(node: string, request: Request, signal: AbortSignal): Promise<Duplex>
  /** The node's end of a session. False: no session of this node waits under this id, and the stream is destroyed. */
  connect(node: string, id: string, stream: Duplex): boolean
  /** Ends the sessions of a node whose connection has ended. */
  disconnected(node: string): void
  /** The requests that are to be published, each once. */
  takeRequests(): readonly SessionRequest<Request>[]
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
  /** For the node to connect its end. */
  readonly connectMs: number
  readonly longestMs: number
}

/**
 * The kubelet ends an idle stream after 4 hours (streamingConnectionIdleTimeout, KubeletConfiguration v1beta1). Each session
 * takes about 100 KB: two sockets with TLS and their buffers.
 */
export const defaultSessionBoardLimits: SessionBoardLimits = {
  perNode: 16,
  total: 256,
  connectMs: 15_000,
  longestMs: 4 * 3600_000,
}

type Session = {
  readonly node: string
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

export function sessionBoard<Request>({
  clock,
  limits = defaultSessionBoardLimits,
  newID = randomUUID,
}: SessionBoardNeeds): SessionBoard<Request> {
  const sessions = new Map<string, Session>()
  const requests = new Map<string, SessionRequest<Request>>()
  let notify: () => void = () => undefined
  let isClosed = false

  const admit = (node: string) => {
    if (isClosed) throw unavailable('The controller is stopping')
    const ofNode = [...sessions.values()].filter((session) => session.node === node).length
    if (ofNode >= limits.perNode) throw tooMany(`node "${node}" has ${ofNode} streams, the limit is ${limits.perNode}`)
    if (sessions.size >= limits.total) throw tooMany(`there are ${sessions.size} streams, the limit is ${limits.total}`)
  }

  const endAll = (isEnded: (session: Session) => boolean, error: Error) => {
    for (const session of [...sessions.values()]) if (isEnded(session)) session.end(error)
  }

  return {
    async open(node, request, signal) {
      admit(node)
      if (signal.aborted) throw unavailable('The client is gone')
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
            end,
            connected(connected) {
              session.connected = undefined
              stream = connected
              finished(connected, () => end())
              resolve(connected)
            },
          }
          sessions.set(id, session)
          requests.set(id, { id, node, request })
          signal.addEventListener('abort', clientGone, { once: true })
          const limit = async (ms: number, isOver: () => boolean, why: string) => {
            await clock.sleep(ms, over.signal)
            if (!over.signal.aborted && isOver()) end(unavailable(why))
          }
          const slow = `node "${node}" did not connect its stream within ${limits.connectMs / 1000} s`
          void limit(limits.connectMs, () => stream === undefined, slow)
          void limit(limits.longestMs, () => true, `A stream ends after ${limits.longestMs / 3600_000} h`)
          notify()
        })
      } catch (error) {
        // A listener that throws leaves no session behind, which would count against the limits of the node.
        sessions.get(id)?.end()
        throw error
      }
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
    disconnected(node) {
      endAll((session) => session.node === node, unavailable(`the connection of node "${node}" ended`))
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
      endAll(() => true, unavailable('The controller is stopping'))
    },
  }
}

function unavailable(message: string): ApiError {
  return new ApiError('ServiceUnavailable', message, { retryAfterSeconds: 1 })
}

function tooMany(message: string): ApiError {
  return new ApiError('TooManyRequests', `Too many streams: ${message}`, { retryAfterSeconds: 5 })
}

/** The connections of HTTP/2: their streams, their limits, and their end. Node.js and nghttp2 hold the limits of frames. */
import { setMaxListeners } from 'node:events'
import { constants, createServer, type ServerHttp2Session, type ServerHttp2Stream } from 'node:http2'
import { setImmediate } from 'node:timers/promises'
import type { TLSSocket } from 'node:tls'
import type { Clock } from '../../../../daemon/clock.ts'
import type { Log } from '../../../../daemon/log.ts'
import type { ConnectionTimes } from '../connection-limits.ts'
import type { HttpMessages } from '../messages.ts'
import type { Drain, SlowReaders } from '../slow-readers.ts'
import { controlLimits, type FrameBudget, frameBudget, resetLimits } from './frame-budget.ts'
import { type StreamHead, streamMessages } from './stream-messages.ts'

export type Http2Needs = {
  readonly times: Pick<
    ConnectionTimes,
    'headersTimeout' | 'requestTimeout' | 'keepAliveTimeout' | 'connectionsCheckingInterval'
  >
  readonly clock: Pick<Clock, 'monotonicMs'>
  readonly log: Log
  /** The connection is ended because of what its client does. */
  readonly refused: (socket: TLSSocket, reason: 'TooManyFrames' | 'Timeout' | 'NotHTTP', error?: Error) => void
  readonly slow: Pick<SlowReaders, 'drained'>
  /** Answers a request. */
  readonly answer: (messages: HttpMessages) => Promise<void>
}

export interface Http2Sessions {
  /** Serves HTTP/2 on this connection, which was negotiated for it. */
  serve(socket: TLSSocket): void
  /** No session takes further streams; each is closed with its last one. */
  closeIdle(): void
  /** Ends all at once. */
  destroyAll(): void
}

const settings = {
  /** As kube-apiserver without its option: what clients assume before the first SETTINGS (http2.initialMaxConcurrentStreams of Go). */
  maxConcurrentStreams: 100,
  enablePush: false,
  /** Window of one stream. A client may not send more of a body before it is read. */
  initialWindowSize: 256 * 1024,
  /** As of a request in HTTP/1.1. Nine frames of 16 KiB is what a client can send for them. */
  maxHeaderListSize: 256 * 1024,
}
/** Window of a session. A body that is not read yet leaves room for those of other streams. */
const windowBytes = 2 * 1024 * 1024

type Session = {
  readonly session: ServerHttp2Session
  readonly socket: TLSSocket
  /** Those whose request is not whole, with the time of their start. */
  readonly bodies: Map<ServerHttp2Stream, number>
  streams: number
  /** Since when there is no stream, and how long that may last. */
  idleSinceMs: number
  idleMs: number
  /** Since when its client owes the answer to a PING; undefined: it owes none. */
  pingedMs: number | undefined
  /** It was destroyed before the last check. */
  isEnding: boolean
}

export function http2Sessions(needs: Http2Needs): Http2Sessions {
  const { times, clock } = needs
  const sessions = new Map<ServerHttp2Session, Session>()
  let opening: TLSSocket | undefined
  const server = createServer({
    settings,
    maxSessionInvalidFrames: 100,
    maxHeaderListPairs: 256,
    maxSessionMemory: 16, // MB
  })
  server.on('session', (session) => {
    const socket = opening
    if (socket === undefined) return void session.destroy()
    const idle = { idleSinceMs: clock.monotonicMs(), idleMs: times.headersTimeout }
    const own = { session, socket, bodies: new Map(), streams: 0, pingedMs: undefined, isEnding: false, ...idle }
    sessions.set(session, own)
    socket.once('close', () => sessions.delete(session))
    session.setLocalWindowSize(windowBytes)
    limitFrames(own, needs)
    session.on('stream', (stream, headers, flags, rawHeaders: readonly string[] = []) => {
      const isWhole = (flags & constants.NGHTTP2_FLAG_END_STREAM) !== 0
      countStream(own, stream, isWhole, needs)
      // What is reset in the same packet costs no more than this.
      void setImmediate().then(() => begin(own, stream, { headers, rawHeaders }, needs))
    })
  })
  const check = () => {
    for (const own of sessions.values()) checkTimes(own, needs)
  }
  const checking = setInterval(check, times.connectionsCheckingInterval).unref()
  return {
    serve(socket) {
      opening = socket
      server.emit('connection', socket)
      opening = undefined
    },
    closeIdle() {
      for (const session of [...sessions.keys()]) session.close()
    },
    destroyAll() {
      clearInterval(checking)
      for (const session of [...sessions.keys()]) session.destroy()
    },
  }
}

/** Ends the session where its client sends too much of what costs only the server. */
function limitFrames({ session, socket }: Session, needs: Http2Needs): void {
  const { clock, log, refused } = needs
  const [control, resets] = [frameBudget(controlLimits), frameBudget(resetLimits)]
  let isOver = false
  const spend = (budget: FrameBudget) => {
    if (budget.spend(clock.monotonicMs()) || isOver) return
    isOver = true
    refused(socket, 'TooManyFrames')
    // After the frames that were read with this one: Node.js 20 writes for ever, and takes all memory, to a session that is destroyed
    // between them while answers are open on it.
    void setImmediate().then(() => session.destroy(new Error('Too many frames'), constants.NGHTTP2_ENHANCE_YOUR_CALM))
  }
  session.on('ping', () => spend(control)).on('remoteSettings', () => spend(control))
  session.on('stream', (stream) => {
    stream.once('close', () => {
      if (stream.aborted || stream.rstCode !== constants.NGHTTP2_NO_ERROR) spend(resets)
    })
  })
  session.on('error', (error: NodeJS.ErrnoException) => {
    if (error.code?.startsWith('ERR_HTTP2') && !isOver) refused(socket, 'NotHTTP', error)
    else log.debug('API connection failed', { error })
  })
  session.on('frameError', (type, code) => log.debug('HTTP/2 frame not sent', { type, code }))
}

function countStream(own: Session, stream: ServerHttp2Stream, isWhole: boolean, needs: Http2Needs): void {
  const { times, clock, log } = needs
  // Without a listener an error of the stream would end the program.
  stream.on('error', (error) => log.debug('HTTP/2 stream failed', { error }))
  own.streams += 1
  if (!isWhole) {
    own.bodies.set(stream, clock.monotonicMs())
    stream.once('end', () => own.bodies.delete(stream))
  }
  stream.once('close', () => {
    own.bodies.delete(stream)
    own.streams -= 1
    if (own.streams > 0) return
    own.idleSinceMs = clock.monotonicMs()
    own.idleMs = times.keepAliveTimeout
  })
}

function begin(own: Session, stream: ServerHttp2Stream, head: StreamHead, needs: Http2Needs): void {
  const { session, socket } = own
  if (stream.destroyed || stream.closed || session.destroyed) return
  if (head.headers.expect === '100-continue') stream.additionalHeaders({ ':status': 100 })
  const close = () => {
    if (!session.closed) session.close()
  }
  const gaveUp = () => pingOnce(own, needs)
  void needs
    .answer(streamMessages(stream, head, { socket, close, gaveUp }))
    .then(() => finish(stream, needs.slow, gaveUp))
}

/** The connection of a client that takes no answers ends unless it answers this: one that does not read cannot. */
function pingOnce(own: Session, { clock }: Http2Needs): void {
  if (own.pingedMs !== undefined || own.session.destroyed) return
  own.pingedMs = clock.monotonicMs()
  own.session.ping(() => {
    own.pingedMs = undefined
  })
}

function checkTimes(own: Session, needs: Http2Needs): void {
  const { session, socket, bodies, streams, idleSinceMs, idleMs, pingedMs } = own
  const { times, clock, refused } = needs
  const nowMs = clock.monotonicMs()
  if (session.destroyed) {
    // Node.js sends its last frames first, for ever where the client reads nothing.
    if (own.isEnding) socket.destroy()
    own.isEnding = true
    return
  }
  if (pingedMs !== undefined && nowMs - pingedMs >= times.headersTimeout) {
    refused(socket, 'Timeout')
    session.destroy()
    return
  }
  for (const [stream, sinceMs] of bodies) {
    if (nowMs - sinceMs < times.requestTimeout) continue
    refused(socket, 'Timeout')
    bodies.delete(stream)
    stream.close(constants.NGHTTP2_CANCEL)
  }
  if (streams > 0 || nowMs - idleSinceMs < idleMs) return
  // A client that has gone without a word does not take the end, either.
  if (session.closed) session.destroy()
  else session.close()
}

/**
 * What is written waits in memory until the client opens its windows: for as long as any slow reader may take. Once it is sent,
 * a client that goes on with its request is not listened to (RFC 9113, 8.1).
 */
async function finish(
  stream: ServerHttp2Stream,
  slow: Pick<SlowReaders, 'drained'>,
  gaveUp: () => void,
): Promise<void> {
  const isSent = () => stream.writableFinished || stream.closed
  // Nearly all are sent in the same turn of the event loop: those need no timer.
  if (!isSent()) await setImmediate()
  if (!isSent()) await slow.drained(untilFinished(stream, gaveUp), never)
  if (!stream.readableEnded && !stream.closed) stream.close(constants.NGHTTP2_NO_ERROR)
}

const never = new AbortController().signal
setMaxListeners(0, never) // many answers may wait for their readers

/** Its end as that of what is written: it comes also where the client gave up. */
function untilFinished(stream: ServerHttp2Stream, gaveUp: () => void): Drain {
  const events = ['finish', 'close'] as const
  return {
    get writableLength() {
      return stream.writableLength
    },
    once: (_, listener) => events.map((event) => stream.once(event, listener)),
    off: (_, listener) => events.map((event) => stream.off(event, listener)),
    destroy() {
      stream.close(constants.NGHTTP2_CANCEL)
      gaveUp()
    },
  }
}

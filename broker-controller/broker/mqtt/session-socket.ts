/** Reading from and writing to the socket of one session, with bounded memory. */
import type { Duplex } from 'node:stream'
import type { TLSSocket } from 'node:tls'
import { type Packet, parser } from 'mqtt-packet'
import { wholePackets } from './packet-meter.ts'

/** Answers that wait because the client does not read. */
const mostUnread = 4096

export interface SessionWriter {
  send(packet: Buffer): void
  /** False: the connection was closed, because the client does not read, and the answers would fill the memory. */
  answer(packet: Buffer, weight?: number): boolean
}

/** `close` is called with the reason if too many answers wait. */
export function sessionWriter(socket: TLSSocket, close: (error: Error) => void): SessionWriter {
  let unread = 0
  const send = (packet: Buffer) => {
    if (socket.writable) socket.write(packet)
  }
  return {
    send,
    answer(packet, weight = 1) {
      unread = socket.writableNeedDrain ? unread + weight : 0
      if (unread <= mostUnread) send(packet)
      else close(new Error('It does not read the answers to what it sends'))
      return unread <= mostUnread
    },
  }
}

export interface ReadingPause {
  /** Nothing is read from the socket until all work that was given has resolved. */
  until(work: Promise<void>): void
  readonly isPaused: boolean
}

/** `resumed` is called when reading resumes. */
export function readingPause(socket: TLSSocket, resumed: () => void): ReadingPause {
  let pending = 0
  return {
    until(work) {
      pending += 1
      if (pending === 1) socket.pause()
      void work.then(() => {
        pending -= 1
        if (pending > 0) return
        resumed()
        socket.resume()
      })
    },
    get isPaused() {
      return pending > 0
    },
  }
}

/** Passes on the packets that arrive. `failed`: with an error for what is not MQTT, with undefined for a packet that is too large. */
export function readPackets(
  socket: Duplex,
  maxPacketBytes: number,
  receive: (packet: Packet) => void,
  failed: (error: Error | undefined) => void,
): void {
  const readPiece = wholePackets(maxPacketBytes, (bytes) => {
    const { packets, error } = parsedPackets(bytes)
    for (const packet of packets) receive(packet)
    if (error !== undefined) failed(error)
  })
  const collect = collecting(socket)
  socket.on('data', (piece: Buffer) => {
    if (socket.destroyed) return
    collect()
    if (!readPiece(piece)) failed(undefined)
  })
}

type Parsed = { readonly packets: readonly Packet[]; readonly error: Error | undefined; readonly isClean: boolean }
type WholePacketParser = (bytes: Buffer) => Parsed

/** The parser of all connections, while none uses it; undefined: the next packets need a new one. */
let idleParser: WholePacketParser | undefined

/**
 * The packets in these bytes, and why the rest could not be read. Connections share a parser: between whole packets it has nothing
 * of theirs, and one for each would take 1.7 kB, and keep its CONNECT. A CONNECT sets how the packets after it are read, so
 * the parser that has read one is not used again, nor is one that failed.
 */
function parsedPackets(bytes: Buffer): Parsed {
  const parse = idleParser ?? wholePacketParser()
  idleParser = undefined
  const parsed = parse(bytes)
  if (parsed.isClean) idleParser = parse
  return parsed
}

function wholePacketParser(): WholePacketParser {
  const parse = parser()
  let packets: Packet[] = []
  let error: Error | undefined
  parse.on('packet', (packet) => void packets.push(packet))
  parse.on('error', (cause) => {
    error = cause
  })
  return (bytes) => {
    packets = []
    const unreadBytes = parse.parse(bytes)
    if (unreadBytes > 0) error ??= new Error('Malformed packet')
    return { packets, error, isClean: error === undefined && !packets.some(({ cmd }) => cmd === 'connect') }
  }
}

/**
 * What is written from the call on, until this turn of the event loop ends, is sent in one TLS record, with one system call: the answers
 * to all records that were read together, of which Node.js passes on each by itself. No more than `mostCollected` waits for that.
 */
function collecting(socket: Duplex): () => void {
  let isCollecting = false
  const send = () => {
    isCollecting = false
    socket.uncork()
  }
  return () => {
    if (isCollecting) {
      if (socket.writableLength < mostCollected) return
      socket.uncork()
    } else {
      isCollecting = true
      setImmediate(send)
    }
    socket.cork()
  }
}

/** Far below `writableHighWaterMark`, from which on a client counts as one that does not read. */
const mostCollected = 4096

/** Closes the socket when everything has been sent; resolves when it is closed. */
export function endSocket(socket: TLSSocket): Promise<void> {
  const closed = new Promise<void>((resolve) => {
    if (socket.destroyed) resolve()
    socket.once('close', () => resolve())
  })
  socket.end()
  return closed
}

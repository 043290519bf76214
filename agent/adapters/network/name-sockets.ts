/** DNS on one address: datagrams and TCP connections of clients → messages and their answers (RFC 1035, section 4.2; RFC 7766). */
import { createSocket, type Socket as DatagramSocket } from 'node:dgram'
import { createServer, type Server, type Socket } from 'node:net'
import { codeOf } from '../../../daemon/errors.ts'
import type { Answerer } from '../../network/names/answerer.ts'
import type { NameSockets } from '../../network/names/name-server.ts'
import { sendDatagram } from './datagram.ts'

export type NameSocketAddress = {
  readonly address: string
  /** 0: any that is free, the same for both. */
  readonly port: number
}

export interface OpenedNameSockets extends NameSockets {
  readonly port: number
}

/** A port that is free for datagrams may be taken for connections, by those too that were closed in the last minute. */
const mostPorts = 20
/** Connections of all clients, and of one: a client that does not close its own takes them from no other. */
const mostConnections = 128
const mostOfSource = 16
/** Between two questions on one connection (RFC 7766, section 6.2.3: a few seconds). */
const idleMs = 10_000
/** Questions are a hundred bytes; options add some. */
const longestQuestion = 4_096

/** Rejects where the address is not one of the machine's, or the port is taken. */
export async function openNameSockets(at: NameSocketAddress, answerer: Answerer): Promise<OpenedNameSockets> {
  const { datagrams, server } = await openBoth(at)
  const ended = firstError(datagrams, server)
  answerDatagrams(datagrams, answerer)
  const connections = answerConnections(server, answerer)
  return {
    port: datagrams.address().port,
    ended,
    async close() {
      for (const socket of connections) socket.destroy()
      await Promise.all([closed(datagrams), closed(server)])
    },
  }
}

async function openBoth({ address, port }: NameSocketAddress) {
  for (let tries = 1; ; tries++) {
    const datagrams = createSocket('udp4')
    const server = createServer()
    try {
      await listening(datagrams, () => datagrams.bind({ address, port, exclusive: true }))
      await listening(server, () => server.listen({ host: address, port: datagrams.address().port, exclusive: true }))
      return { datagrams, server }
    } catch (cause) {
      datagrams.close()
      server.close()
      const mayBeAnother = port === 0 && tries < mostPorts && codeOf(cause) === 'EADDRINUSE'
      if (!mayBeAnother) throw new Error(`Cannot listen on ${address}, port ${port}`, { cause })
    }
  }
}

function answerDatagrams(socket: DatagramSocket, answerer: Answerer): void {
  socket.on('message', (message, from) => {
    // A client that is gone is not an error of the socket.
    const send = (answer: Buffer) => sendDatagram(socket, answer, from)
    const answer = answerer.answer(message, from.address, 'udp')
    if (answer instanceof Promise) void answer.then(send)
    else if (answer !== undefined) void send(answer)
  })
}

function answerConnections(server: Server, answerer: Answerer): ReadonlySet<Socket> {
  const connections = new Set<Socket>()
  const sources = new Map<string, number>()
  server.on('connection', (socket) => {
    const source = socket.remoteAddress ?? ''
    const own = sources.get(source) ?? 0
    socket.on('error', () => undefined)
    const isTaken = answerer.isClient(source) && connections.size < mostConnections && own < mostOfSource
    if (!isTaken) return void socket.destroy()
    connections.add(socket)
    sources.set(source, own + 1)
    socket.once('close', () => {
      connections.delete(socket)
      const left = (sources.get(source) ?? 1) - 1
      if (left > 0) sources.set(source, left)
      else sources.delete(source)
    })
    socket.setTimeout(idleMs, () => socket.destroy())
    answerConnection(socket, source, answerer).catch(() => socket.destroy())
  })
  return connections
}

/** One question after the other; what follows a question is not read before its answer is written. */
async function answerConnection(socket: Socket, source: string, answerer: Answerer): Promise<void> {
  let waiting = Buffer.alloc(0)
  for await (const chunk of socket) {
    waiting = Buffer.concat([waiting, chunk])
    while (waiting.length >= 2) {
      const end = 2 + waiting.readUInt16BE(0)
      if (end > longestQuestion) return void socket.destroy()
      if (waiting.length < end) break
      const answer = await answerer.answer(waiting.subarray(2, end), source, 'tcp')
      if (answer === undefined) return void socket.destroy()
      await written(socket, answer)
      waiting = waiting.subarray(end)
    }
  }
  socket.end()
}

function written(socket: Socket, answer: Buffer): Promise<void> {
  const length = Buffer.alloc(2)
  length.writeUInt16BE(answer.length, 0)
  return new Promise((resolve, reject) => {
    socket.write(Buffer.concat([length, answer]), (error) => (error ? reject(error) : resolve()))
  })
}

function listening(socket: DatagramSocket | Server, open: () => void): Promise<void> {
  return new Promise((resolve, reject) => {
    socket.once('error', reject)
    socket.once('listening', () => {
      socket.off('error', reject)
      resolve()
    })
    open()
  })
}

function firstError(...sockets: readonly (DatagramSocket | Server)[]): Promise<Error> {
  return new Promise((resolve) => {
    for (const socket of sockets) socket.on('error', resolve)
  })
}

function closed(socket: DatagramSocket | Server): Promise<void> {
  return new Promise((resolve) => {
    socket.close(() => resolve())
  })
}

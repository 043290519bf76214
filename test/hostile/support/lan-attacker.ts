/**
 * A program of its own, in the network namespace of an attacker: sends datagrams, keeps connections open, or answers probes in the place
 * of a node. Its argument is the attack, in JSON; prints one JSON line when it has ended.
 */
import { createSocket, type Socket as DatagramSocket } from 'node:dgram'
import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import { setTimeout as pause } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { probePort } from '../../../api/network/address-probe.ts'
import { commandOrThrow } from '../../support/machine-commands.ts'
import { stillOpen } from './clients.ts'

export type Datagrams = {
  readonly attack: 'datagrams'
  readonly to: string
  readonly port: number
  /** Base64; sent in turn. */
  readonly messages: readonly string[]
  /** Source addresses, in turn; default: that of the route. */
  readonly from?: readonly string[]
  readonly fromPort?: number
  /** `to` is a group: the address of the interface that it is sent by. */
  readonly multicastBy?: string
  readonly perSecond: number
  readonly seconds: number
}

export type Connections = {
  readonly attack: 'connections'
  readonly to: string
  readonly port: number
  readonly from?: string
  readonly count: number
  /** Base64; each connection sends the next of them as soon as it is open. */
  readonly messages: readonly string[]
  /** From the first attempt until all are closed. */
  readonly seconds: number
}

export type Impostor = {
  readonly attack: 'impostor'
  /** Address of a node, which has been given to this machine. */
  readonly address: string
  /** Address of the machine whose probes it answers. It is sent challenges, which make it probe sooner. */
  readonly victim: string
  /** Base64, without the nonce; in turn. An empty one: the challenge is not answered. */
  readonly proofs: readonly { readonly before: string; readonly after: string }[]
  readonly challenge: string
  readonly seconds: number
}

export type LanAttack = Datagrams | Connections | Impostor

/** `answers`: datagrams, or connections on which something was received. `challenges`: that the impostor received. */
export type AttackResult = {
  readonly sent: number
  readonly answers: number
  readonly answerBytes: number
  readonly opened: number
  readonly stillOpen: number
  readonly challenges: number
  /** Base64: the first datagram that was received. */
  readonly received?: string
}

const nothing: AttackResult = { sent: 0, answers: 0, answerBytes: 0, opened: 0, stillOpen: 0, challenges: 0 }

/** Runs it by `enter`, the command that leads into the attacker's network. */
export async function lanAttack(enter: readonly string[], attack: LanAttack): Promise<AttackResult> {
  const [file = '', ...args] = [...enter, process.execPath, fileURLToPath(import.meta.url)]
  // The messages are longer than a command line may be.
  const printed = await commandOrThrow(file, args, { input: JSON.stringify(attack) })
  return JSON.parse(printed)
}

function result(attack: LanAttack): Promise<Partial<AttackResult>> {
  switch (attack.attack) {
    case 'datagrams':
      return sendDatagrams(attack)
    case 'connections':
      return keepConnections(attack)
    case 'impostor':
      return answerProbes(attack)
  }
}

const turnMs = 10

/** As many challenges as a node answers to one address. */
const challengeMs = 500

function bytesOf(texts: readonly string[]): readonly Buffer[] {
  return texts.map((text) => Buffer.from(text, 'base64'))
}

async function boundSocket(address: string | undefined, port: number): Promise<DatagramSocket> {
  const socket = createSocket({ type: 'udp4', reuseAddr: true, sendBufferSize: 1 << 20 })
  socket.on('error', () => undefined)
  socket.bind({ address: address ?? '0.0.0.0', port, exclusive: true })
  await once(socket, 'listening')
  return socket
}

async function sendDatagrams(attack: Datagrams): Promise<Partial<AttackResult>> {
  const { to, port, from = [undefined], fromPort = 0, multicastBy, perSecond, seconds } = attack
  const messages = bytesOf(attack.messages)
  let [sent, answers, answerBytes] = [0, 0, 0]
  let received: string | undefined
  const sockets = await Promise.all(from.map((address) => boundSocket(address, fromPort)))
  for (const socket of sockets) {
    if (multicastBy !== undefined) socket.setMulticastInterface(multicastBy)
    socket.on('message', (message) => {
      answers += 1
      answerBytes += message.length
      received ??= message.toString('base64')
    })
  }
  const beganMs = performance.now()
  for (let passedMs = 0; passedMs < seconds * 1000; passedMs = performance.now() - beganMs) {
    for (const due = (perSecond * passedMs) / 1000; sent < due; sent++) {
      const message = messages[sent % messages.length] ?? Buffer.alloc(0)
      sockets[sent % sockets.length]?.send(message, port, to, () => undefined)
    }
    await pause(turnMs)
  }
  // The last answers.
  await pause(300)
  return { sent, answers, answerBytes, ...(received !== undefined && { received }) }
}

async function keepConnections({
  to,
  port,
  from,
  count,
  seconds,
  ...attack
}: Connections): Promise<Partial<AttackResult>> {
  const messages = bytesOf(attack.messages)
  const untilMs = performance.now() + seconds * 1000
  const sockets: Socket[] = []
  let [sent, answers, answerBytes, opened] = [0, 0, 0, 0]
  for (; sent < count && performance.now() < untilMs; sent++) {
    const message = messages[sent % messages.length] ?? Buffer.alloc(0)
    const socket = connect({ host: to, port, ...(from !== undefined && { localAddress: from }) })
    sockets.push(socket)
    socket.on('error', () => undefined)
    socket.once('connect', () => {
      opened += 1
      socket.write(message)
    })
    socket.once('data', () => {
      answers += 1
    })
    socket.on('data', ({ length }) => {
      answerBytes += length
    })
    if (sent % 20 === 0) await pause(turnMs)
  }
  await pause(Math.max(0, untilMs - performance.now()))
  const open = stillOpen(sockets.filter(({ connecting }) => !connecting))
  for (const socket of sockets) socket.destroy()
  return { sent, answers, answerBytes, opened, stillOpen: open }
}

async function answerProbes({ address, victim, proofs, challenge, seconds }: Impostor): Promise<Partial<AttackResult>> {
  const socket = await boundSocket(address, probePort)
  let [challenges, answers] = [0, 0]
  socket.on('message', (message) => {
    if (message.subarray(0, 4).toString() !== 'BRc1') return
    const proof = proofs[challenges % proofs.length]
    challenges += 1
    if (proof === undefined || proof.before === '') return
    const nonce = message.subarray(4, 28)
    const bytes = Buffer.concat([Buffer.from(proof.before, 'base64'), nonce, Buffer.from(proof.after, 'base64')])
    answers += 1
    socket.send(bytes, probePort, victim, () => undefined)
  })
  const untilMs = performance.now() + seconds * 1000
  while (performance.now() < untilMs) {
    socket.send(Buffer.from(challenge, 'base64'), probePort, victim, () => undefined)
    await pause(challengeMs)
  }
  return { challenges, answers }
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const parts: Buffer[] = []
  for await (const part of process.stdin) parts.push(part)
  const attack: LanAttack = JSON.parse(Buffer.concat(parts).toString())
  process.stdout.write(`${JSON.stringify({ ...nothing, ...(await result(attack)) })}\n`, () => process.exit())
}

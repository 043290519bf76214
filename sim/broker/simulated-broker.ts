/** The broker of the world: sessions, retained messages and last wills as the embedded one has them, with its rules for topics. */
import { isBelowNode, isFleetTopic, type NodeTopic, namedTopic, topicName, topicRules } from '../../api/topics.ts'
import type { Broker, NodeListener } from '../../broker-controller/broker/broker.ts'
import { mayPublish, maySubscribe } from '../../broker-controller/broker/mqtt/authorization.ts'
import type { Log } from '../../daemon/log.ts'
import type { ProgramLife } from '../world/life.ts'
import type { WireEnd } from '../world/wire.ts'
import type { FromBroker, ToBroker } from './packets.ts'

export interface SimulatedBroker extends Broker {
  listen(to: NodeListener): void
  /** A node has opened a connection, whose certificate names it. */
  accept(node: string, wire: WireEnd<FromBroker, ToBroker>): void
  /** While paused, no node is connected. */
  pause(isPaused: boolean): void
}

type Packet<Cmd extends ToBroker['cmd']> = Extract<ToBroker, { readonly cmd: Cmd }>

type Session = {
  readonly node: string
  readonly wire: WireEnd<FromBroker, ToBroker>
  readonly topics: Set<string>
  will: { readonly topic: NodeTopic; readonly body: string } | undefined
  receivedMs: number
  keepaliveMs: number
  /** Nothing more is read while a message is handled. */
  reading: Promise<void>
}

type Hall = {
  readonly sessions: Map<string, Session>
  readonly retained: Map<string, string | (() => string)>
  readonly log: Log
  readonly delivered: (node: string, body: string) => void
  listener: NodeListener | undefined
  isPaused: boolean
}

const checkMs = 1_000

export type SimulatedBrokerNeeds = {
  readonly life: ProgramLife
  readonly log: Log
  /** Called with each message that the broker sends to a node. */
  readonly delivered: (node: string, body: string) => void
}

export function simulatedBroker({ life, log, delivered }: SimulatedBrokerNeeds): SimulatedBroker {
  const { clock } = life
  const hall: Hall = { sessions: new Map(), retained: new Map(), log, delivered, listener: undefined, isPaused: false }
  const { sessions, retained } = hall

  const checkTimes = async () => {
    while (life.isAlive) {
      await clock.sleep(checkMs)
      const nowMs = clock.monotonicMs()
      for (const session of [...sessions.values()])
        if (nowMs - session.receivedMs > session.keepaliveMs) endSession(hall, session)
    }
  }
  void checkTimes()

  return {
    identifiesSenders: true,
    listen(to) {
      hall.listener = to
    },
    pause(isPaused) {
      hall.isPaused = isPaused
      if (isPaused) for (const session of [...sessions.values()]) endSession(hall, session)
    },
    accept(node, wire) {
      const session: Session = {
        ...{ node, wire, topics: new Set(), will: undefined },
        ...{ receivedMs: clock.monotonicMs(), keepaliveMs: Number.POSITIVE_INFINITY, reading: Promise.resolve() },
      }
      const receive = (packet: ToBroker) => {
        session.receivedMs = clock.monotonicMs()
        session.reading = session.reading.then(() => life.within(async () => handle(hall, session, packet)))
      }
      wire.listen(receive, () => endSession(hall, session))
    },
    async publish(topic, body, { retain = topicRules[topic.kind].retain, again, retained: inPlace } = {}) {
      if (!life.isAlive) return
      const name = topicName(topic)
      if (retain) retained.set(name, inPlace ?? again ?? body)
      const readers = isFleetTopic(topic) ? [...sessions.values()] : [sessions.get(topic.node)]
      for (const session of readers) if (session !== undefined) send(hall, session, [name, body, false])
    },
    async withdraw(topic) {
      retained.delete(topicName(topic))
    },
    async close() {
      for (const session of sessions.values()) session.wire.destroy()
    },
  }
}

function handle(hall: Hall, session: Session, packet: ToBroker): Promise<void> | undefined {
  if (!session.wire.isOpen) return undefined
  if (packet.cmd === 'publish') return publish(hall, session, packet)
  if (packet.cmd === 'connect') connect(hall, session, packet)
  if (packet.cmd === 'subscribe') subscribe(hall, session, packet)
  if (packet.cmd === 'pingreq') session.wire.send({ cmd: 'ack', id: packet.id })
  if (packet.cmd === 'disconnect') endSession(hall, session, 'goodbye')
  return undefined
}

function connect(hall: Hall, session: Session, { will, keepaliveSeconds }: Packet<'connect'>): void {
  const { node } = session
  const permission = mayPublish(node, { topic: will.topic, qos: 1, retain: true })
  if (hall.isPaused) {
    endSession(hall, session)
    return
  }
  if (!permission.allowed) {
    refuse(hall, session, permission.reason)
    return
  }
  session.will = { topic: permission.topic, body: will.body }
  session.keepaliveMs = keepaliveSeconds * 1_500
  const previous = hall.sessions.get(node)
  hall.sessions.set(node, session)
  hall.listener?.connected(node, {})
  previous?.wire.destroy()
  session.wire.send({ cmd: 'connack' })
}

function publish(hall: Hall, session: Session, packet: Packet<'publish'>): Promise<void> | undefined {
  const { node } = session
  const { topic, qos, retain, body, id } = packet
  const permission = mayPublish(node, { topic: namedTopic(topic, node), qos, retain })
  const isDropped = !permission.allowed && permission.code === 'UnknownTopic' && isBelowNode(topic, node)
  if (!permission.allowed && !isDropped) {
    refuse(hall, session, permission.reason)
    return undefined
  }
  const isCurrent = hall.sessions.get(node) === session
  const isTaken = permission.allowed && isCurrent
  const handled = isTaken ? hall.listener?.message({ node, topic: permission.topic, body }) : undefined
  if (qos === 1) session.wire.send({ cmd: 'ack', id })
  return handled
}

function subscribe(hall: Hall, session: Session, { id, topics }: Packet<'subscribe'>): void {
  const isRefused = topics.some((topic) => !maySubscribe(session.node, topic).allowed)
  session.wire.send({ cmd: 'ack', id, isRefused })
  if (isRefused) return
  for (const topic of topics) {
    session.topics.add(topic)
    const kept = hall.retained.get(topic)
    const body = typeof kept === 'function' ? kept() : kept
    if (body !== undefined) send(hall, session, [topic, body, true])
  }
}

function send(
  { delivered }: Hall,
  { node, topics, wire }: Session,
  [topic, body, isRetained]: readonly [topic: string, body: string, isRetained: boolean],
): void {
  if (!topics.has(topic)) return
  delivered(node, body)
  wire.send({ cmd: 'message', topic, body, isRetained }, body.length)
}

function refuse(hall: Hall, session: Session, because: string): void {
  hall.log.error('MQTT refused', { node: session.node, because })
  endSession(hall, session)
}

/** The will is published unless the node has published a goodbye, or has a newer connection. */
function endSession({ sessions, listener }: Hall, session: Session, how?: 'goodbye'): void {
  const { node, will, wire } = session
  wire.destroy()
  if (sessions.get(node) !== session) return
  sessions.delete(node)
  if (will !== undefined && how !== 'goodbye') void listener?.message({ node, ...will })
  listener?.disconnected(node)
}

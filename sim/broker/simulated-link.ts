/** The agent's link to the broker, over the network of the world. */
import { setMaxListeners } from 'node:events'
import type { MessageListener, MqttLink, MqttLinkSettings } from '../../agent/adapters/mqtt/mqtt-link.ts'
import { unlessAborted, withOwnSignal } from '../../daemon/aborted.ts'
import type { Clock } from '../../daemon/clock.ts'
import { within } from '../../daemon/deadline.ts'
import type { Servers } from '../world/servers.ts'
import type { ProgramPlace, WireEnd } from '../world/wire.ts'
import type { FromBroker, ToBroker } from './packets.ts'

type Wire = WireEnd<ToBroker, FromBroker>
export type BrokerServers = Servers<Wire>

/** As `mqtt-link.ts` has them. */
const times = { connectMs: 15_000, answerMs: 20_000 }

/** Opens links as `openLink` does. */
export function simulatedLinks(place: ProgramPlace, brokers: BrokerServers) {
  const { clock } = place.life
  return (settings: MqttLinkSettings, listener: MessageListener, signal: AbortSignal): Promise<MqttLink> =>
    withOwnSignal(signal, async (attempt) => {
      signal.throwIfAborted()
      const { connectMs = times.connectMs } = settings
      try {
        const connecting = brokers.connect(place, 'controller', attempt.signal)
        const wire = await within(connectMs, 'Not connected', connecting, clock)
        const { link, accepted } = linkOn(wire, listener, clock)
        attempt.signal.addEventListener('abort', () => wire.destroy(), { once: true })
        wire.send({ cmd: 'connect', will: settings.will, keepaliveSeconds: settings.keepaliveSeconds })
        await within(connectMs, 'The broker did not accept the connection', accepted, clock)
        return link
      } catch (error) {
        attempt.abort(error)
        throw error
      }
    })
}

/** `accepted` rejects where the connection ends before. */
function linkOn(wire: Wire, listener: MessageListener, clock: Clock) {
  const waiting = new Map<number, (isRefused: boolean) => void>()
  const end = new AbortController()
  setMaxListeners(0, end.signal)
  let lastId = 0
  const ended = new Promise<Error>((resolve) => {
    end.signal.addEventListener('abort', () => resolve(end.signal.reason), { once: true })
  })
  const over = (because: Error) => {
    wire.destroy()
    end.abort(because)
  }
  const accepted = new Promise<void>((resolve, reject) => {
    wire.listen((packet) => {
      if (packet.cmd === 'connack') resolve()
      if (packet.cmd === 'message') listener(packet.topic, packet.body, packet.isRetained)
      if (packet.cmd !== 'ack') return
      waiting.get(packet.id)?.(packet.isRefused ?? false)
      waiting.delete(packet.id)
    }, over)
    void ended.then(reject)
  })
  accepted.catch(() => undefined)

  const answered = async (what: string, packet: (id: number) => ToBroker, bytes: number) => {
    const id = ++lastId
    const acknowledged = new Promise<boolean>((resolve) => void waiting.set(id, resolve))
    wire.send(packet(id), bytes)
    const answer = unlessAborted(acknowledged, end.signal)
    const isRefused = await within(times.answerMs, `Cannot ${what}: no answer`, answer, clock)
    if (end.signal.aborted) throw new Error(`Cannot ${what}: the link has ended`, { cause: end.signal.reason })
    if (isRefused) throw new Error(`Cannot ${what}: refused`)
  }
  const link: MqttLink = {
    ended,
    canSend: () => wire.isOpen,
    publish: (topic, body, { qos, retain }) =>
      answered(`publish on ${topic}`, (id) => ({ cmd: 'publish', id, topic, body, qos, retain }), body.length + 1),
    send(topic, body) {
      if (!wire.isOpen) return false
      wire.send({ cmd: 'publish', id: 0, topic, body, qos: 0, retain: false }, body.length + 1)
      return true
    },
    ping: () => answered('ping', (id) => ({ cmd: 'pingreq', id }), 2),
    sentData: async () => ({ waitingBytes: wire.waitingBytes, deliveredBytes: wire.deliveredBytes }),
    hasAddress: async () => true,
    subscribe: (topics) => answered(`subscribe to ${topics.join()}`, (id) => ({ cmd: 'subscribe', id, topics }), 10),
    abandon: over,
    async close() {
      wire.send({ cmd: 'disconnect' })
      wire.close()
      end.abort(new Error('Closed'))
    },
  }
  return { link, accepted }
}

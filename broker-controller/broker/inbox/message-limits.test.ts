import { test } from 'tap'
import type { NodeTopic } from '../../../api/topics.ts'
import { metricsRegistry } from '../../../daemon/metrics-registry.ts'
import { fakeClock } from '../../../daemon/testing/fake-clock.ts'
import { defaultMessageLimits, limitMessages } from './message-limits.ts'

const { messages, bytes, signsOfLife } = defaultMessageLimits

function aListener(limits = defaultMessageLimits) {
  const clock = fakeClock()
  const registry = metricsRegistry()
  const received: string[] = []
  const inner = {
    message: async ({ node, topic, body }: { node: string; topic: NodeTopic; body: string }) => {
      received.push(`${node} ${topic.kind} ${body.slice(0, 20)}`)
    },
    connected: (node: string) => void received.push(`${node} connected`),
    disconnected: (node: string) => void received.push(`${node} disconnected`),
  }
  const listener = limitMessages(inner, { clock, registry }, limits)
  /** Resolves when the broker may read more of this node. */
  const publish = (node: string, kind: 'status' | 'lease' | 'connection' | 'events', body = '') =>
    listener.message({ node, topic: { kind, node }, body })
  return { ...listener, publish, clock, received, metrics: () => registry.text() }
}

test('what a node with 110 pods publishes when it connects passes at once', async (t) => {
  const { publish, received } = aListener()
  for (let pod = 0; pod < 110; pod++) void publish('pi-1', 'status', 'x'.repeat(20_000))
  for (let event = 0; event < 600; event++) void publish('pi-1', 'events', 'x'.repeat(500))
  t.equal(received.length, 710)
})

test('a node that publishes without end is slowed down and loses nothing; its order is kept', async (t) => {
  const { publish, received, clock, metrics } = aListener()
  const count = messages.burst + 5 * messages.perSecond
  for (let number = 0; number < count; number++) void publish('loud', 'status', `${number}`)
  t.equal(received.length, messages.burst)
  await publish('calm', 'status', 'not affected')
  t.equal(received.at(-1), 'calm status not affected')
  t.match(await metrics(), /delayed_messages_total 250\n(.*\n)*bramble_broker_delayed_nodes 1/)
  await clock.advance(1000)
  t.equal(received.length, messages.burst + 1 + messages.perSecond)
  await clock.advance(4000)
  const own = received.filter((line) => line.startsWith('loud'))
  t.same(
    own,
    Array.from({ length: count }, (_, number) => `loud status ${number}`),
  )
  t.match(await metrics(), /bramble_broker_delayed_nodes 0/)
})

test('many large messages are slowed down by their bytes', async (t) => {
  const { publish, received, clock } = aListener()
  const body = 'x'.repeat(bytes.perSecond)
  const atOnce = bytes.burst / bytes.perSecond
  for (let number = 0; number < atOnce + 3; number++) void publish('loud', 'status', body)
  t.equal(received.length, atOnce)
  await clock.advance(1000)
  t.equal(received.length, atOnce + 1)
  await clock.advance(2000)
  t.equal(received.length, atOnce + 3)
})

test('characters of several bytes count as such', async (t) => {
  const { publish, received } = aListener()
  const body = '€'.repeat(bytes.perSecond)
  for (let number = 0; number < bytes.burst / bytes.perSecond; number++) void publish('loud', 'status', body)
  t.equal(received.length, Math.floor(bytes.burst / bytes.perSecond / 3))
})

test('leases and goodbyes do not wait behind a flood, and cannot bypass the limit', async (t) => {
  const { publish, received } = aListener()
  for (let number = 0; number < 2 * messages.burst; number++) void publish('loud', 'status')
  const before = received.length
  await publish('loud', 'lease', 'beat')
  await publish('loud', 'connection', 'goodbye')
  t.same(received.slice(before), ['loud lease beat', 'loud connection goodbye'])
  for (let number = 0; number < 10_000; number++) void publish('loud', 'lease')
  t.equal(received.length, before + signsOfLife.burst)
})

test('messages that wait when the connection ends are not received afterwards', async (t) => {
  const { publish, received, clock, connected, disconnected } = aListener()
  for (let number = 0; number < messages.burst + 10; number++) void publish('loud', 'status')
  const before = received.length
  disconnected('loud')
  connected('loud', {})
  await publish('loud', 'connection', 'online')
  await clock.advance(60_000)
  t.same(received.slice(before), ['loud disconnected', 'loud connected', 'loud connection online'])
  await publish('loud', 'status', 'later')
  t.equal(received.at(-1), 'loud status later')
})

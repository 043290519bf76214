import { Registry } from 'prom-client'
import { test } from 'tap'
import type { NodeTopic } from '../../../api/topics.ts'
import { fakeClock } from '../../../daemon/testing/fake-clock.ts'
import { defaultMessageLimits, limitMessages } from './message-limits.ts'

const { messages, bytes, signsOfLife } = defaultMessageLimits

function aListener(limits = defaultMessageLimits) {
  const clock = fakeClock()
  const registry = new Registry()
  const heard: string[] = []
  const inner = {
    message: async ({ node, topic, body }: { node: string; topic: NodeTopic; body: string }) => {
      heard.push(`${node} ${topic.kind} ${body.slice(0, 20)}`)
    },
    connected: (node: string) => void heard.push(`${node} connected`),
    disconnected: (node: string) => void heard.push(`${node} disconnected`),
  }
  const listener = limitMessages(inner, { clock, registry }, limits)
  /** Resolves when the broker may read more of this node. */
  const publish = (node: string, kind: 'status' | 'lease' | 'connection' | 'events', body = '') =>
    listener.message({ node, topic: { kind, node }, body })
  return { ...listener, publish, clock, heard, metrics: () => registry.metrics() }
}

test('what a node with 110 pods publishes when it connects passes at once', async (t) => {
  const { publish, heard } = aListener()
  for (let pod = 0; pod < 110; pod++) void publish('pi-1', 'status', 'x'.repeat(20_000))
  for (let event = 0; event < 600; event++) void publish('pi-1', 'events', 'x'.repeat(500))
  t.equal(heard.length, 710)
})

test('a node that publishes without end is slowed down and loses nothing; its order is kept', async (t) => {
  const { publish, heard, clock, metrics } = aListener()
  const count = messages.burst + 5 * messages.perSecond
  for (let number = 0; number < count; number++) void publish('loud', 'status', `${number}`)
  t.equal(heard.length, messages.burst)
  await publish('calm', 'status', 'not affected')
  t.equal(heard.at(-1), 'calm status not affected')
  t.match(await metrics(), /delayed_messages_total 250\n(.*\n)*bramble_broker_delayed_nodes 1/)
  await clock.advance(1000)
  t.equal(heard.length, messages.burst + 1 + messages.perSecond)
  await clock.advance(4000)
  const own = heard.filter((line) => line.startsWith('loud'))
  t.same(
    own,
    Array.from({ length: count }, (_, number) => `loud status ${number}`),
  )
  t.match(await metrics(), /bramble_broker_delayed_nodes 0/)
})

test('many large messages are slowed down by their bytes', async (t) => {
  const { publish, heard, clock } = aListener()
  const body = 'x'.repeat(bytes.perSecond)
  const atOnce = bytes.burst / bytes.perSecond
  for (let number = 0; number < atOnce + 3; number++) void publish('loud', 'status', body)
  t.equal(heard.length, atOnce)
  await clock.advance(1000)
  t.equal(heard.length, atOnce + 1)
  await clock.advance(2000)
  t.equal(heard.length, atOnce + 3)
})

test('characters of several bytes count as such', async (t) => {
  const { publish, heard } = aListener()
  const body = '€'.repeat(bytes.perSecond)
  for (let number = 0; number < bytes.burst / bytes.perSecond; number++) void publish('loud', 'status', body)
  t.equal(heard.length, Math.floor(bytes.burst / bytes.perSecond / 3))
})

test('leases and goodbyes do not wait behind a flood, and are no way around the limit', async (t) => {
  const { publish, heard } = aListener()
  for (let number = 0; number < 2 * messages.burst; number++) void publish('loud', 'status')
  const before = heard.length
  await publish('loud', 'lease', 'beat')
  await publish('loud', 'connection', 'goodbye')
  t.same(heard.slice(before), ['loud lease beat', 'loud connection goodbye'])
  for (let number = 0; number < 10_000; number++) void publish('loud', 'lease')
  t.equal(heard.length, before + signsOfLife.burst)
})

test('what waits when the connection ends is not heard after the end', async (t) => {
  const { publish, heard, clock, connected, disconnected } = aListener()
  for (let number = 0; number < messages.burst + 10; number++) void publish('loud', 'status')
  const before = heard.length
  disconnected('loud')
  connected('loud', {})
  await publish('loud', 'connection', 'online')
  await clock.advance(60_000)
  t.same(heard.slice(before), ['loud disconnected', 'loud connected', 'loud connection online'])
  await publish('loud', 'status', 'later')
  t.equal(heard.at(-1), 'loud status later')
})

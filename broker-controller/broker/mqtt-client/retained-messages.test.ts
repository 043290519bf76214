import { test } from 'tap'
import { limitLog } from '../../../daemon/log-limit.ts'
import { fakeClock } from '../../../daemon/testing/fake-clock.ts'
import { quietLog } from '../../../daemon/testing/quiet-log.ts'
import { longestPublished } from '../server-limits.ts'
import type { OutgoingMessage } from './mqtt-client.ts'
import { retainedMessages } from './retained-messages.ts'

const desired = { kind: 'desired', node: 'pi-1' } as const

function server() {
  const published: OutgoingMessage[] = []
  return {
    published,
    publish: async (message: OutgoingMessage) => void published.push(message),
    bodies: () => published.splice(0).map(({ topic, body }) => `${topic.split('/').at(-1)} ${body}`),
  }
}

test('each connection receives the latest of each topic, and a withdrawal once', async (t) => {
  const messages = retainedMessages(limitLog(quietLog(t), fakeClock()))
  const one = server()
  messages.keep(desired, 'first')
  messages.keep(desired, 'second')
  messages.keep({ kind: 'network' }, '')
  t.equal(messages.has(desired), true)
  t.equal(messages.has({ kind: 'network' }), false, 'it is withdrawn')
  await messages.publishAll(one)
  t.same(one.published[0], { topic: 'bramble/v1/nodes/pi-1/desired', body: 'second', qos: 1, retain: true })
  t.same(one.bodies(), ['desired second', 'network '])
  await messages.publishAll(one)
  t.same(one.bodies(), ['desired second'], 'the server has withdrawn it')
})

test('a withdrawal is repeated until a server has it', async (t) => {
  const messages = retainedMessages(limitLog(quietLog(t), fakeClock()))
  messages.keep(desired, '')
  const broken = { publish: () => Promise.reject(new Error('The connection was lost')) }
  await t.rejects(messages.publishAll(broken), /lost/)
  const one = server()
  await messages.publishAll(one)
  t.same(one.bodies(), ['desired '])
})

test('a message that the server would close the connection for is logged, not published', async (t) => {
  const log = quietLog(t, 'Message not published: it is larger than the MQTT server accepts')
  const messages = retainedMessages(limitLog(log, fakeClock()))
  const one = server()
  messages.keep(desired, 'x'.repeat(longestPublished + 1))
  messages.keep({ kind: 'controller' }, 'online')
  await messages.publishAll(one)
  t.same(one.bodies(), ['controller online'])
  t.match(log.messages('error'), [/larger than the MQTT server accepts/])
})

test('of a whole fleet a hundred messages are under way', async (t) => {
  const messages = retainedMessages(limitLog(quietLog(t), fakeClock()))
  for (let i = 0; i < 250; i++) messages.keep({ kind: 'desired', node: `pi-${i}` }, 'pods')
  const topics: string[] = []
  const acknowledge: (() => void)[] = []
  const done = messages.publishAll({
    publish: ({ topic }) => new Promise((resolve) => void (topics.push(topic) && acknowledge.push(resolve))),
  })
  t.equal(topics.length, 100)
  while (acknowledge.length > 0) {
    acknowledge.shift()?.()
    await new Promise((resolve) => setImmediate(resolve))
  }
  await done
  t.equal(new Set(topics).size, 250)
  t.equal(topics.length, 250)
})

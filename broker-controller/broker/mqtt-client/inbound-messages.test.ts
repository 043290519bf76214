import { type Test, test } from 'tap'
import { limitLog } from '../../../daemon/log-limit.ts'
import { metricsRegistry } from '../../../daemon/metrics-registry.ts'
import { fakeClock } from '../../../daemon/testing/fake-clock.ts'
import { quietLog } from '../../../daemon/testing/quiet-log.ts'
import type { NodeMessage } from '../broker.ts'
import { inboundMessages } from './inbound-messages.ts'
import { nodeShare } from './node-share.ts'

function world(t: Test) {
  const registry = metricsRegistry()
  const counter = <L extends string>(name: string, label: L) =>
    registry.counter({ name, help: '', labelNames: [label] })
  const taken: NodeMessage[] = []
  const releases: (() => void)[] = []
  const greeted: string[] = []
  const inbound = inboundMessages({
    share: nodeShare({ messages: 2, bytes: 1_000_000 }),
    metrics: { messages: counter('messages', 'kind'), refusals: counter('refusals', 'reason') },
    log: limitLog(quietLog(t), fakeClock()),
    ungreeted: {
      connected: (node) => void greeted.push(`connected ${node}`),
      renewed: (node) => void greeted.push(`renewed ${node}`),
      deleted: () => undefined,
      created: () => undefined,
      reset: () => void greeted.splice(0),
    },
  })
  inbound.listen({
    message(message) {
      taken.push(message)
      return message.topic.kind === 'status' ? new Promise((resolve) => releases.push(resolve)) : undefined
    },
    connected: () => undefined,
    disconnected: () => undefined,
  })
  return { ...inbound, taken, releases, greeted, bodies: () => taken.splice(0).map(({ body }) => body) }
}

const topic = (end: string) => `bramble/v1/nodes/pi-1/${end}`

test('of retained messages only that of the connection is passed on, marked', async (t) => {
  const { received, taken, foundRetained, greeted, reset } = world(t)
  for (const end of ['lease', 'status', 'pods/u1', 'connection']) received(topic(end), end, true)
  t.same(taken, [{ node: 'pi-1', topic: { kind: 'connection', node: 'pi-1' }, body: 'connection', isRetained: true }])
  t.equal(foundRetained().length, 4)
  t.same(greeted, ['connected pi-1'], 'a retained heartbeat shows no rights')
  reset()
  t.same(foundRetained(), [])
})

test('topics of the controller, of others and of odd names are dropped', async (t) => {
  const { received, taken } = world(t)
  for (const name of ['bramble/v1/controller', topic('desired'), topic('x'), 'other', 'bramble/v1/nodes/PI 1/lease']) {
    received(name, 'x', false)
  }
  received(topic('status'), '', false)
  t.same(taken, [])
  received(topic('pods/u1'), '', false)
  t.equal(taken.length, 1, 'an empty message of a pod is that it was removed')
})

test('a message that is too long, or one too many of its node, is dropped', async (t) => {
  const { received, bodies, releases } = world(t)
  received(topic('status'), 'x'.repeat(256 * 1024 + 1), false)
  t.same(bodies(), [])
  for (const body of ['1', '2', '3']) received(topic('status'), body, false)
  t.same(bodies(), ['1', '2'])
  for (const release of releases) release()
  await new Promise((resolve) => setImmediate(resolve))
  received(topic('status'), '4', false)
  t.same(bodies(), ['4'], 'the earlier ones were handled')
})

test('of the retained messages of one node a thousand are remembered, and no long one is decoded', async (t) => {
  const { received, taken, foundRetained } = world(t)
  for (let i = 0; i < 1_500; i++) received(topic(`pods/${i}`), 'x', true)
  received('bramble/v1/nodes/pi-2/status', 'x', true)
  t.equal(foundRetained().length, 1_001)
  let decoded = 0
  const long = Object.assign(Buffer.alloc(256 * 1024 + 1), { toString: () => String(++decoded) })
  received(topic('status'), long, false)
  received(topic('status'), Buffer.from('short'), false)
  t.same(
    taken.map(({ body }) => body),
    ['short'],
  )
  t.equal(decoded, 0)
})

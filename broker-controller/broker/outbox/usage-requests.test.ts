import { test } from 'tap'
import type { CallMessage, Topic } from '../../../api/topics.ts'
import { fakeClock } from '../../../daemon/testing/fake-clock.ts'
import { quietLog } from '../../../daemon/testing/quiet-log.ts'
import { usageBoard } from '../../usage/usage-board.ts'
import { usageRequests } from './usage-requests.ts'

test('ten thousand nodes are asked fifty at a time, to publish at long intervals', async (t) => {
  const clock = fakeClock()
  const usage = usageBoard({ clock })
  const calls: CallMessage[] = []
  const broker = { publish: async (_: unknown, body: string) => void calls.push(JSON.parse(body)) }
  const stopping = new AbortController()
  const done = usageRequests({ usage, broker, clock, log: quietLog(t) }).run(stopping.signal)
  await clock.advance(1_000)
  t.equal(calls.length, 0)
  const nodes = Array.from({ length: 10_000 }, (_, i) => `pi-${i}`)
  const looked = usage.look(nodes, stopping.signal)
  await clock.advance(1_000)
  t.ok(calls.length >= 500 && calls.length <= 600, String(calls.length))
  await clock.advance(20_000)
  await looked
  t.equal(calls.length, 10_000)
  t.same(calls[0], { call: 'stats', seconds: 150, everySeconds: 50 })
  stopping.abort()
  await done
})

test('while there is no connection to the MQTT server nodes are not asked, and are when it is back', async (t) => {
  const clock = fakeClock()
  const usage = usageBoard({ clock })
  const asked: string[] = []
  let isAway = true
  const broker = {
    async publish(topic: Topic) {
      if (isAway) throw new Error('There is no connection to the MQTT server')
      if (topic.kind === 'calls') asked.push(topic.node)
    },
  }
  const stopping = new AbortController()
  const done = usageRequests({ usage, broker, clock, log: quietLog(t) }).run(stopping.signal)
  const looked = usage.look(['pi-1'], stopping.signal)
  await clock.advance(6_000)
  await looked
  isAway = false
  await clock.advance(60_000)
  usage.pollMachines(['pi-1'])
  await clock.advance(1_000)
  t.same(asked, ['pi-1'])
  stopping.abort()
  await done
})

test('the dashboard asks for machines less often, and a query beside it keeps both', async (t) => {
  const clock = fakeClock()
  const usage = usageBoard({ clock })
  const asks = () => usage.takeAsks(100).map(({ node: _, ...ask }) => ask)
  usage.pollMachines(['pi-1'])
  t.same(asks(), [{ seconds: 90, everySeconds: 30, machine: true }])
  usage.pollMachines(['pi-1'])
  t.same(asks(), [], 'it was asked for')
  const leaving = new AbortController()
  const looked = usage.look(['pi-1'], leaving.signal)
  t.same(asks(), [{ seconds: 60, everySeconds: 10, machine: true }])
  leaving.abort()
  await looked
  await clock.advance(61_000)
  usage.pollMachines(['pi-1'])
  t.same(asks(), [{ seconds: 90, everySeconds: 30, machine: true }], 'the query has ended')
  usage.pollMachines(Array.from({ length: 501 }, (_, i) => `node-${i}`))
  t.equal(usage.takeAsks(1)[0]?.everySeconds, 60)
})

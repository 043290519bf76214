import { test } from 'tap'
import { aNode } from '../../../api/testing/builders.ts'
import { type NodeTopic, type Topic, topicName } from '../../../api/topics.ts'
import { fakeClock } from '../../../daemon/testing/fake-clock.ts'
import { quietLog } from '../../../daemon/testing/quiet-log.ts'
import { memoryStore } from '../../store/memory-store.ts'
import { retainedCleanup, staleTopics } from './retained-cleanup.ts'

const found: readonly NodeTopic[] = [
  { kind: 'connection', node: 'pi-1' },
  { kind: 'connection', node: 'gone' },
  { kind: 'pod', node: 'gone', uid: 'u1' },
  { kind: 'pod', node: 'pi-1', uid: 'u2' },
]
const nodes = new Set(['pi-1'])

test('messages of and for nodes that do not exist are withdrawn, those of others stay', async (t) => {
  const topics = staleTopics({ found, nodes, deleted: new Set(['old', 'pi-1']), hasNetwork: true }).map(topicName)
  t.same([...topics].sort(), [
    'bramble/v1/nodes/gone/connection',
    'bramble/v1/nodes/gone/desired',
    'bramble/v1/nodes/gone/pods/u1',
    'bramble/v1/nodes/gone/policies',
    'bramble/v1/nodes/gone/status',
    'bramble/v1/nodes/gone/volumes',
    'bramble/v1/nodes/old/connection',
    'bramble/v1/nodes/old/desired',
    'bramble/v1/nodes/old/policies',
    'bramble/v1/nodes/old/status',
    'bramble/v1/nodes/old/volumes',
  ])
})

test('with the network of the fleet turned off its messages are withdrawn', async (t) => {
  const topics = staleTopics({ found: [], nodes, deleted: new Set(), hasNetwork: false }).map(topicName)
  t.equal(topics.length, 18)
  t.ok(topics.includes('bramble/v1/network') && topics.includes('bramble/v1/services/15'))
  t.ok(topics.includes('bramble/v1/nodes/pi-1/policies'))
})

test('the loop withdraws after each connection, and when a Node is deleted', async (t) => {
  const clock = fakeClock()
  const store = memoryStore({ clock })
  const { resourceVersion: _, ...metadata } = aNode({ name: 'pi-1' }).metadata
  await store.create('nodes', { ...aNode({ name: 'pi-1' }), metadata })
  const withdrawn: Topic[] = []
  let connected = () => {}
  const broker = {
    withdrawForeign: async (topic: Topic) => void withdrawn.push(topic),
    foundRetained: () => found,
    onConnected: (listener: () => void) => {
      connected = listener
    },
  }
  const loop = retainedCleanup({ store, broker, hasNetwork: true, clock, log: quietLog(t) })
  const stop = new AbortController()
  const running = loop.run(stop.signal)
  t.teardown(async () => {
    stop.abort()
    await running
  })
  await clock.settle()
  connected()
  await clock.advance(10_000)
  t.same([...new Set(withdrawn.map((topic) => 'node' in topic && topic.node))], ['gone'])
  withdrawn.length = 0
  const node = await store.get('nodes', { namespace: '', name: 'pi-1' })
  await store.delete('nodes', { namespace: '', name: 'pi-1' }, { uid: node?.metadata.uid ?? '' })
  await clock.advance(10_000)
  t.ok(withdrawn.some((topic) => topicName(topic) === 'bramble/v1/nodes/pi-1/desired'))
})

test('what a network that is turned off left behind is withdrawn once for a connection', async (t) => {
  const clock = fakeClock()
  const store = memoryStore({ clock })
  for (const name of ['pi-1', 'pi-2']) {
    const { resourceVersion: _, ...metadata } = aNode({ name }).metadata
    await store.create('nodes', { ...aNode({ name }), metadata })
  }
  const withdrawn: string[] = []
  let connected = () => {}
  const broker = {
    withdrawForeign: async (topic: Topic) => void withdrawn.push(topicName(topic)),
    foundRetained: () => [],
    onConnected: (listener: () => void) => {
      connected = listener
    },
  }
  const stop = new AbortController()
  const running = retainedCleanup({ store, broker, hasNetwork: false, clock, log: quietLog(t) }).run(stop.signal)
  t.teardown(async () => {
    stop.abort()
    await running
  })
  await clock.settle()
  connected()
  await clock.advance(10_000)
  t.ok(withdrawn.includes('bramble/v1/network') && withdrawn.includes('bramble/v1/nodes/pi-2/policies'))
  withdrawn.length = 0
  await store.delete('nodes', { namespace: '', name: 'pi-1' })
  await clock.advance(10_000)
  t.ok(withdrawn.includes('bramble/v1/nodes/pi-1/desired'))
  t.notOk(withdrawn.includes('bramble/v1/network') || withdrawn.includes('bramble/v1/nodes/pi-2/policies'))
  withdrawn.length = 0
  connected()
  await clock.advance(10_000)
  t.ok(withdrawn.includes('bramble/v1/nodes/pi-2/policies'))
})

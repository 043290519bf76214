import { test } from 'tap'
import type { VolumesMessage } from '../../../api/storage/volume-messages.ts'
import { quietLog } from '../../../daemon/testing/quiet-log.ts'
import { nodeTopics } from './node-topics.ts'
import { receivedMessages } from './received-messages.ts'

test('orders for volumes are those of the controller that announced itself', async (t) => {
  const topics = nodeTopics('pi-1')
  const log = quietLog(t)
  const messages = receivedMessages({ topics, republish: () => undefined, announced: () => undefined, log })
  const received: VolumesMessage[] = []
  let off = 0
  const listener = {
    desired: () => undefined,
    volumes: (message: VolumesMessage) => void received.push(message),
    volumesOff: () => void off++,
  }
  const receive = (topic: string, body: object | string) =>
    messages.receive(listener, topic, typeof body === 'string' ? body : JSON.stringify(body), true)
  const announce = (epoch: string) =>
    receive(topics.controller, { state: 'online', epoch, time: '2026-01-01T00:00:00Z', store: 's', volumes: true })
  const order = (epoch: string, orders: readonly object[] = []) => ({ epoch, version: 1, store: 's', orders })

  receive(topics.volumes, order('e1'))
  t.same(received, [], 'no controller has announced itself')
  announce('e1')
  receive(topics.volumes, order('e1', [{ kind: 'later' }]))
  t.match(received, [{ epoch: 'e1', orders: [] }])
  announce('e1')
  t.equal(off, 1)
  announce('e2')
  t.equal(off, 2, 'earlier orders do not count')
  receive(topics.volumes, order('e1'))
  receive(topics.volumes, '')
  receive(topics.volumes, '{')
  t.equal(received.length, 1)
  messages.closed()
  receive(topics.volumes, order('e2'))
  t.equal(received.length, 1)
})

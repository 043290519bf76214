import { test } from 'tap'
import { type ConnectFacts, decideConnect } from './connect-decision.ts'

const will = {
  topic: 'bramble/v1/nodes/pi-a/connection',
  payload: Buffer.from('lost'),
  qos: 1,
  retain: true,
} as const

function decide(over: Partial<ConnectFacts>) {
  const decision = decideConnect({
    certificate: { user: 'system:node:pi-a', node: 'pi-a' },
    packet: { keepalive: 60, will },
    revokedBecause: undefined,
    keepAliveSeconds: 120,
    ...over,
  })
  return decision.isAccepted ? decision : [decision.code, decision.what, decision.refusal.code]
}

test('a node with a valid certificate, its own will and an allowed keep alive is accepted', async (t) => {
  t.same(decide({}), {
    isAccepted: true,
    node: 'pi-a',
    will: { topic: { kind: 'connection', node: 'pi-a' }, body: 'lost' },
  })
  t.match(decide({ packet: { keepalive: 120 } }), { isAccepted: true, will: undefined })
})

test('every other client is refused with the code of MQTT and a reason to count', async (t) => {
  t.same(decide({ revokedBecause: 'it was stolen' }), [5, 'connection', 'Revoked'])
  t.same(decide({ certificate: { user: 'admin', node: undefined } }), [5, 'connection', 'NotANode'])
  const foreign = { ...will, topic: 'bramble/v1/nodes/pi-b/connection' }
  t.same(decide({ packet: { keepalive: 60, will: foreign } }), [5, 'last will', 'ForeignTopic'])
  const { retain: _, ...unretained } = will
  t.same(decide({ packet: { keepalive: 60, will: unretained } }), [5, 'last will', 'WrongRetain'])
  t.same(decide({ packet: { keepalive: 60, will: { ...will, qos: 2 } } }), [5, 'last will', 'WrongQoS'])
  t.same(decide({ packet: {} }), [6, 'connection', 'KeepAlive'])
  for (const keepalive of [0, 121]) t.same(decide({ packet: { keepalive } }), [6, 'connection', 'KeepAlive'])
})

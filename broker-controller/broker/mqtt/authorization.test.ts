import { test } from 'tap'
import { topicName, topicRules } from '../../../api/topics.ts'
import { mayPublish, maySubscribe } from './authorization.ts'

const mine = 'bramble/v1/nodes/pi-1'
const its = 'bramble/v1/nodes/pi-2'

test('a node publishes the messages of nodes on its own topics', async (t) => {
  for (const [kind, { from, qos, retain }] of Object.entries(topicRules)) {
    if (['controller', 'network', 'services'].includes(kind)) continue
    const topic = kind === 'pod' ? `${mine}/pods/uid-1` : `${mine}/${kind}`
    t.equal(mayPublish('pi-1', { topic, qos, retain }).allowed, from === 'node', kind)
  }
  t.match(mayPublish('pi-1', { topic: `${mine}/pods/uid-1`, qos: 0, retain: true }), {
    allowed: true,
    topic: { kind: 'pod', node: 'pi-1', uid: 'uid-1' },
  })
})

test('a node cannot publish on topics of another node, of the controller, or outside the protocol', async (t) => {
  const code = (topic: string) => {
    const answer = mayPublish('pi-1', { topic, qos: 0, retain: topic.endsWith('status') })
    return answer.allowed ? 'allowed' : answer.code
  }
  t.equal(code(`${its}/status`), 'ForeignTopic')
  t.equal(code(`${its}/lease`), 'ForeignTopic')
  t.equal(code('bramble/v1/nodes/pi-1x/lease'), 'ForeignTopic')
  t.equal(code('bramble/v1/nodes/PI-1/lease'), 'ForeignTopic')
  t.equal(code(`${mine}/desired`), 'ControllerTopic')
  for (const end of ['controller', 'network', 'services/3']) t.equal(code(`bramble/v1/${end}`), 'ControllerTopic')
  for (const unknown of [
    '',
    '/',
    `${mine}`,
    `${mine}/`,
    `${mine}/lease/`,
    `${mine}//lease`,
    `${mine}/other`,
    '$SYS/x',
  ]) {
    t.equal(code(unknown), 'UnknownTopic', unknown)
  }
  t.equal(code(`${mine}/toString`), 'UnknownTopic')
  t.equal(code(`/${mine}/lease`), 'UnknownTopic')
})

test('a message needs the QoS and the retention of its kind', async (t) => {
  t.match(mayPublish('pi-1', { topic: `${mine}/stats`, qos: 1, retain: false }), { code: 'WrongQoS' })
  t.match(mayPublish('pi-1', { topic: `${mine}/lease`, qos: 0, retain: true }), { code: 'WrongRetain' })
  t.match(mayPublish('pi-1', { topic: `${mine}/status`, qos: 1, retain: false }), { code: 'WrongRetain' })
  t.match(mayPublish('pi-1', { topic: `${mine}/status`, qos: 2, retain: true }), { code: 'WrongQoS' })
  t.match(mayPublish('pi-1', { topic: `${mine}/status`, qos: 0, retain: true }), { allowed: true })
})

test('a node listens to the controller, and to nothing that is meant for another', async (t) => {
  const allowed = [topicName({ kind: 'desired', node: 'pi-1' }), `${mine}/calls`, `${mine}/policies`]
  allowed.push('bramble/v1/controller', 'bramble/v1/network', 'bramble/v1/services/0', 'bramble/v1/services/15')
  for (const filter of allowed) t.ok(maySubscribe('pi-1', filter).allowed, filter)
  const refused = [
    '#',
    '+',
    '$SYS/#',
    `${mine}/#`,
    `${mine}/+`,
    'bramble/v1/+/pi-1/desired',
    'bramble/v1/nodes/+/desired',
  ]
  t.match(maySubscribe('pi-1', `${mine}/#`), { code: 'UnknownTopic', reason: /has wildcards/ })
  for (const filter of [
    ...refused,
    `${its}/desired`,
    `${its}/calls`,
    `${its}/policies`,
    `${mine}/status`,
    `${mine}/pods/u`,
    '',
  ]) {
    t.notOk(maySubscribe('pi-1', filter).allowed, filter)
  }
})

import { test } from 'tap'
import { decode } from './decode.ts'
import { isBelowNode, namedTopic, parseTopic, shortLeaseTopic, type Topic, topicName, topicRules } from './topics.ts'

const time = '2026-01-01T00:00:00Z'
const pod = {
  apiVersion: 'v1',
  kind: 'Pod',
  metadata: { name: 'web', uid: 'u1', later: true },
  spec: { containers: [{ name: 'main', image: 'web:1', later: { x: 1 } }], restartPolicy: 'Sometimes', later: 1 },
  status: { phase: 'Failed', reason: 'SomethingLater', later: 1 },
}
/** What another version, earlier or later, may send: with fields and values that this one does not define. */
const otherVersion: { readonly [Kind in Topic['kind']]: object } = {
  connection: { state: 'goodbye', bootID: 'b', agentVersion: '99.0.0', reason: 'some later reason' },
  lease: { seq: 1, digest: 'd' },
  status: { conditions: [{ type: 'SomethingLater', status: 'True', later: 1 }], phase: 'x' },
  pod: { namespace: 'n', name: 'p', uid: 'u', observedResourceVersion: '1', status: pod.status },
  events: {
    ...{ apiVersion: 'v1', kind: 'Event', metadata: { name: 'e', namespace: 'n' }, type: 'SomethingLater' },
    ...{ reason: 'SomethingLater', message: 'm', involvedObject: { kind: 'SomethingLater', later: 1 } },
  },
  stats: { time, summary: { node: { nodeName: 'n', startTime: time, later: 1 }, pods: [] } },
  contents: { names: ['a'] },
  desired: { epoch: 'e', version: 1, pods: [pod], later: [1] },
  calls: { call: 'report', reason: 'some later reason' },
  controller: { state: 'online', epoch: 'e', time },
  network: {
    ...{
      epoch: 'e',
      version: 1,
      clusterCIDR: '10.244.0.0/16',
      serviceCIDR: '10.96.0.0/12',
      clusterDomain: 'cluster.local',
    },
    nodes: [{ name: 'n', podCIDR: '10.244.1.0/24', address: '192.168.1.5', segment: '192.168.1.0/24', later: 1 }],
  },
  services: { epoch: 'e', version: 1, services: [] },
  policies: { epoch: 'e', version: 1, namespaces: ['n'], sets: [], policies: [] },
  volumes: {
    ...{ epoch: 'e', version: 1, store: 's' },
    orders: [{ kind: 'something later', volume: 'v', uid: 'u', pool: 'p', folder: 'f', later: 1 }],
  },
  storage: { done: ['u'], refused: [{ uid: 'u', reason: 'r', later: 1 }] },
}

test('every message is understood whatever a later version has added to it', async (t) => {
  for (const [kind, body] of Object.entries(otherVersion)) {
    const { schema } = topicRules[kind as Topic['kind']]
    const decoded = decode(schema, { ...body, later: { deep: [1, 'two'] } })
    t.equal(decoded.ok, true, `${kind} ${JSON.stringify(decoded)}`)
    t.ok(decoded.unknownFields.includes('later'))
    if (decoded.ok) t.notMatch(JSON.stringify(decoded.value), /"later"/, 'and none of it is passed on')
  }
})

test('an invalid field rejects its message, and only that message', async (t) => {
  t.match(decode(topicRules.calls.schema, { call: 'dance' }), { ok: false, problems: [{ field: 'call' }] })
  t.match(decode(topicRules.connection.schema, { state: 'asleep', bootID: 'b', agentVersion: 'v' }), { ok: false })
  t.match(decode(topicRules.controller.schema, { state: 'asleep', epoch: 'e', time }), { ok: false })
})

function topicOf(kind: Topic['kind']): Topic {
  switch (kind) {
    case 'controller':
    case 'network':
      return { kind }
    case 'services':
      return { kind, shard: 15 }
    case 'pod':
      return { kind, node: 'pi-1', uid: 'u' }
    default:
      return { kind, node: 'pi-1' }
  }
}

test('a topic of another version is not ours', async (t) => {
  for (const kind of Object.keys(topicRules) as Topic['kind'][]) {
    t.same(parseTopic(topicName(topicOf(kind))), topicOf(kind))
  }
  for (const name of ['bramble/v1/nodes/pi-1/later', 'bramble/v2/controller', 'bramble/v1/nodes/pi-1/pods/u/later']) {
    t.equal(parseTopic(name), undefined)
  }
})

test('a topic of a pod ends with a UID, and not with a text of any length', async (t) => {
  t.match(parseTopic(`bramble/v1/nodes/pi-1/pods/${'u'.repeat(128)}`), { kind: 'pod' })
  t.equal(parseTopic(`bramble/v1/nodes/pi-1/pods/${'u'.repeat(129)}`), undefined)
})

test('the broker keeps the last state of each topic that is a state, and no single event, call or heartbeat', async (t) => {
  const retained = Object.entries(topicRules).filter(([, { retain }]) => retain)
  t.same(retained.map(([kind]) => kind).sort(), [
    'connection',
    'controller',
    'desired',
    'network',
    'pod',
    'policies',
    'services',
    'status',
    'volumes',
  ])
})

test('a name that is almost one of ours is not', async (t) => {
  const names = [
    'bramble/v1',
    'bramble/v1/',
    'bramble/v1/controller/',
    'bramble/v1/controller/pi-1',
    'bramble/v1/controllers',
    'bramble/v1/network/pi-1',
    'bramble/v1/services',
    'bramble/v1/services/16',
    'bramble/v1/services/01',
    'bramble/v1/services/-1',
    'bramble/v1/services/1/2',
    'bramble/v1/other/pi-1/lease',
    'bramble/v1/other',
    'bramble/v1/nodes',
    'bramble/v1/nodes/pi-1',
    'bramble/v1/nodes/pi-1/',
    'bramble/v1/nodes//lease',
    'bramble/v1/nodes/pi-1/lease/u',
    'bramble/v1/nodes/pi-1/pods',
    'bramble/v1/nodes/pi-1/pods/',
    'x/bramble/v1/controller',
  ]
  for (const name of names) t.equal(parseTopic(name), undefined, name)
})

test('only the short lease topic has another name, that of the node’s own lease', async (t) => {
  t.equal(namedTopic(shortLeaseTopic, 'pi-1'), 'bramble/v1/nodes/pi-1/lease')
  t.equal(namedTopic('bramble/v1/nodes/pi-2/status', 'pi-1'), 'bramble/v1/nodes/pi-2/status')
})

test('the topics of a node are below its name, not below a name that begins alike', async (t) => {
  t.equal(isBelowNode('bramble/v1/nodes/pi-1/pods/u', 'pi-1'), true)
  for (const other of ['bramble/v1/nodes/pi-10/lease', 'bramble/v1/nodes/pi-1', 'x/bramble/v1/nodes/pi-1/']) {
    t.equal(isBelowNode(other, 'pi-1'), false, other)
  }
})

test('a message that lacks what its receiver needs is rejected', async (t) => {
  const needed: { readonly [Kind in Topic['kind']]?: readonly string[] } = {
    connection: ['state', 'bootID', 'agentVersion'],
    lease: ['seq', 'digest'],
    pod: ['namespace', 'name', 'uid', 'observedResourceVersion', 'status'],
    stats: ['time', 'summary'],
    desired: ['epoch', 'version', 'pods'],
    calls: ['call'],
    controller: ['state', 'epoch', 'time'],
  }
  for (const [kind, names] of Object.entries(needed)) {
    const { schema } = topicRules[kind as Topic['kind']]
    for (const name of names) {
      const { [name]: _, ...rest } = { ...otherVersion[kind as Topic['kind']] } as { readonly [name: string]: unknown }
      t.match(decode(schema, rest), { ok: false, problems: [{ field: name }] }, `${kind} without ${name}`)
    }
  }
})

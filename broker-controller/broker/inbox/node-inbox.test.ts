import { type Test, test } from 'tap'
import { digestText, emptyDigest, foldDigest } from '../../../api/digest.ts'
import type { AddressRules } from '../../../api/node/reported-addresses.ts'
import type { Pod } from '../../../api/pod.ts'
import { aNode, aPod } from '../../../api/testing/builders.ts'
import { type NodeTopic, topicName } from '../../../api/topics.ts'
import { metricsRegistry } from '../../../daemon/metrics-registry.ts'
import { fakeClock } from '../../../daemon/testing/fake-clock.ts'
import { quietLog } from '../../../daemon/testing/quiet-log.ts'
import { sessionBoard } from '../../sessions/session-board.ts'
import { eventRecorder } from '../../store/event-recorder.ts'
import { memoryStore } from '../../store/memory-store.ts'
import type { Store, StoredObject } from '../../store/store.ts'
import { holdLate, lateFinalizer } from '../../testing/late-finalizer.ts'
import { storageBoard } from '../../usage/storage-board.ts'
import { unstoredReports } from '../../usage/unstored-reports.ts'
import { usageBoard } from '../../usage/usage-board.ts'
import { nodeInbox } from './node-inbox.ts'

const nowMs = Date.parse('2026-01-01T00:00:00Z')
const key = { namespace: 'default', name: 'web' }

test('a status is stored in the Node, and the status of a pod in the pod', async (t) => {
  const { store, receive } = await inbox(t)
  await receive(
    { kind: 'status', node: 'pi-1' },
    { conditions: [{ type: 'Ready', status: 'True', reason: 'KubeletReady' }] },
  )
  const node = await store.get('nodes', { namespace: '', name: 'pi-1' })
  t.match(node?.status?.conditions?.at(-1), {
    type: 'Ready',
    status: 'True',
    lastHeartbeatTime: '2026-01-01T00:00:00Z',
  })
  await receive(aPodTopic, aPodMessage)
  t.equal((await store.get('pods', key))?.status?.phase, 'Running')
})

test('a message that cannot be decoded is dropped, counted, and logged once', async (t) => {
  const { log, receive, dropped } = await inbox(t)
  for (let i = 0; i < 3; i++)
    await receive({ kind: 'status', node: 'pi-1' }, { conditions: [{ type: 'Ready', status: 'Maybe' }] })
  await receive({ kind: 'connection', node: 'pi-1' }, 'no json {')
  t.equal(await dropped('status', 'NotUnderstood'), 3)
  t.equal(await dropped('connection', 'NotUnderstood'), 1)
  t.same(log.messages('warn'), ['Message of a node dropped', 'Message of a node dropped'])
  t.match(log.lines[0]?.facts, { node: 'pi-1', problems: [/status.conditions\[0\].status|conditions\[0\].status/] })
})

test('a message that is nested deeper than the stack allows is dropped', async (t) => {
  const { receive, dropped } = await inbox(t)
  const nested = `${'['.repeat(60_000)}${']'.repeat(60_000)}`
  for (const kind of ['lease', 'status', 'stats', 'connection'] as const) {
    for (const body of [nested, `{"digest":${nested},"conditions":${nested},"state":${nested},"summary":${nested}}`]) {
      await receive({ kind, node: 'pi-1' }, body)
    }
    t.equal(await dropped(kind, 'NotUnderstood'), 2, kind)
  }
})

test('usage is recorded under the authenticated node name, and an invalid message is dropped', async (t) => {
  const { usage, receive, dropped } = await inbox(t)
  const summary = { node: { nodeName: 'somebody-else', cpu: { time: '', usageNanoCores: 5 } }, pods: [] }
  await receive({ kind: 'stats', node: 'pi-1' }, { time: '2026-01-01T00:00:00Z', windowSeconds: 1, summary })
  t.match(usage.newest('pi-1'), { node: { cpu: 5 }, windowSeconds: 1 })
  t.equal(usage.newest('somebody-else'), undefined)
  await receive({ kind: 'stats', node: 'pi-1' }, { summary: { node: 7 } })
  t.equal(await dropped('stats', 'NotUnderstood'), 1)
})

test('sessions can be requested of a node while it is online', async (t) => {
  const { sessions, receive, listener } = await inbox(t)
  const connection = { kind: 'connection', node: 'pi-1' } as const
  const open = () => {
    const client = new AbortController()
    const opening = sessions
      .open('pi-1', { user: 'jane', signal: client.signal })
      .catch((error: unknown) => String(error))
    client.abort()
    return opening
  }
  const away = /has no connection/
  t.match(await open(), away)
  for (const end of [() => listener.disconnected('pi-1'), () => receive(connection, { ...online, state: 'lost' })]) {
    await receive(connection, online)
    t.match(await open(), /client is gone/)
    await end()
    t.match(await open(), away)
  }
})

const online = { state: 'online', bootID: 'boot', agentVersion: '1' }

test('a lease that confirms the status stamps its conditions as a report would', async (t) => {
  const { store, receive, clock, published } = await inbox(t)
  const lease = { kind: 'lease', node: 'pi-1' } as const
  const ofNode = async () => (await store.get('nodes', { namespace: '', name: 'pi-1' }))?.status
  const theirs = { type: 'Theirs', status: 'True', lastHeartbeatTime: '2025-12-31T00:00:00Z' } as const
  const node = await store.get('nodes', { namespace: '', name: 'pi-1' })
  if (node === undefined) return t.fail('no node')
  await store.updateStatus('nodes', { ...node, status: { conditions: [theirs] } })
  const conditions = [
    { type: 'Ready', status: 'True' },
    { type: 'DiskPressure', status: 'False' },
  ]
  await receive({ kind: 'status', node: 'pi-1' }, { conditions, capacity: { cpu: '4' } })
  const digest = foldDigest(
    emptyDigest,
    digestText(topicName({ kind: 'status', node: 'pi-1' }), JSON.stringify({ conditions, capacity: { cpu: '4' } })),
  )
  await receive(lease, { seq: 1, digest })
  await clock.advance(300_000)
  await receive(lease, '')
  t.match((await ofNode())?.conditions?.at(-1), { lastHeartbeatTime: '2026-01-01T00:00:00Z' }, 'only alive')
  await receive(lease, 's')
  t.match(await ofNode(), {
    capacity: { cpu: '4' },
    conditions: [
      theirs,
      {
        type: 'Ready',
        status: 'True',
        lastHeartbeatTime: '2026-01-01T00:05:00Z',
        lastTransitionTime: '2026-01-01T00:00:00Z',
      },
      { type: 'DiskPressure', status: 'False', lastHeartbeatTime: '2026-01-01T00:05:00Z' },
    ],
  })
  t.same(published, [])
})

test('a lease cannot confirm a status that the controller has changed: the node is asked for it', async (t) => {
  const { store, receive, published } = await inbox(t)
  const node = await store.get('nodes', { namespace: '', name: 'pi-1' })
  if (node === undefined) return t.fail('no node')
  await store.updateStatus('nodes', { ...node, status: { conditions: [{ type: 'Ready', status: 'Unknown' }] } })
  await receive({ kind: 'lease', node: 'pi-1' }, 's')
  t.match(published, [['bramble/v1/nodes/pi-1/calls', { call: 'report' }]])
  t.match((await store.get('nodes', { namespace: '', name: 'pi-1' }))?.status?.conditions, [{ status: 'Unknown' }])
})

test('a node whose heartbeats are back while Ready is Unknown is asked for its status, unless it is leaving', async (t) => {
  const { store, receive, published, listener, clock } = await inbox(t)
  const stopping = new AbortController()
  const running = listener.run(stopping.signal)
  t.teardown(async () => {
    stopping.abort()
    await running
  })
  const lease = { kind: 'lease', node: 'pi-1' } as const
  const ready = async (status: 'True' | 'Unknown') => {
    const node = await store.get('nodes', { namespace: '', name: 'pi-1' })
    if (node !== undefined) {
      await store.updateStatus('nodes', { ...node, status: { conditions: [{ type: 'Ready', status }] } })
    }
    await clock.settle()
  }
  await ready('Unknown')
  await receive(lease, '')
  t.same(published, [], 'a status may be on its way')
  await receive(lease, '')
  t.match(published, [['bramble/v1/nodes/pi-1/calls', { call: 'report', reason: 'Ready is Unknown' }]])
  await ready('True')
  for (let i = 0; i < 3; i++) await receive(lease, '')
  t.equal(published.length, 1)
  await ready('Unknown')
  await receive({ kind: 'connection', node: 'pi-1' }, { state: 'goodbye', bootID: 'b', agentVersion: 'v' })
  for (let i = 0; i < 3; i++) await receive(lease, '')
  t.equal(published.length, 1)
})

test('a report about a pod of another node, or an earlier pod of the name, changes nothing', async (t) => {
  const { store, receive, dropped } = await inbox(t)
  await receive({ ...aPodTopic, node: 'pi-2' }, aPodMessage)
  await receive({ ...aPodTopic, uid: 'u0' }, { ...aPodMessage, uid: 'u0' })
  t.equal((await store.get('pods', key))?.status?.phase, 'Pending')
  t.equal((await dropped('pod', 'AnotherNode')) + (await dropped('pod', 'AnotherPod')), 2)
})

test('a pod that is being deleted is removed when its node has removed it, and not before', async (t) => {
  const { store, receive } = await inbox(t)
  await receive(aPodTopic, '')
  const pod = await store.get('pods', key)
  t.ok(pod, 'it is not being deleted')
  if (pod === undefined) return
  await store.update('pods', { ...pod, metadata: { ...pod.metadata, deletionTimestamp: '2026-01-01T00:00:30Z' } })
  await receive({ ...aPodTopic, node: 'pi-2' }, '')
  t.ok(await store.get('pods', key), 'a message of another node changes nothing')
  await receive(aPodTopic, '')
  t.equal(await store.get('pods', key), undefined)
})

test('a node can change nothing of itself but its status', async (t) => {
  const { store, receive } = await inbox(t)
  const before = await store.get('nodes', { namespace: '', name: 'pi-1' })
  await receive(
    { kind: 'status', node: 'pi-1' },
    {
      conditions: [{ type: 'Ready', status: 'True' }],
      metadata: { name: 'pi-2', labels: { 'node-role.kubernetes.io/control-plane': '' } },
      spec: { taints: [], unschedulable: false },
    },
  )
  const { resourceVersion: _, ...metadata } =
    (await store.get('nodes', { namespace: '', name: 'pi-1' }))?.metadata ?? {}
  const { resourceVersion: __, ...earlier } = before?.metadata ?? {}
  t.same(metadata, earlier)
  t.equal((await store.get('nodes', { namespace: '', name: 'pi-1' }))?.spec?.taints, before?.spec?.taints)
  await receive(aPodTopic, { ...aPodMessage, metadata: { labels: { app: 'other' } }, spec: { nodeName: 'pi-2' } })
  t.match(await store.get('pods', key), { spec: { nodeName: 'pi-1' }, metadata: { labels: undefined } })
})

test('only a finalizer keeps a pod that its node has removed', async (t) => {
  const { store, receive } = await inbox(t)
  const pod = await store.get('pods', key)
  if (pod === undefined) return t.fail('no pod')
  const leaving = { deletionTimestamp: '2026-01-01T00:00:30Z', deletionGracePeriodSeconds: 30 }
  await store.update('pods', { ...pod, metadata: { ...pod.metadata, ...leaving, finalizers: ['example.com/hold'] } })
  await receive(aPodTopic, '')
  const held = await store.get('pods', key)
  t.match(held?.metadata, { deletionGracePeriodSeconds: 0, finalizers: ['example.com/hold'] })
  await receive(aPodTopic, '')
  t.equal(
    (await store.get('pods', key))?.metadata.resourceVersion,
    held?.metadata.resourceVersion,
    'a second message changes nothing',
  )
})

test('a finalizer that is added while a pod that its node has removed goes holds the pod', async (t) => {
  const { store, clock, receive } = await inbox(t)
  const pod = await store.get('pods', key)
  if (pod === undefined) return t.fail('no pod')
  await store.update('pods', { ...pod, metadata: { ...pod.metadata, deletionTimestamp: '2026-01-01T00:00:30Z' } })
  holdLate(store, 'pods')
  const received = receive(aPodTopic, '')
  await clock.advance(1_000)
  await received
  t.match((await store.get('pods', key))?.metadata.finalizers, [lateFinalizer])
})

test('the digest of a node is forgotten when its connection ends', async (t) => {
  const { listener, receive, published } = await inbox(t)
  const lease = { kind: 'lease', node: 'pi-1' } as const
  const other = foldDigest(emptyDigest, digestText('other', '{}'))
  listener.connected('pi-1', {})
  await receive(lease, { seq: 1, digest: other })
  listener.disconnected('pi-1')
  await receive(lease, '')
  t.same(published, [], 'there is no digest to compare with')
})

test('with a broker that does not observe connections, a node that comes online begins a new digest', async (t) => {
  const { receive, published } = await inbox(t)
  const lease = { kind: 'lease', node: 'pi-1' } as const
  const other = foldDigest(emptyDigest, digestText('other', '{}'))
  await receive(lease, { seq: 1, digest: other })
  await receive({ kind: 'connection', node: 'pi-1' }, { state: 'online', bootID: 'boot-1', agentVersion: '1' })
  await receive(lease, '')
  t.same(published, [])
})

test('with a broker that does not observe connections, two machines of one node are found by their boot IDs', async (t) => {
  const { store, receive, log } = await inbox(t, { expected: ['Two machines use the certificate of one node'] })
  for (const bootID of ['one', 'one', 'other', 'one']) {
    await receive({ kind: 'connection', node: 'pi-1' }, { state: 'online', bootID, agentVersion: '1' })
  }
  t.same(log.messages('warn'), ['Two machines use the certificate of one node'])
  t.match((await store.list('events')).items, [{ reason: 'DuplicateIdentity', involvedObject: { name: 'pi-1' } }])
})

test('heartbeats and the end of the connection are stored in the order in which they came', async (t) => {
  const { store, listener, receive } = await inbox(t)
  listener.connected('pi-1', { address: '10.0.0.5' })
  const beats = [1, 2, 3].map((seq) => receive({ kind: 'lease', node: 'pi-1' }, { seq, digest: emptyDigest }))
  listener.disconnected('pi-1')
  await Promise.all(beats)
  await receive({ kind: 'stats', node: 'pi-1' }, {})
  const lease = await store.get('leases', { namespace: 'kube-node-lease', name: 'pi-1' })
  t.match(lease?.metadata.annotations, { 'bramble.dev/connection': 'lost', 'bramble.dev/address': '10.0.0.5' })
  t.equal(lease?.spec?.renewTime, '2026-01-01T00:00:00.000000Z')
})

test('after a restart of the controller a node that had reported has a lease, not renewed before its first message', async (t) => {
  const { store, listener, clock, receive } = await inbox(t)
  const conditions = [{ type: 'Ready', status: 'True', reason: 'KubeletReady' }] as const
  const creationTimestamp = '2025-06-01T00:00:00Z'
  const registered = unstamped(aNode({ name: 'pi-2', status: { conditions } }))
  await store.create('nodes', { ...registered, metadata: { ...registered.metadata, creationTimestamp } })
  await store.create('nodes', { apiVersion: 'v1', kind: 'Node', metadata: { name: 'by-hand' } })
  const stop = new AbortController()
  const ended = listener.run(stop.signal)
  await clock.settle()
  const lease = (name: string) => store.get('leases', { namespace: 'kube-node-lease', name })
  t.match(await lease('pi-2'), {
    metadata: { creationTimestamp, ownerReferences: [{ kind: 'Node', name: 'pi-2' }] },
    spec: { holderIdentity: 'pi-2', renewTime: undefined },
  })
  t.equal(await lease('by-hand'), undefined, 'a node that never reported has none')
  listener.connected('pi-2', { address: '10.0.0.2' })
  await receive({ kind: 'lease', node: 'pi-2' }, { seq: 1, digest: emptyDigest })
  t.match(await lease('pi-2'), {
    metadata: {
      creationTimestamp,
      annotations: { 'bramble.dev/connection': 'online', 'bramble.dev/address': '10.0.0.2' },
    },
    spec: { renewTime: '2026-01-01T00:00:00.000000Z', leaseDurationSeconds: 40 },
  })
  stop.abort()
  await ended
})

test('a lease belongs to its Node: there is none before it, and none after it', async (t) => {
  const { store, listener, clock, receive } = await inbox(t)
  const stop = new AbortController()
  const ended = listener.run(stop.signal)
  const lease = () => store.get('leases', { namespace: 'kube-node-lease', name: 'pi-9' })
  const beat = () => receive({ kind: 'lease', node: 'pi-9' }, { seq: 1, digest: emptyDigest })
  listener.connected('pi-9', { address: '10.0.0.9' })
  await receive({ kind: 'connection', node: 'pi-9' }, { state: 'online', bootID: 'boot-1', agentVersion: '1' })
  await beat()
  t.equal(await lease(), undefined)
  const { metadata } = await store.create('nodes', unstamped(aNode({ name: 'pi-9' })))
  await clock.settle()
  t.match(await lease(), {
    metadata: {
      annotations: { 'bramble.dev/boot-id': 'boot-1', 'bramble.dev/address': '10.0.0.9' },
      ownerReferences: [{ apiVersion: 'v1', kind: 'Node', name: 'pi-9', uid: metadata.uid }],
    },
  })
  await store.delete('nodes', { namespace: '', name: 'pi-9' })
  await clock.settle()
  await beat()
  t.equal(await lease(), undefined)
  stop.abort()
  await ended
})

test('a node whose digest differs twice in a row is asked for its whole state', async (t) => {
  const { receive, published } = await inbox(t)
  const status = { conditions: [{ type: 'Ready', status: 'True' }] }
  await receive({ kind: 'status', node: 'pi-1' }, status)
  const name = topicName({ kind: 'status', node: 'pi-1' })
  const right = foldDigest(emptyDigest, digestText(name, JSON.stringify(status)))
  const beat = (digest: string) => receive({ kind: 'lease', node: 'pi-1' }, { seq: 1, digest })
  await beat(right)
  await beat(emptyDigest)
  await beat(right)
  await beat(emptyDigest)
  t.same(published, [], 'a lease may arrive before the status')
  await beat(emptyDigest)
  t.match(published, [['bramble/v1/nodes/pi-1/calls', { call: 'report' }]])
  await receive({ kind: 'status', node: 'pi-1' }, status)
  await beat(right)
  await beat(right)
  t.equal(published.length, 1, 'it published everything')
})

test('a node is asked for its whole state when the store no longer has what it published of a pod', async (t) => {
  const { receive, published, listener } = await inbox(t)
  await receive(aPodTopic, aPodMessage)
  const digest = foldDigest(emptyDigest, digestText(topicName(aPodTopic), JSON.stringify(aPodMessage)))
  const lease = { kind: 'lease', node: 'pi-1' } as const
  await receive(lease, { seq: 1, digest })
  listener.podOverwritten('pi-1', aPodTopic.uid)
  for (let i = 0; i < 2; i++) await receive(lease, '')
  t.match(published, [['bramble/v1/nodes/pi-1/calls', { call: 'report', reason: 'digest differs' }]])
  await receive(aPodTopic, aPodMessage)
  for (let i = 0; i < 3; i++) await receive(lease, '')
  t.equal(published.length, 1, 'it published everything')
})

test('a node that reports before it is registered is asked for its state when it is registered', async (t) => {
  const { store, listener, clock, receive, published, dropped } = await inbox(t)
  const stop = new AbortController()
  const ended = listener.run(stop.signal)
  await receive({ kind: 'status', node: 'pi-9' }, {})
  t.equal(await dropped('status', 'NoSuchNode'), 1)
  await clock.settle()
  t.same(published, [])
  await store.create('nodes', unstamped(aNode({ name: 'pi-9' })))
  await clock.settle()
  t.match(published, [['bramble/v1/nodes/pi-9/calls', { call: 'report' }]])
  stop.abort()
  await ended
})

test('events are stored with the controller’s time, counted, and only accepted about the sender and its pods', async (t) => {
  const { store, receive, dropped } = await inbox(t)
  const event = {
    apiVersion: 'v1',
    kind: 'Event',
    metadata: { name: 'x', namespace: 'default' },
    involvedObject: { kind: 'Pod', namespace: 'default', name: 'web', uid: 'u1' },
    reason: 'Pulled',
    message: 'Image is there',
    type: 'Normal',
    source: { component: 'kubelet', host: 'pi-1' },
    firstTimestamp: '1970-01-01T00:00:00Z',
  }
  await receive({ kind: 'events', node: 'pi-1' }, event)
  await receive({ kind: 'events', node: 'pi-1' }, event)
  await receive({ kind: 'events', node: 'pi-2' }, event)
  const { items } = await store.list('events')
  t.match(items, [{ count: 2, firstTimestamp: '2026-01-01T00:00:00Z', source: { component: 'kubelet', host: 'pi-1' } }])
  t.equal(items.length, 1)
  t.equal(await dropped('events', 'NotItsObject'), 1)
})

test('a node that reports events without end gets in a bounded number; others are not affected', async (t) => {
  const { store, receive, dropped } = await inbox(t)
  const event = (node: string, number: number) => ({
    apiVersion: 'v1',
    kind: 'Event',
    metadata: { name: 'x', namespace: 'default' },
    involvedObject: { kind: 'Node', name: node, uid: node },
    reason: 'Made',
    message: `${number}`,
    source: { component: `one-${number}` },
  })
  for (let number = 0; number < 1500; number++) await receive({ kind: 'events', node: 'pi-1' }, event('pi-1', number))
  t.equal((await store.list('events')).items.length, 1000)
  t.equal(await dropped('events', 'TooManyEvents'), 500)
  await receive({ kind: 'events', node: 'pi-2' }, event('pi-2', 0))
  t.equal((await store.list('events')).items.length, 1001)
})

test('the limit of Events of an object is that of the agent, which forgets it when its machine boots', async (t) => {
  const { store, receive } = await inbox(t)
  const involvedObject = { kind: 'Node', name: 'pi-1', uid: 'pi-1' }
  const event = { apiVersion: 'v1', kind: 'Event', metadata: { name: 'x' }, involvedObject }
  for (let n = 0; n < 40; n++) await receive({ kind: 'events', node: 'pi-1' }, { ...event, reason: `Made${n}` })
  t.equal((await store.list('events')).items.length, 40)
})

test('an event that the agent did not publish each time is counted as often as it happened', async (t) => {
  const { store, receive } = await inbox(t)
  const involvedObject = { kind: 'Node', name: 'pi-1', uid: 'pi-1' }
  const event = { apiVersion: 'v1', kind: 'Event', metadata: { name: 'x' }, involvedObject, reason: 'Made' }
  for (const count of [undefined, 4, -5, 2 ** 31 - 1])
    await receive({ kind: 'events', node: 'pi-1' }, { ...event, count })
  const { items } = await store.list('events')
  t.same(
    items.map(({ count }) => count),
    [1 + 4 + 1 + 3600],
    'as often as an agent can have counted',
  )
})

test('a report that is too large is cut, counted and stored', async (t) => {
  const { store, receive, log } = await inbox(t)
  const made = Array.from({ length: 1000 }, (_, number) => ({ type: `Made${number}`, status: 'True' }))
  await receive({ kind: 'status', node: 'pi-1' }, { conditions: [...made, { type: 'Ready', status: 'True' }] })
  const node = await store.get('nodes', { namespace: '', name: 'pi-1' })
  t.equal(node?.status?.conditions?.length, 64)
  t.equal(node?.status?.conditions?.[0]?.type, 'Ready')
  t.same(log.messages('warn'), ['Report of a node shortened'])
})

const ofOthers = ['192.168.1.9', '192.168.1.6', '10.244.2.7', '169.254.169.254', '127.0.0.1']
const routed = { isRouted: true, podRanges: ['10.244.0.0/16'], serviceRanges: ['10.96.0.0/12'] }
const internalIP = (address: string) => ({ addresses: [{ type: 'InternalIP' as const, address }] })

test('a node reports no address of others for its pods: it is left out, counted, logged and in an Event', async (t) => {
  const { store, log, receive, wrongAddresses, setNode } = await inbox(t, { rules: routed })
  await setNode('pi-1', { podCIDR: '10.244.1.0/24', address: '192.168.1.5' })
  for (const ip of ofOthers) {
    const status = { phase: 'Running', podIP: ip, podIPs: [{ ip }], hostIP: ip, hostIPs: [{ ip }] }
    await receive(aPodTopic, { ...aPodMessage, status })
    const stored = await store.get('pods', key)
    t.match(stored?.status, { phase: 'Running', podIPs: [], hostIPs: [] }, ip)
    t.notOk(stored?.status?.podIP ?? stored?.status?.hostIP, ip)
  }
  t.equal(wrongAddresses('pod'), 5)
  t.match(log.lines.at(-1), { level: 'warn', message: /^Addresses in the report of a node are not used/ })
  const events = (await store.list('events')).items
  t.match(events[0], {
    involvedObject: { kind: 'Pod', name: 'web', uid: 'u1' },
    type: 'Warning',
    reason: 'AddressNotOwned',
    message: /^Node pi-1 reported .* hostIP 192\.168\.1\.9 is not an InternalIP of the node \(192\.168\.1\.5\)/,
  })
  const status = { phase: 'Running', podIP: '10.244.1.7', podIPs: [{ ip: '10.244.1.7' }], hostIP: '192.168.1.5' }
  await receive(aPodTopic, { ...aPodMessage, status })
  t.match((await store.get('pods', key))?.status, status)
})

test('without a network between nodes a pod has no InternalIP of another node, and no address of the loopback or link', async (t) => {
  const { store, receive, setNode } = await inbox(t)
  await setNode('pi-2', { address: '192.168.1.6' })
  await setNode('pi-1', { address: '192.168.1.5' })
  for (const [ip, isUsed] of [
    ['172.17.0.2', true],
    ['192.168.1.6', false],
    ['169.254.169.254', false],
    ['127.0.0.1', false],
  ] as const) {
    await receive(aPodTopic, { ...aPodMessage, status: { phase: 'Running', podIP: ip, podIPs: [{ ip }] } })
    t.same((await store.get('pods', key))?.status?.podIPs, isUsed ? [{ ip }] : [], ip)
  }
})

test('an InternalIP that no node can have is left out of its status, and the rest is stored', async (t) => {
  const { store, receive, wrongAddresses } = await inbox(t, { rules: routed })
  for (const ip of ['127.0.0.1', '169.254.169.254', '10.244.9.1', '10.96.0.1']) {
    const addresses = [...internalIP(ip).addresses, ...internalIP('192.168.1.5').addresses]
    await receive({ kind: 'status', node: 'pi-1' }, { addresses, conditions: [{ type: 'Ready', status: 'True' }] })
    const { status } = (await store.get('nodes', { namespace: '', name: 'pi-1' })) ?? {}
    t.same(status?.addresses, internalIP('192.168.1.5').addresses, ip)
  }
  t.equal(wrongAddresses('status'), 4)
})

test('a pod that is reported right behind a new address of its node is in the network of that address', async (t) => {
  const { store, receive } = await inbox(t, { rules: routed })
  const both = [
    receive({ kind: 'status', node: 'pi-1' }, internalIP('192.168.1.8')),
    receive(aPodTopic, { ...aPodMessage, status: { phase: 'Running', hostIP: '192.168.1.8' } }),
  ]
  await Promise.all(both)
  t.equal((await store.get('pods', key))?.status?.hostIP, '192.168.1.8')
})

test('an address that its node could not have yet is asked for when the node has its range', async (t) => {
  const { published, receive, setNode, runs } = await inbox(t, { rules: routed })
  await runs()
  await receive({ kind: 'connection', node: 'pi-1' }, { state: 'online', bootID: 'b' })
  const message = { ...aPodMessage, status: { phase: 'Running', podIP: '10.244.1.7' } }
  await receive(aPodTopic, message)
  const body = JSON.stringify(message)
  const digest = foldDigest(emptyDigest, digestText(topicName(aPodTopic), body))
  const asked = () => published.length
  const before = asked()
  for (let seq = 1; seq < 4; seq++) await receive({ kind: 'lease', node: 'pi-1' }, { seq, digest })
  t.equal(asked(), before, 'nothing is missing')
  await setNode('pi-1', { podCIDR: '10.244.1.0/24' })
  for (let seq = 4; seq < 8; seq++) await receive({ kind: 'lease', node: 'pi-1' }, { seq, digest })
  t.ok(asked() > before)
})

test('a message that the store rejects is logged, and requested again', async (t) => {
  const { store, receive, published, log, listener } = await inbox(t)
  await store.close()
  await receive(aPodTopic, aPodMessage)
  t.same(log.messages('warn'), ['Message of a node not stored'])
  listener.disconnected('pi-1')
  t.same(published, [])
})

test('a node whose status the store rejects may have changed; the status of a pod, and one that was stored, change nothing', async (t) => {
  const { store, receive, unstored, clock } = await inbox(t, { expected: ['Message of a node not stored'] })
  const status = { kind: 'status', node: 'pi-1' } as const
  await receive(status, { conditions: [{ type: 'Ready', status: 'False' }] })
  await store.close()
  await receive(aPodTopic, aPodMessage)
  t.notOk(unstored.mayBeOutdated('pi-1'))
  await receive(status, { conditions: [{ type: 'Ready', status: 'True' }] })
  t.ok(unstored.mayBeOutdated('pi-1'))
  await clock.advance(50_000)
  await receive(aPodTopic, aPodMessage)
  await clock.advance(50_000)
  t.ok(unstored.mayBeOutdated('pi-1'), 'as long as the store takes no write')
})

test('the outbox learns which nodes read references, and what they hold', async (t) => {
  const { receive, outboxCalls, dropped } = await inbox(t, { expected: ['Message of a node dropped'] })
  const connection = { kind: 'connection', node: 'pi-1' } as const
  const contents = { kind: 'contents', node: 'pi-1' } as const
  await receive(connection, { state: 'online', bootID: 'b', agentVersion: 'v' })
  await receive(connection, { state: 'online', bootID: 'b', agentVersion: 'v', references: true })
  await receive(contents, { names: ['a', 'b'] })
  await receive(contents, { names: Array.from({ length: 5000 }, String) })
  await receive(contents, { names: 'a' })
  const { length } = outboxCalls
  t.same(outboxCalls.slice(0, 3), [
    ['pi-1', false],
    ['pi-1', true],
    ['pi-1', ['a', 'b']],
  ])
  t.match(outboxCalls[3], ['pi-1', { length: 4096 }])
  t.equal(length, 4)
  t.equal(await dropped('contents', 'NotUnderstood'), 1)
})

test('what a node reports of its volumes is kept under its name, and bounded', async (t) => {
  const { receive, storage, dropped } = await inbox(t, {
    expected: ['Message of a node dropped', 'Report of a node shortened'],
  })
  const topic = { kind: 'storage', node: 'pi-1' } as const
  await receive(topic, { done: ['u1'], refused: [{ uid: 'u2', reason: 'it is mounted' }] })
  t.same([...(storage.reportOf('pi-1')?.done ?? [])], ['u1'])
  await receive(topic, { done: Array.from({ length: 1000 }, (_, index) => String(index)), refused: [] })
  t.equal(storage.reportOf('pi-1')?.done.size, 256)
  await receive(topic, { done: 'all', refused: [] })
  await receive({ kind: 'volumes', node: 'pi-1' }, { done: [], refused: [] })
  t.same([await dropped('storage', 'NotUnderstood'), await dropped('volumes', 'NotANodeTopic')], [1, 1])
})

const aPodTopic = { kind: 'pod', node: 'pi-1', uid: 'u1' } as const
const aPodMessage = { ...key, uid: 'u1', observedResourceVersion: '1', status: { phase: 'Running' } }

/** An inbox over a store with node pi-1, and pod default/web with uid u1 on it. */
async function inbox(
  t: Test,
  { rules, expected = [] }: { readonly rules?: AddressRules; readonly expected?: readonly string[] } = {},
) {
  const clock = fakeClock(nowMs)
  const log = quietLog(t, ...expected)
  const store = memoryStore({ clock })
  await store.create('nodes', unstamped(aNode({ name: 'pi-1' })))
  const { metadata, ...pod } = aPod({ name: 'web', nodeName: 'pi-1' })
  const { resourceVersion: _, ...given } = { ...metadata, uid: 'u1' }
  const stored = await store.create('pods', { ...pod, metadata: given } as Pod)
  const registry = metricsRegistry()
  const usage = usageBoard({ clock })
  const sessions = sessionBoard({ clock })
  const published: [string, unknown][] = []
  const outboxCalls: unknown[] = []
  const storage = storageBoard()
  const unstored = unstoredReports({ clock })
  const listener = nodeInbox({
    store,
    unstored,
    usage,
    sessions,
    clock,
    log,
    registry,
    ...(rules && { addressRules: rules }),
    events: eventRecorder({ store, clock }),
    podsOf: (node) => (node === 'pi-1' ? [stored] : []),
    storage,
    desired: {
      nodeOnline: (...online) => void outboxCalls.push(online),
      nodeHolds: (...held) => void outboxCalls.push(held),
    },
    broker: {
      publish: async (topic, body) => {
        published.push([topicName(topic), JSON.parse(body)])
      },
    },
  })
  const dropped = async (kind: string, reason: string) => {
    const found = registry.samplesOf('bramble_inbox_dropped_total')
    return found.find(({ labels = {} }) => labels['kind'] === kind && labels['reason'] === reason)?.value ?? 0
  }
  const receive = (topic: NodeTopic, body: unknown) =>
    listener.message({ node: topic.node, topic, body: typeof body === 'string' ? body : JSON.stringify(body) })
  const wrongAddresses = (kind: string) =>
    registry.samplesOf('bramble_inbox_wrong_addresses_total').find(({ labels = {} }) => labels['kind'] === kind)
      ?.value ?? 0
  let isRunning = false
  const runs = async () => {
    isRunning = true
    const stop = new AbortController()
    const ended = listener.run(stop.signal)
    t.teardown(async () => {
      stop.abort()
      await ended
    })
    await settledTurns()
  }
  /** With this range and address; the inbox follows it. */
  const setNode = async (name: string, { podCIDR, address }: { podCIDR?: string; address?: string }) => {
    if (!isRunning) await runs()
    const { resourceVersion: _, ...made } = aNode({ name }).metadata
    const node = {
      ...aNode({ name }),
      metadata: made,
      spec: podCIDR === undefined ? {} : { podCIDR, podCIDRs: [podCIDR] },
      status: address === undefined ? {} : internalIP(address),
    }
    const present = await store.get('nodes', { namespace: '', name })
    if (present === undefined) await store.create('nodes', node)
    else await store.update('nodes', { ...present, spec: node.spec, status: node.status })
    await settledTurns()
  }
  return {
    ...{
      store: store as Store,
      usage,
      sessions,
      storage,
      unstored,
      clock,
      log,
      listener,
      published,
      outboxCalls,
      dropped,
      receive,
    },
    ...{ wrongAddresses, runs, setNode },
  }
}

async function settledTurns(): Promise<void> {
  for (let turn = 0; turn < 20; turn++) await new Promise((resolve) => setImmediate(resolve))
}

function unstamped(node: StoredObject<'nodes'>) {
  const { resourceVersion: _, ...metadata } = node.metadata
  return { ...node, metadata }
}

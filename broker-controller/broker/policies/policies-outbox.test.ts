import { type Test, test } from 'tap'
import { decode } from '../../../api/decode.ts'
import type { NetworkPolicySpec } from '../../../api/network/network-policy.ts'
import type { PoliciesMessage } from '../../../api/network/node-policies.ts'
import { PoliciesMessageSchema } from '../../../api/network/node-policies.ts'
import { learntByAnnotation } from '../../../api/node/node-checkpoint.ts'
import { aNode, aPod } from '../../../api/testing/builders.ts'
import { type Topic, topicName } from '../../../api/topics.ts'
import { fakeClock } from '../../../daemon/testing/fake-clock.ts'
import { quietLog } from '../../../daemon/testing/quiet-log.ts'
import { memoryStore } from '../../store/memory-store.ts'
import { policiesOutbox } from './policies-outbox.ts'

/** `learns`: the store accepts checkpoints of nodes. `ipv6`: pods have addresses of both families. */
async function outbox(t: Test, learns = false, ipv6 = false) {
  const clock = fakeClock()
  const log = quietLog(t, 'A policy has too many peers', 'Policies do not fit')
  const store = memoryStore({ clock })
  const published: { node: string; body: PoliciesMessage }[] = []
  const withdrawn: string[] = []
  const broker = {
    publish: async (topic: Topic, body: string) => {
      const decoded = decode(PoliciesMessageSchema, JSON.parse(body))
      if (!decoded.ok) throw new Error('not decoded')
      published.push({ node: 'node' in topic ? topic.node : '', body: decoded.value })
    },
    withdraw: async (topic: Topic) => void withdrawn.push(topicName(topic)),
  }
  const stop = new AbortController()
  t.teardown(() => stop.abort())
  const namespace = (name: string, labels = {}) =>
    store.create('namespaces', { apiVersion: 'v1', kind: 'Namespace', metadata: { name, labels } })
  const node = async (name: string, annotations = {}) => {
    const made = aNode({ name, annotations })
    const { resourceVersion: _, ...metadata } = made.metadata
    await store.create('nodes', { ...made, metadata })
  }
  const pod = async (given: {
    readonly name: string
    readonly on?: string
    readonly ip?: string
    readonly ipv6?: string
    readonly namespace?: string
    readonly labels?: { readonly [key: string]: string }
    readonly hostNetwork?: boolean
    readonly phase?: 'Running' | 'Succeeded'
    readonly port?: number
  }) => {
    const { name, on, ip, ipv6: second, labels = {}, hostNetwork = false, phase = 'Running', port } = given
    const made = aPod({ name, namespace: given.namespace ?? 'shop' })
    const { resourceVersion: _, uid: __, ...metadata } = made.metadata
    const [main] = made.spec.containers
    if (main === undefined) throw new Error('a pod has a container')
    const ports = port === undefined ? [] : [{ name: 'http', containerPort: port, protocol: 'TCP' as const }]
    return await store.create('pods', {
      ...made,
      metadata: { ...metadata, labels },
      spec: { ...made.spec, containers: [{ ...main, ports }], ...(on && { nodeName: on }), hostNetwork },
      status: { phase, ...(ip && { podIP: ip, podIPs: [{ ip }, ...(second ? [{ ip: second }] : [])] }) },
    })
  }
  const policy = (name: string, spec: NetworkPolicySpec, inNamespace = 'shop') =>
    store.create('networkpolicies', {
      apiVersion: 'networking.k8s.io/v1',
      kind: 'NetworkPolicy',
      metadata: { namespace: inNamespace, name },
      spec,
    })
  return {
    ...{ store, clock, namespace, node, pod, policy, withdrawn },
    take: () => published.splice(0),
    async start() {
      const origin = { id: 'new', acceptsCheckpoints: true }
      const window = { isOpen: () => learns, onClose: () => undefined }
      const more = { origin, checkpoints: window }
      void policiesOutbox({ store, broker, clock, log, epoch: 'e', ipv6, ...more }).run(stop.signal)
      await clock.advance(50)
    },
  }
}

const from = (labels: { readonly [key: string]: string }): NetworkPolicySpec => ({
  podSelector: {},
  policyTypes: ['Ingress'],
  ingress: [{ from: [{ podSelector: { matchLabels: labels } }] }],
})
const elements = (message: PoliciesMessage | undefined) => message?.sets.map((set) => set.elements)

test('each node is sent the policies of the namespaces of its pods, with the addresses of their peers', async (t) => {
  const { namespace, node, pod, policy, start, take } = await outbox(t)
  await namespace('shop')
  await namespace('other')
  for (const name of ['pi-1', 'pi-2', 'pi-3']) await node(name)
  await pod({ name: 'db', on: 'pi-1', ip: '10.244.1.5', labels: { app: 'db' } })
  await pod({ name: 'web', on: 'pi-2', ip: '10.244.2.5', labels: { app: 'web' } })
  await pod({ name: 'web-of-host', on: 'pi-2', ip: '192.168.1.2', labels: { app: 'web' }, hostNetwork: true })
  await pod({ name: 'web-over', on: 'pi-2', ip: '10.244.2.6', labels: { app: 'web' }, phase: 'Succeeded' })
  await pod({ name: 'web-new', on: 'pi-2', labels: { app: 'web' } })
  await pod({ name: 'web', namespace: 'other', on: 'pi-3', ip: '10.244.3.5', labels: { app: 'web' } })
  await policy('db', from({ app: 'web' }))
  await start()
  const messages = new Map(take().map(({ node: name, body }) => [name, body]))
  t.same([...messages.keys()].sort(), ['pi-1', 'pi-2', 'pi-3'])
  for (const name of ['pi-1', 'pi-2']) {
    t.match(messages.get(name), { namespaces: ['shop'], policies: [{ namespace: 'shop', name: 'db' }] })
    t.same(elements(messages.get(name)), [['10.244.2.5']])
  }
  t.match(messages.get('pi-3'), { namespaces: ['other'], policies: [], sets: [] })
})

test('sets have IPv6 addresses only in a fleet with both families, and follow them', async (t) => {
  for (const ipv6 of [true, false]) {
    const { namespace, node, pod, policy, start, take, clock, store } = await outbox(t, false, ipv6)
    await namespace('shop')
    await node('pi-1')
    await pod({ name: 'db', on: 'pi-1', ip: '10.244.1.5', labels: { app: 'db' } })
    const web = { name: 'web', on: 'pi-1', ip: '10.244.1.6', labels: { app: 'web' }, port: 8080 }
    const stored = await pod({ ...web, ipv6: 'FD00:10:244:1:0::6' })
    const to = [{ podSelector: { matchLabels: { app: 'web' } } }]
    await policy('db', { policyTypes: ['Egress'], egress: [{ to }, { to, ports: [{ port: 'http' }] }] })
    await start()
    const sets = take()[0]?.body.sets ?? []
    const [addresses, ports] = ['address', 'port'].map((kind) => sets.find((set) => set.kind === kind))
    t.same(addresses?.elements, ['10.244.1.6'])
    t.same(addresses?.ipv6Elements, ipv6 ? ['fd00:10:244:1::6'] : undefined)
    t.same(ports?.ipv6Elements, ipv6 ? ['fd00:10:244:1::6 . tcp . 8080'] : undefined)
    const podIPs = [{ ip: '10.244.1.6' }, { ip: 'fd00:10:244:1::7' }]
    await store.updateStatus('pods', { ...stored, status: { ...stored.status, podIPs } })
    await clock.advance(2_000)
    const next = take()
      .at(-1)
      ?.body.sets.find(({ kind }) => kind === 'address')
    t.same(next?.ipv6Elements, ipv6 ? ['fd00:10:244:1::7'] : undefined, 'its other address is published')
  }
})

test('a node without pods has an empty message, and a pod on it adds its namespace soon', async (t) => {
  const { namespace, node, pod, policy, start, take, clock } = await outbox(t)
  await namespace('shop')
  await node('pi-1')
  await policy('all', { policyTypes: ['Ingress'] })
  await start()
  t.match(take(), [{ node: 'pi-1', body: { namespaces: [], policies: [], sets: [] } }])
  await pod({ name: 'db', on: 'pi-1' })
  await clock.advance(20)
  t.match(take(), [{ node: 'pi-1', body: { namespaces: ['shop'], policies: [{ name: 'all' }] } }])
})

test('a change is sent to the nodes that it concerns, once, and nothing where nodes see no difference', async (t) => {
  const { store, namespace, node, pod, policy, start, take, clock } = await outbox(t)
  await namespace('shop')
  await namespace('other')
  for (const name of ['pi-1', 'pi-2']) await node(name)
  await pod({ name: 'db', on: 'pi-1', ip: '10.244.1.5' })
  await pod({ name: 'x', namespace: 'other', on: 'pi-2', ip: '10.244.2.9' })
  const made = await policy('db', from({ app: 'web' }))
  await start()
  take()
  const web = await pod({ name: 'web', namespace: 'shop', ip: '10.244.2.5', labels: { app: 'web' } })
  await clock.advance(2_000)
  const [first, ...others] = take()
  t.same(others, [])
  t.equal(first?.node, 'pi-1')
  t.same(elements(first?.body), [['10.244.2.5']])
  await store.updateStatus('pods', { ...web, status: { ...web.status, message: 'other' } })
  await pod({ name: 'lone', ip: '10.244.2.7', labels: { app: 'lone' } })
  await clock.advance(5_000)
  t.same(take(), [])
  await store.delete('pods', { namespace: 'shop', name: 'web' })
  await clock.advance(5_000)
  t.same(
    take().map(({ body }) => elements(body)),
    [[[]]],
  )
  await store.delete('networkpolicies', { namespace: made.metadata.namespace ?? '', name: 'db' })
  await clock.advance(20)
  t.match(take(), [{ node: 'pi-1', body: { namespaces: ['shop'], policies: [], sets: [] } }])
})

test('labels of a namespace decide about its pods, and named ports follow each pod', async (t) => {
  const { store, namespace, node, pod, policy, start, take, clock } = await outbox(t)
  await namespace('shop')
  const team = await namespace('team', { team: 'a' })
  await node('pi-1')
  await pod({ name: 'db', on: 'pi-1', ip: '10.244.1.5' })
  await pod({ name: 'one', namespace: 'team', ip: '10.244.2.1', port: 80 })
  await pod({ name: 'two', namespace: 'team', ip: '10.244.2.2', port: 8080 })
  await policy('db', {
    policyTypes: ['Egress'],
    egress: [
      { to: [{ namespaceSelector: { matchLabels: { team: 'a' } } }], ports: [{ port: 'http', protocol: 'TCP' }] },
    ],
  })
  await start()
  t.same(
    take().map(({ body }) => elements(body)),
    [[['10.244.2.1 . tcp . 80', '10.244.2.2 . tcp . 8080']]],
  )
  await store.update('namespaces', { ...team, metadata: { ...team.metadata, labels: { team: 'b' } } })
  await clock.advance(2_000)
  t.same(
    take().map(({ body }) => elements(body)),
    [[[]]],
  )
  await namespace('third', { team: 'a' })
  await pod({ name: 'three', namespace: 'third', ip: '10.244.2.3', port: 90 })
  await clock.advance(2_000)
  t.same(take().at(-1)?.body.sets[0]?.elements, ['10.244.2.3 . tcp . 90'])
})

test('the message of a deleted node is withdrawn, and the next machine of its name receives its own', async (t) => {
  const { store, node, start, take, clock, withdrawn } = await outbox(t)
  await node('pi-1')
  await start()
  take()
  await store.delete('nodes', { namespace: '', name: 'pi-1' })
  await clock.advance(100)
  t.same(withdrawn, ['bramble/v1/nodes/pi-1/policies'])
  await node('pi-1')
  await clock.advance(100)
  t.match(take(), [{ node: 'pi-1', body: { namespaces: [] } }])
})

test('a namespace whose peers have more addresses than a message can have is left out of it', async (t) => {
  const { namespace, node, pod, policy, start, take } = await outbox(t)
  await namespace('shop')
  await node('pi-1')
  for (let index = 0; index < 2_000; index++) {
    const ip = `10.244.${index >> 8}.${index % 256}`
    await pod({ name: `p${index}`, ip, labels: { app: `a${index % 7}` }, ...(index === 0 && { on: 'pi-1' }) })
  }
  const peers = Array.from({ length: 1_000 }, (_, index) => ({
    podSelector: { matchExpressions: [{ key: 'app', operator: 'NotIn' as const, values: [`b${index}`] }] },
  }))
  await policy('huge', { policyTypes: ['Ingress'], ingress: [{ from: peers }] })
  await policy('beyond', { policyTypes: ['Ingress'], ingress: [{ from: [...peers, ...peers].map(distinct) }] })
  await start()
  let messages = take()
  while (messages.length === 0) {
    await new Promise((resolve) => setImmediate(resolve))
    messages = take()
  }
  t.match(messages, [{ node: 'pi-1', body: { namespaces: [], policies: [], sets: [] } }])
})

const distinct = <Peer extends object>(peer: Peer, index: number) => ({
  ...peer,
  namespaceSelector: { matchLabels: { n: String(index) } },
})

test('a store that learns from checkpoints publishes nothing to a node whose pods it has not learnt', async (t) => {
  const { store, node, pod, start, take, clock } = await outbox(t, true)
  await node('pi-1')
  await node('pi-2', { [learntByAnnotation]: 'new' })
  await pod({ name: 'web', on: 'pi-1' })
  await start()
  t.match(take(), [{ node: 'pi-2' }])
  const learning = await store.get('nodes', { namespace: '', name: 'pi-1' })
  if (learning === undefined) throw new Error('the node is there')
  const annotations = { [learntByAnnotation]: 'new' }
  await store.update('nodes', { ...learning, metadata: { ...learning.metadata, annotations } })
  await clock.advance(50)
  t.match(take(), [{ node: 'pi-1', body: { namespaces: ['shop'] } }])
})

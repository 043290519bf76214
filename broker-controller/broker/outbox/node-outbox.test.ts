import { type Test, test } from 'tap'
import type { Pod } from '../../../api/pod.ts'
import { aNode, aPod, type PodOverrides } from '../../../api/testing/builders.ts'
import { type DesiredMessage, type DesiredReferences, type Topic, topicName, topicRules } from '../../../api/topics.ts'
import { fakeClock } from '../../../daemon/testing/fake-clock.ts'
import { quietLog } from '../../../daemon/testing/quiet-log.ts'
import { contentDigest } from '../../store/checkpoints/checkpoint-data.ts'
import { memoryStore } from '../../store/memory-store.ts'
import type { StoreOrigin } from '../../store/store.ts'
import { aStoredClaim, aStoredVolume } from '../../testing/volume-objects.ts'
import type { Broker } from '../broker.ts'
import { nodeOutbox } from './node-outbox.ts'

test('a node receives all its pods, and no pods of other nodes', async (t) => {
  const { start, bind, desired } = await outbox(t)
  await bind({ name: 'b', nodeName: 'pi-1' })
  await bind({ name: 'a', nodeName: 'pi-1' })
  await bind({ name: 'c', nodeName: 'pi-2' })
  await bind({ name: 'unbound' })
  await start()
  t.same(
    desired('pi-1')
      .at(-1)
      ?.pods.map(({ metadata }) => metadata.name),
    ['a', 'b'],
  )
  t.same(
    desired('pi-2')
      .at(-1)
      ?.pods.map(({ metadata }) => metadata.name),
    ['c'],
  )
})

test('a node without pods receives an empty list, but nothing is published before all pods are read', async (t) => {
  const { start, bind, desired, published } = await outbox(t, 'pi-1', 'pi-empty')
  await bind({ name: 'a', nodeName: 'pi-1' })
  await start()
  t.same(
    desired('pi-empty').map(({ pods }) => pods),
    [[]],
  )
  t.same(
    desired('pi-1').map(({ pods }) => pods.length),
    [1],
    'never that it had none',
  )
  t.match(published[0], { topic: 'bramble/v1/controller', body: { state: 'online', epoch: 'epoch-1' } })
})

test('a status that a node reports is not published back to it; a change by others is', async (t) => {
  const { start, bind, desired, store, pass } = await outbox(t)
  const pod = await bind({ name: 'a', nodeName: 'pi-1' })
  await start()
  await store.updateStatus('pods', { ...pod, status: { phase: 'Running', podIP: '10.0.0.1' } })
  await pass()
  t.equal(desired('pi-1').length, 1)
  const present = await store.get('pods', { namespace: 'default', name: 'a' })
  if (present === undefined) return t.fail()
  const deletion = { deletionTimestamp: '2026-01-01T00:01:00Z', deletionGracePeriodSeconds: 30 }
  await store.update('pods', { ...present, metadata: { ...present.metadata, ...deletion } })
  await pass()
  t.match(desired('pi-1').at(-1)?.pods[0]?.metadata, deletion)
  await store.delete('pods', { namespace: 'default', name: 'a' })
  await pass()
  t.same(
    desired('pi-1').map(({ version, pods }) => [version, pods.length]),
    [
      [1, 1],
      [2, 1],
      [3, 0],
    ],
  )
})

test('a node with many large pods receives its changes no faster than a megabyte a second', async (t) => {
  const { start, bind, desired, clock } = await outbox(t)
  const args = ['x'.repeat(50_000)]
  for (let number = 0; number < 40; number++) {
    await bind({ name: `pod-${number}`, nodeName: 'pi-1', containers: [{ name: 'main', image: 'a', args }] })
  }
  await start()
  t.equal(desired('pi-1').length, 1)
  for (let change = 0; change < 15; change++) {
    await bind({ name: `more-${change}`, nodeName: 'pi-1' })
    await clock.advance(100)
  }
  t.equal(desired('pi-1').length, 1, 'two megabytes take two seconds')
  await clock.advance(1000)
  t.same(
    desired('pi-1').map(({ pods }) => pods.length),
    [40, 55],
    'and then one message has all changes',
  )
})

test('changes that come together are published together', async (t) => {
  const { start, bind, desired, pass } = await outbox(t)
  await start()
  await Promise.all([1, 2, 3, 4, 5].map((i) => bind({ name: `pod-${i}`, nodeName: 'pi-1' })))
  await pass()
  t.same(
    desired('pi-1').map(({ pods }) => pods.length),
    [5],
  )
})

test('a node receives the ConfigMaps and Secrets that its pods refer to, their changes, and no others', async (t) => {
  const { start, bind, desired, store, pass } = await outbox(t)
  const metadata = (name: string) => ({ name, namespace: 'default', labels: { some: 'label' } })
  const configMap = { apiVersion: 'v1', kind: 'ConfigMap', metadata: metadata('settings'), data: { a: '1' } } as const
  const made = await store.create('configmaps', configMap)
  await store.create('configmaps', { ...configMap, metadata: metadata('of-no-pod') })
  await bind({ name: 'other', nodeName: 'pi-2' })
  await bind({
    name: 'a',
    nodeName: 'pi-1',
    spec: {
      containers: [{ name: 'main', image: 'a', envFrom: [{ configMapRef: { name: 'settings' } }] }],
      volumes: [{ name: 'keys', projected: { sources: [{ secret: { name: 'key' } }] } }],
    },
  })
  await start()
  t.same(desired('pi-1').at(-1)?.configMaps, [
    { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'settings', namespace: 'default' }, data: { a: '1' } },
  ])
  t.equal(desired('pi-1').at(-1)?.secrets, undefined, 'the Secret does not exist yet')
  const secret = {
    apiVersion: 'v1',
    kind: 'Secret',
    metadata: metadata('key'),
    type: 'Opaque',
    data: { k: 'eA==' },
  } as const
  await store.create('secrets', secret)
  await pass()
  t.same(desired('pi-1').at(-1)?.secrets, [{ ...secret, metadata: { name: 'key', namespace: 'default' } }])
  await store.update('configmaps', { ...made, data: { a: '2' } })
  await pass()
  t.same(desired('pi-1').at(-1)?.configMaps?.[0]?.data, { a: '2' })
  const before = desired('pi-1').length
  const present = await store.get('configmaps', { namespace: 'default', name: 'settings' })
  if (present === undefined) return t.fail()
  await store.update('configmaps', { ...present, metadata: { ...present.metadata, labels: { other: 'label' } } })
  await pass()
  t.equal(desired('pi-1').length, before, 'labels of a ConfigMap are not published')
  t.equal(desired('pi-2').length, 1, 'and another node receives nothing of this')
})

test('the Secret of a share reaches the node with a pod whose claim is on it, and no other', async (t) => {
  const { start, bind, desired, store, pass } = await outbox(t, 'pi-1', 'pi-2')
  const hidden = { apiVersion: 'v1', kind: 'Secret', metadata: { name: 'nas', namespace: 'storage' } } as const
  await store.create('secrets', { ...hidden, data: { username: 'YQ==' } })
  const { metadata: claimMeta, ...claim } = aStoredClaim('photos', { spec: { volumeName: 'pv' } })
  const made = await store.create('persistentvolumeclaims', {
    ...{ ...claim, status: { phase: 'Bound' }, metadata: { namespace: 'default', name: claimMeta.name } },
  })
  const csi = {
    ...{ driver: 'smb.bramble.dev', volumeHandle: 'photos', volumeAttributes: { source: '//nas/photos', subDir: 'a' } },
    nodeStageSecretRef: { namespace: 'storage', name: 'nas' },
  }
  const claimRef = { namespace: 'default', name: 'photos', uid: made.metadata.uid }
  const { metadata: _, spec: { hostPath: __, ...spec } = {}, ...volume } = aStoredVolume('pv')
  await store.create('persistentvolumes', { ...volume, metadata: { name: 'pv' }, spec: { ...spec, csi, claimRef } })
  const volumes = [{ name: 'data', persistentVolumeClaim: { claimName: 'photos' } }]
  await bind({ name: 'web', nodeName: 'pi-1', spec: { containers: [{ name: 'main', image: 'a' }], volumes } })
  await bind({ name: 'other', nodeName: 'pi-2' })
  await start()
  t.match(desired('pi-1').at(-1), {
    claims: [{ volume: { source: 'other', share: { kind: 'smb', server: 'nas', path: '/photos/a' } } }],
    secrets: [{ metadata: { name: 'nas', namespace: 'storage' }, data: { username: 'YQ==' } }],
  })
  t.equal(desired('pi-2').at(-1)?.secrets, undefined)
  const present = await store.get('secrets', { namespace: 'storage', name: 'nas' })
  if (present === undefined) return t.fail()
  await store.update('secrets', { ...present, data: { username: 'Yg==' } })
  await pass()
  t.match(desired('pi-1').at(-1)?.secrets, [{ data: { username: 'Yg==' } }], 'also when it changes')
  await store.delete('pods', { namespace: 'default', name: 'web' })
  await pass()
  t.equal(desired('pi-1').at(-1)?.secrets, undefined)
})

test('a node receives the addresses its pods may have', async (t) => {
  const { start, desired, store, pass } = await outbox(t, 'pi-1')
  await start()
  t.equal(desired('pi-1').at(-1)?.podCIDR, undefined)
  const node = await store.get('nodes', { namespace: '', name: 'pi-1' })
  if (node === undefined) return t.fail()
  await store.update('nodes', { ...node, spec: { ...node.spec, podCIDR: '10.42.1.0/24' } })
  await pass()
  t.equal(desired('pi-1').at(-1)?.podCIDR, '10.42.1.0/24')
})

test('a store that began without its nodes asks each node for its checkpoint before it publishes pods to it', async (t) => {
  const origin = { id: 'store-2', acceptsCheckpoints: true }
  const { start, bind, desired, store, pass, published, close } = await outboxOf(t, origin, 'pi-1', 'pi-3')
  await bind({ name: 'a', nodeName: 'pi-1' })
  await bind({ name: 'b', nodeName: 'pi-2' })
  await start()
  t.match(published[0], { topic: 'bramble/v1/controller', body: { store: 'store-2' } })
  t.match(desired('pi-1'), [{ pods: [], awaitsCheckpoint: true, store: 'store-2' }])
  t.same(desired('pi-2'), [], 'a node that has not registered yet receives it afterwards')
  const node = await store.get('nodes', { namespace: '', name: 'pi-1' })
  if (node === undefined) return t.fail()
  const annotations = { 'bramble.dev/learnt-by': 'store-2' }
  await store.update('nodes', { ...node, metadata: { ...node.metadata, annotations } })
  await pass()
  t.match(desired('pi-1').at(-1), { pods: [{ metadata: { name: 'a' } }], store: 'store-2' })
  t.equal(desired('pi-1').at(-1)?.awaitsCheckpoint, undefined)
  t.match(desired('pi-3'), [{ awaitsCheckpoint: true }])
  close()
  await pass()
  t.equal(desired('pi-3').at(-1)?.awaitsCheckpoint, undefined, 'it waits no longer than checkpoints are accepted')
})

test('a pod that a node claimed brings it no Secret of others; what the controller assigned does', async (t) => {
  const { start, bind, desired, store, pass } = await outbox(t, 'pi-1')
  const metadata = { name: 'hidden', namespace: 'default' }
  await store.create('secrets', { apiVersion: 'v1', kind: 'Secret', metadata, data: { a: 'c2VzYW1l' } })
  const containers = [{ name: 'main', image: 'a:1', envFrom: [{ secretRef: { name: 'hidden' } }] }]
  const annotations = { 'bramble.dev/learnt-from': 'pi-1' }
  await bind({ name: 'claimed', nodeName: 'pi-1', containers, metadata: { annotations } })
  await bind({
    name: 'mirror',
    nodeName: 'pi-1',
    containers,
    metadata: { annotations: { 'kubernetes.io/config.mirror': 'x' } },
  })
  await start()
  t.equal(desired('pi-1').at(-1)?.secrets, undefined)
  await bind({ name: 'assigned', nodeName: 'pi-1', containers })
  await pass()
  t.match(desired('pi-1').at(-1)?.secrets, [{ metadata: { name: 'hidden' } }])
})

test('a Secret that a node delivered is published to it until it is changed, and to no other node while it is contested', async (t) => {
  const { start, bind, desired, store, pass } = await outbox(t, 'pi-1', 'pi-2')
  const secret = {
    apiVersion: 'v1',
    kind: 'Secret',
    metadata: { name: 'hidden', namespace: 'default' },
    data: { a: 'eA==' },
  } as const
  const annotations = {
    'bramble.dev/learnt-from': 'pi-1',
    'bramble.dev/learnt-digest': contentDigest(secret),
    'bramble.dev/contested-by': 'pi-2',
  }
  await store.create('secrets', { ...secret, metadata: { ...secret.metadata, annotations } })
  const containers = [{ name: 'main', image: 'a:1', envFrom: [{ secretRef: { name: 'hidden' } }] }]
  const claim = { annotations: { 'bramble.dev/learnt-from': 'pi-1' } }
  await bind({ name: 'claimed', nodeName: 'pi-1', containers, metadata: claim })
  await bind({ name: 'assigned', nodeName: 'pi-2', containers })
  await start()
  t.match(desired('pi-1').at(-1)?.secrets, [{ data: { a: 'eA==' } }])
  t.equal(desired('pi-2').at(-1)?.secrets, undefined)
  const stored = await store.get('secrets', { namespace: 'default', name: 'hidden' })
  if (stored === undefined) return t.fail('the Secret is gone')
  await store.update('secrets', { ...stored, data: { a: 'eQ==' } })
  await pass()
  t.equal(desired('pi-1').at(-1)?.secrets, undefined, 'an operator wrote it')
  t.match(desired('pi-2').at(-1)?.secrets, [{ data: { a: 'eQ==' } }], 'which decides what was contested')
})

test('the retained message of a node is withdrawn when its Node is deleted, and made for the next Node', async (t) => {
  const { start, bind, desired, store, pass, retained } = await outbox(t, 'pi-1', 'pi-2')
  const metadata = { name: 'hidden', namespace: 'default' }
  const secret = await store.create('secrets', { apiVersion: 'v1', kind: 'Secret', metadata, data: { a: 'c2VzYW1l' } })
  const containers = [{ name: 'main', image: 'a:1', envFrom: [{ secretRef: { name: 'hidden' } }] }]
  await bind({ name: 'a', nodeName: 'pi-1', containers })
  await start()
  const topic = topicName({ kind: 'desired', node: 'pi-1' })
  t.match(retained.get(topic), /c2VzYW1l/)
  await store.delete('nodes', { namespace: '', name: 'pi-1' })
  await pass()
  t.equal(retained.get(topic), undefined)
  t.ok(retained.has(topicName({ kind: 'desired', node: 'pi-2' })), 'that of another node stays')

  await store.update('secrets', { ...secret, data: { a: 'b3RoZXI=' } })
  await pass()
  t.match(desired('pi-1').at(-1)?.secrets, [{ data: { a: 'b3RoZXI=' } }], 'an agent that is connected receives it')
  t.equal(retained.get(topic), undefined, 'but nothing is retained for a node without a Node')

  const before = desired('pi-1').length
  const { resourceVersion: _, uid: __, ...made } = aNode({ name: 'pi-1' }).metadata
  await store.create('nodes', { ...aNode({ name: 'pi-1' }), metadata: { ...made, uid: 'another' } })
  await pass()
  t.equal(desired('pi-1').length, before + 1)
  t.match(retained.get(topic), /b3RoZXI=/)
})

test('the retained message is withdrawn also where the node was sent so much that it must pause', async (t) => {
  const { start, bind, store, retained, clock } = await outbox(t, 'pi-1')
  const args = ['x'.repeat(5_000_000)]
  await bind({ name: 'large', nodeName: 'pi-1', containers: [{ name: 'main', image: 'a', args }] })
  await start()
  const topic = topicName({ kind: 'desired', node: 'pi-1' })
  t.ok(retained.has(topic))
  await store.delete('nodes', { namespace: '', name: 'pi-1' })
  await clock.advance(0)
  t.notOk(retained.has(topic))
})

test('the time is published every thirty minutes', async (t) => {
  const { start, published, clock } = await outbox(t)
  await start()
  const times = () => published.filter(({ topic }) => topic === 'bramble/v1/controller').map(({ body }) => body)
  const before = times().length
  await clock.advance(60 * 60_000)
  t.match(times().slice(before), [
    { state: 'online', time: /:30:0\dZ$/ },
    { state: 'online', time: /:00:0\dZ$/ },
  ])
})

test('a controller that stops publishes this last', async (t) => {
  const { start, published } = await outbox(t)
  const stop = await start()
  await stop()
  t.match(published.at(-1), { topic: 'bramble/v1/controller', body: { state: 'lost', epoch: 'epoch-1' } })
})

type PublishOptions = NonNullable<Parameters<Broker['publish']>[2]>

async function outbox(t: Test, ...nodes: readonly string[]) {
  return outboxOf(t, undefined, ...nodes)
}

async function outboxOf(t: Test, origin: StoreOrigin | undefined, ...nodes: readonly string[]) {
  const clock = fakeClock()
  const log = quietLog(t)
  const store = memoryStore({ clock })
  for (const name of nodes) {
    const { resourceVersion: _, ...metadata } = aNode({ name }).metadata
    await store.create('nodes', { ...aNode({ name }), metadata })
  }
  const published: { topic: string; body: unknown }[] = []
  const retained = new Map<string, string>()
  const broker = {
    identifiesSenders: true,
    publish: async (
      topic: Topic,
      body: string,
      { retain = topicRules[topic.kind].retain, retained: inPlace }: PublishOptions = {},
    ) => {
      published.push({ topic: topicName(topic), body: JSON.parse(body) })
      if (retain) retained.set(topicName(topic), inPlace?.() ?? body)
    },
    withdraw: async (topic: Topic) => void retained.delete(topicName(topic)),
  }
  let isOpen = origin?.acceptsCheckpoints ?? false
  let closed = () => {}
  const checkpoints = {
    isOpen: () => isOpen,
    onClose: (notify: () => void) => {
      closed = notify
    },
  }
  const loop = nodeOutbox({ store, broker, clock, log, epoch: 'epoch-1', ...(origin && { origin, checkpoints }) })
  const pass = () => clock.advance(50)
  return {
    store,
    clock,
    published,
    retained,
    pass,
    nodeOnline: loop.nodeOnline,
    nodeHolds: loop.nodeHolds,
    /** What the node receives at its next connection. */
    kept: (node: string): DesiredMessage & DesiredReferences =>
      JSON.parse(retained.get(topicName({ kind: 'desired', node })) ?? ''),
    close() {
      isOpen = false
      closed()
    },
    bind: (over: PodOverrides) => {
      const { metadata, ...pod } = aPod(over)
      const { resourceVersion: _, ...given } = metadata
      return store.create('pods', { ...pod, metadata: given } as Pod)
    },
    desired: (node: string) =>
      published
        .filter(({ topic }) => topic === topicName({ kind: 'desired', node }))
        .map(({ body }) => body as DesiredMessage & DesiredReferences),
    async start() {
      const stop = new AbortController()
      const ended = loop.run(stop.signal)
      t.teardown(() => stop.abort())
      await pass()
      return async () => {
        stop.abort()
        await ended
      }
    },
  }
}

/** Node pi-1 with a pod that mounts 5 MB of ConfigMaps and a Secret; its agent reads references and holds what it has received. */
async function withLargeContents(t: Test, annotations: { readonly [name: string]: string } = {}) {
  const world = await outbox(t)
  const { resourceVersion: _, ...metadata } = aNode({ name: 'pi-1' }).metadata
  await world.store.create('nodes', { ...aNode({ name: 'pi-1' }), metadata: { ...metadata, annotations } })
  const names = ['m1', 'm2', 'm3', 'm4', 'm5']
  for (const name of names) {
    const data = { text: name.repeat(500_000) }
    await world.store.create('configmaps', {
      apiVersion: 'v1',
      kind: 'ConfigMap',
      metadata: { name, namespace: 'default' },
      data,
    })
  }
  const secret = { apiVersion: 'v1', kind: 'Secret', metadata: { name: 'key', namespace: 'default' } } as const
  const key = await world.store.create('secrets', { ...secret, data: { k: 'eA==' } })
  const volumes = [
    ...names.map((name) => ({ name, configMap: { name } })),
    { name: 'key', secret: { secretName: 'key' } },
  ]
  await world.bind({ name: 'large', nodeName: 'pi-1', spec: { volumes } })
  await world.start()
  const whole = world.desired('pi-1').at(-1)
  const held = Object.values(whole?.names ?? {}).flat()
  // Each megabyte is followed by a pause of a second.
  const settle = () => world.clock.advance(10_000)
  await settle()
  return { ...world, key, held, settle }
}

function bytesOf(message: object | undefined): number {
  return JSON.stringify(message).length
}

test('a change of one pod sends that pod, and of the others only their names', async (t) => {
  const { bind, desired, kept, held, settle, nodeOnline, nodeHolds } = await withLargeContents(t)
  t.ok(bytesOf(desired('pi-1').at(-1)) > 5_000_000, 'once')
  t.equal(held.length, 7, 'all have a name')
  nodeOnline('pi-1', true)
  nodeHolds('pi-1', held)
  await settle()
  t.ok(bytesOf(kept('pi-1')) < 1000, 'and receives no content at its next connection')
  await bind({ name: 'other', nodeName: 'pi-1' })
  await settle()
  const message = desired('pi-1').at(-1)
  t.ok(bytesOf(message) < 2000, `${bytesOf(message)} bytes`)
  t.match(message, { names: { pods: { length: 2 } }, pods: undefined, configMaps: undefined, secrets: undefined })
  t.match(Object.values(message?.contents ?? {}), [{ kind: 'Pod', metadata: { name: 'other' } }])
  t.same(kept('pi-1').contents, {}, 'what is retained has names only')
})

test('a changed Secret is sent once, by its new name', async (t) => {
  const { store, bind, desired, key, held, settle, nodeHolds } = await withLargeContents(t)
  nodeHolds('pi-1', held)
  await settle()
  await store.update('secrets', { ...key, data: { k: 'eQ==' } })
  await settle()
  t.match(Object.values(desired('pi-1').at(-1)?.contents ?? {}), [{ kind: 'Secret', data: { k: 'eQ==' } }])
  await bind({ name: 'other', nodeName: 'pi-1' })
  await settle()
  t.match(Object.values(desired('pi-1').at(-1)?.contents ?? {}), [{ kind: 'Pod' }])
})

test('a node that lacks contents receives these, and no others', async (t) => {
  const { desired, held, settle, nodeHolds } = await withLargeContents(t)
  nodeHolds('pi-1', [...held.slice(1), 'of no object'])
  await settle()
  t.same(Object.keys(desired('pi-1').at(-1)?.contents ?? {}), held.slice(0, 1))
  const count = desired('pi-1').length
  nodeHolds('pi-1', held)
  await settle()
  t.equal(desired('pi-1').length, count, 'nothing is published to a node that holds all')
  nodeHolds('pi-1', [])
  await settle()
  t.same(Object.keys(desired('pi-1').at(-1)?.contents ?? {}).toSorted(), held.toSorted())
})

test('an earlier agent receives whole messages, also after a later one on the same machine', async (t) => {
  const { bind, desired, kept, held, settle, nodeOnline, nodeHolds } = await withLargeContents(t)
  nodeOnline('pi-1', true)
  nodeHolds('pi-1', held)
  await settle()
  t.match(kept('pi-1'), { pods: undefined, contents: {} })
  nodeOnline('pi-1', false)
  await settle()
  t.match(kept('pi-1'), { pods: [{ metadata: { name: 'large' } }], configMaps: { length: 5 }, secrets: { length: 1 } })
  await bind({ name: 'other', nodeName: 'pi-1' })
  await settle()
  t.match(desired('pi-1').at(-1), { pods: { length: 2 }, configMaps: { length: 5 } })
})

test('a controller that starts refers to all contents of a node whose agent reads references', async (t) => {
  const { bind, desired, kept, held, settle, nodeOnline, nodeHolds } = await withLargeContents(t, {
    'bramble.dev/desired-by-reference': 'true',
  })
  t.ok(bytesOf(desired('pi-1').at(-1)) < 1000)
  await bind({ name: 'other', nodeName: 'pi-1' })
  await settle()
  t.match(Object.values(desired('pi-1').at(-1)?.contents ?? {}), [{ metadata: { name: 'other' } }])
  nodeOnline('pi-1', true)
  nodeHolds('pi-1', held)
  await settle()
  t.match(
    Object.values(desired('pi-1').at(-1)?.contents ?? {}),
    [{ metadata: { name: 'other' } }],
    'it was not there yet',
  )
  nodeOnline('pi-1', false)
  await settle()
  t.match(kept('pi-1'), { pods: { length: 2 }, configMaps: { length: 5 } }, 'an earlier agent was installed meanwhile')
})

test('a report of a node without a Node object causes no message: it must not read that it has no pods', async (t) => {
  const { start, published, pass, nodeOnline, nodeHolds } = await outbox(t, 'pi-1')
  await start()
  const count = published.length
  nodeOnline('pi-2', true)
  nodeHolds('pi-2', ['a'])
  nodeOnline('pi-2', false)
  await pass()
  t.equal(published.length, count)
})

test('a node holds nothing for a Node that was deleted', async (t) => {
  const { store, kept, held, settle, nodeHolds } = await withLargeContents(t)
  nodeHolds('pi-1', held)
  await settle()
  const node = await store.get('nodes', { namespace: '', name: 'pi-1' })
  await store.delete('nodes', { namespace: '', name: 'pi-1' })
  await settle()
  if (node === undefined) return t.fail()
  const { resourceVersion: _, uid: __, ...metadata } = node.metadata
  await store.create('nodes', { ...node, metadata })
  await settle()
  t.match(kept('pi-1'), { pods: { length: 1 }, configMaps: { length: 5 } })
})

import { type Test, test } from 'tap'
import type { ConfigMap } from '../../../api/config-map.ts'
import { nodeIdentity } from '../../../api/identity.ts'
import type { ObjectMeta } from '../../../api/meta.ts'
import {
  checkpointCopyAnnotation,
  checkpointCopyLabel,
  contestedByAnnotation,
  learntDigestAnnotation,
  learntFromAnnotation,
  rejectedFromAnnotation,
  unprovenFromAnnotation,
} from '../../../api/node/node-checkpoint.ts'
import { secretsOf } from '../../../api/pod/pod-references.ts'
import type { Pod } from '../../../api/pod.ts'
import type { Secret } from '../../../api/secret.ts'
import { aNode, aPod } from '../../../api/testing/builders.ts'
import { nodeReference } from '../../store/references.ts'
import { anApi, type Document } from '../../testing/api-in-memory.ts'
import { namedBy } from './node-checkpoint-data.ts'

test('the names that pods give are collected once, however many objects a checkpoint has', async (t) => {
  const podOf = (namespace: string, secretName: string) =>
    aPod({ name: `of-${secretName}`, namespace, spec: { volumes: [{ name: 'files', secret: { secretName } }] } })
  const pods = [podOf('shop', 'a'), podOf('shop', 'b'), podOf('bank', 'c'), podOf('kube-system', 'd')]
  let reads = 0
  const isNamed = namedBy(pods, (pod: Pod) => {
    reads += 1
    return secretsOf(pod)
  })
  const objects = Array.from({ length: 1000 }, (_, index) => ({ namespace: 'shop', name: `other-${index}` }))
  t.notOk(objects.some(isNamed))
  const named = ['shop/a', 'shop/b', 'shop/c', 'bank/c', 'bank/a', 'kube-system/d', 'away/a'].filter((text) => {
    const [namespace = '', name = ''] = text.split('/')
    return isNamed({ namespace, name })
  })
  t.same(named, ['shop/a', 'shop/b', 'bank/c'], 'by namespace, and none in a namespace of the fleet itself')
  t.equal(reads, pods.length)
})

const [settingsPath, hiddenPath] = [
  '/api/v1/namespaces/shop/configmaps/settings',
  '/api/v1/namespaces/shop/secrets/hidden',
]

test('what a node delivers is stored with its content and the name of the node, and no other metadata', async (t) => {
  const { deliver, get } = await fleet(t)
  const more = { labels: { a: 'b' }, annotations: { c: 'd' }, finalizers: ['e/f'] }
  const map = settings({ a: '1' })
  t.same(await deliver('pi-1', { configMaps: [{ ...map, metadata: { ...map.metadata, ...more } }] }), '')
  t.match(await get(settingsPath), { data: { a: '1' } })
  const { labels, annotations, finalizers } = await metadataOf(get, settingsPath)
  t.same([labels, finalizers], [undefined, undefined])
  t.same(Object.keys(annotations ?? {}).sort(), [learntDigestAnnotation, learntFromAnnotation])
  t.equal(annotations?.[learntFromAnnotation], 'pi-1')
})

test('each node that delivers the same content is named, once', async (t) => {
  const { deliver, get } = await fleet(t)
  const same = { configMaps: [settings({ a: '1' })], secrets: [hidden('sesame')] }
  for (const node of ['pi-2', 'pi-1']) t.equal(await deliver(node, same), '')
  for (const path of [settingsPath, hiddenPath]) {
    const before = await metadataOf(get, path)
    t.equal(before.annotations?.[learntFromAnnotation], 'pi-1,pi-2')
    t.equal(before.annotations?.[contestedByAnnotation], undefined)
    await deliver('pi-1', same)
    t.equal((await metadataOf(get, path)).resourceVersion, before.resourceVersion, 'not written again')
  }
})

test('of an object of an operator only nodes without an assigned pod are noted', async (t) => {
  const { deliver, get, store, assign } = await fleet(t)
  await store.create('configmaps', settings({ a: '1' }))
  await assign('pi-1')
  await deliver('pi-1', { configMaps: [settings({ a: '1' })] })
  t.equal((await metadataOf(get, settingsPath)).annotations, undefined)
  await deliver('pi-2', { configMaps: [settings({ a: '1' })] })
  t.match((await metadataOf(get, settingsPath)).annotations, { [learntFromAnnotation]: 'pi-2' })
  await deliver('pi-1', { configMaps: [settings({ a: '1' })] })
  t.match((await metadataOf(get, settingsPath)).annotations, { [learntFromAnnotation]: 'pi-1,pi-2' })
})

test('a node that delivers other content than before changes nothing, and contradicts only itself', async (t) => {
  const { deliver, get, store } = await fleet(t)
  await deliver('pi-1', { configMaps: [settings({ a: '1' })] })
  t.equal(await deliver('pi-1', { configMaps: [settings({ a: '2' })] }), '')
  t.match(await get(settingsPath), { data: { a: '1' } })
  t.same([(await store.list('events')).items.length, (await store.list('secrets')).items.length], [0, 0])
})

test('other content than that of another node is kept apart, and both nodes get an Event', async (t) => {
  const { deliver, get, store, copies } = await fleet(t)
  await deliver('pi-1', { configMaps: [settings({ a: '1' })] })
  const binary = { ...settings({ a: '2' }), binaryData: { b: 'Mg==' } }
  const answered = await deliver('pi-2', { configMaps: [binary] })
  const [copy] = await copies()
  const message = `ConfigMap shop/settings of node pi-2 differs from what node pi-1 delivered and was not applied; an operator must decide: its copy is Secret kube-system/${copy?.metadata.name}`
  t.equal(answered, message)
  t.same(
    (await store.list('events')).items.map((event) => [event.involvedObject, event.type, event.reason, event.message]),
    ['pi-2', 'pi-1'].map((node) => [nodeReference(node), 'Warning', 'CheckpointContradiction', message]).reverse(),
  )
  t.match(await get(settingsPath), { data: { a: '1' } })
  t.match((await metadataOf(get, settingsPath)).annotations, {
    [learntFromAnnotation]: 'pi-1',
    [contestedByAnnotation]: 'pi-2',
  })
  t.match(copy, {
    metadata: {
      name: /^checkpoint-[0-9a-f]{16}$/,
      labels: { [checkpointCopyLabel]: 'true' },
      annotations: { [checkpointCopyAnnotation]: 'configmaps shop/settings', [learntFromAnnotation]: 'pi-2' },
    },
    type: 'bramble.dev/checkpoint-copy',
  })
  t.same(JSON.parse(Buffer.from(copy?.data?.['object.json'] ?? '', 'base64').toString()), {
    ...binary,
    apiVersion: 'v1',
  })
})

test('nodes that deliver the same contradicting content share a copy', async (t) => {
  const { deliver, get, copies } = await fleet(t)
  await deliver('pi-1', { secrets: [hidden('forged')] })
  const honest = { ...hidden('honest'), type: 'example.org/own' }
  for (const node of ['pi-3', 'pi-2', 'pi-3']) await deliver(node, { secrets: [honest] })
  const [copy, ...others] = await copies()
  t.same(others, [])
  t.equal(copy?.metadata.annotations?.[learntFromAnnotation], 'pi-2,pi-3')
  t.same(JSON.parse(Buffer.from(copy?.data?.['object.json'] ?? '', 'base64').toString()), honest)
  t.equal((await metadataOf(get, hiddenPath)).annotations?.[contestedByAnnotation], 'pi-2,pi-3')
  await deliver('pi-2', { secrets: [hidden('a third')] })
  t.equal((await copies()).length, 2)
})

test('content that an operator changed is the operator’s decision', async (t) => {
  const { deliver, get, ask } = await fleet(t)
  await deliver('pi-1', { configMaps: [settings({ a: '1' })] })
  await ask('PATCH', settingsPath, { body: { data: { a: '2' } }, type: 'application/merge-patch+json' })
  t.match(await deliver('pi-1', { configMaps: [settings({ a: '1' })] }), /differs from the existing object and was not/)
  t.equal((await metadataOf(get, settingsPath)).annotations?.[contestedByAnnotation], undefined)
})

test('a node does not find the content of a Secret by trying: only the first that it delivers is compared', async (t) => {
  for (const isDelivered of [false, true]) {
    const { deliver, get, store, read } = await fleet(t)
    if (isDelivered) await deliver('pi-1', { secrets: [hidden('sesame')] })
    else await store.create('secrets', hidden('sesame'))
    const differs = /^(Secret shop\/hidden of node pi-2 differs from [^;]*; an operator must decide: [^;]*(; )?)+$/
    t.match(await deliver('pi-2', { secrets: ['one', 'two', 'sesame'].map(hidden) }), differs, 'in one checkpoint')
    t.match(await deliver('pi-2', { secrets: [hidden('sesame')] }), differs, 'and in another one')
    t.equal(await read(hiddenPath, 'pi-2'), 403)
    const { annotations } = await metadataOf(get, hiddenPath)
    t.equal(annotations?.[rejectedFromAnnotation], 'pi-2@store-2')
    t.equal(annotations?.[learntFromAnnotation], isDelivered ? 'pi-1' : undefined)
    t.equal(await deliver('pi-3', { secrets: [hidden('sesame')] }), '', 'another node had it')
    t.equal(await read(hiddenPath, 'pi-3'), 200)
  }
})

test('what was rejected after an earlier restore is compared again', async (t) => {
  const { deliver, store, read } = await fleet(t)
  const { metadata, ...content } = hidden('sesame')
  const annotations = { [rejectedFromAnnotation]: 'pi-1@store-1' }
  await store.create('secrets', { ...content, metadata: { ...metadata, annotations } })
  t.equal(await deliver('pi-1', { secrets: [hidden('sesame')] }), '')
  t.equal(await read(hiddenPath, 'pi-1'), 200)
})

test('copies of a node that contradicts too often are not kept', async (t) => {
  const { deliver, store, copies } = await fleet(t)
  await deliver('pi-1', { configMaps: [settings({ a: '1' })] })
  const copy = (index: number, from: string, labels: { readonly [name: string]: string }) =>
    store.create('secrets', {
      apiVersion: 'v1',
      kind: 'Secret',
      metadata: {
        namespace: 'kube-system',
        name: `c-${from}-${index}`,
        labels,
        annotations: { [learntFromAnnotation]: from },
      },
    })
  const label = { [checkpointCopyLabel]: 'true' }
  for (let index = 0; index < 49; index++) await copy(index, 'pi-2', label)
  await copy(0, 'pi-3', label)
  await copy(49, 'pi-2', {})
  t.match(await deliver('pi-2', { configMaps: [settings({ a: '2' })] }), /its copy is Secret kube-system\/checkpoint-/)
  const before = (await copies()).length
  t.match(await deliver('pi-2', { configMaps: [settings({ a: '3' })] }), /an operator must decide: no copy was kept$/)
  t.match(await deliver('pi-2', { configMaps: [settings({ a: '2' })] }), /its copy is/, 'one that is there is named')
  t.equal((await copies()).length, before)
})

/** The controller has sent this content. */
const isHonest = (object: ConfigMap | Secret) =>
  object.kind === 'Secret' && object.data?.['b'] === hidden('honest').data?.['b']

test('content that no controller has sent is served to the node that delivered it only, with an Event', async (t) => {
  const { deliver, get, store, read, assign } = await fleet(t, isHonest)
  t.equal(await deliver('pi-1', { secrets: [hidden('forged')], configMaps: [settings({ a: '1' })] }), '')
  await assign('pi-2')
  for (const path of [hiddenPath, settingsPath]) {
    t.equal((await metadataOf(get, path)).annotations?.[unprovenFromAnnotation], 'pi-1')
    t.same([await read(path, 'pi-1'), await read(path, 'pi-2')], [200, 403])
  }
  const [event, ...others] = (await store.list('events')).items
  t.same(others, [], 'one for all of them')
  t.match(event, {
    involvedObject: nodeReference('pi-1'),
    type: 'Warning',
    reason: 'CheckpointNotProven',
    message:
      /^Node pi-1 has not proven .* sent it ConfigMap shop\/settings, Secret shop\/hidden: .*bramble-controller checkpoints/,
  })
})

test('many objects without a proof make one Event that names some', async (t) => {
  const { deliver, store } = await fleet(t, () => false)
  const names = Array.from({ length: 12 }, (_, index) => `s-${index}`)
  const spec = { volumes: names.map((secretName) => ({ name: secretName, secret: { secretName } })) }
  const pod = aPod({ name: 'many', namespace: 'shop', nodeName: 'pi-1', spec })
  const secrets = names.map((name) => ({ ...hidden('forged'), metadata: { name, namespace: 'shop' } }))
  await deliver('pi-1', { pods: [{ ...pod, metadata: { ...pod.metadata, uid: 'many' } }], secrets })
  const { items } = await store.list('events')
  t.match(items, [{ message: /Secret shop\/s-7 and 4 more: / }])
  t.equal(items.length, 1)
})

test('what is proven takes the place of what is not, in either order, and is not put in doubt by it', async (t) => {
  for (const [first, second] of [
    ['pi-1', 'pi-2'],
    ['pi-2', 'pi-1'],
  ] as const) {
    const { deliver, get, read, assign, copies } = await fleet(t, isHonest)
    const contentOf = (node: string) => ({ secrets: [hidden(node === 'pi-1' ? 'forged' : 'honest')] })
    await deliver(first, contentOf(first))
    await deliver(second, contentOf(second))
    t.match(await get(hiddenPath), { data: hidden('honest').data }, `${first} is first`)
    const { annotations } = await metadataOf(get, hiddenPath)
    t.equal(annotations?.[learntFromAnnotation], 'pi-2')
    t.equal(annotations?.[rejectedFromAnnotation], 'pi-1@store-2')
    for (const name of [unprovenFromAnnotation, contestedByAnnotation]) t.equal(annotations?.[name], undefined)
    t.equal((await copies())[0]?.metadata.annotations?.[learntFromAnnotation], 'pi-1', 'the other one is kept apart')
    await assign('pi-3')
    t.same([await read(hiddenPath, 'pi-3'), await read(hiddenPath, 'pi-1')], [200, 403])
    await deliver('pi-1', { secrets: [hidden('honest')] })
    t.equal(await read(hiddenPath, 'pi-1'), 403, 'the forger does not find the content by trying')
  }
})

test('a proof that arrives later is one, and two contents that are proven are for an operator', async (t) => {
  let isProven = false
  const { deliver, get, read, assign } = await fleet(t, () => isProven)
  await deliver('pi-1', { secrets: [hidden('honest')] })
  await assign('pi-3')
  t.equal(await read(hiddenPath, 'pi-3'), 403)
  isProven = true
  await deliver('pi-2', { secrets: [hidden('honest')] })
  t.equal(await read(hiddenPath, 'pi-3'), 200)
  t.equal((await metadataOf(get, hiddenPath)).annotations?.[learntFromAnnotation], 'pi-1,pi-2')
  await deliver('pi-3', { secrets: [hidden('of last week')] })
  t.equal((await metadataOf(get, hiddenPath)).annotations?.[contestedByAnnotation], 'pi-3')
  t.equal(await read(hiddenPath, 'pi-3'), 403)
})

test('the authorities of the fleet are not taken from a node', async (t) => {
  const { deliver, ask } = await fleet(t)
  const spec = { volumes: [{ name: 'ca', configMap: { name: 'kube-root-ca.crt' } }] }
  const pod = aPod({ name: 'trusting', namespace: 'shop', nodeName: 'pi-1', spec })
  const forged = { ...settings({ 'ca.crt': 'forged' }), metadata: { name: 'kube-root-ca.crt', namespace: 'shop' } }
  await deliver('pi-1', { pods: [{ ...pod, metadata: { ...pod.metadata, uid: 'trusting' } }], configMaps: [forged] })
  t.equal((await ask('GET', '/api/v1/namespaces/shop/configmaps/kube-root-ca.crt')).code, 404)
})

type Got = (path: string) => Promise<Document>

async function metadataOf(get: Got, path: string): Promise<ObjectMeta> {
  return (await get(path))['metadata'] as ObjectMeta
}

function settings(data: { readonly [key: string]: string }): ConfigMap {
  return { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'settings', namespace: 'shop' }, data }
}

function hidden(text: string): Secret {
  const data = { b: Buffer.from(text).toString('base64') }
  return { apiVersion: 'v1', kind: 'Secret', metadata: { name: 'hidden', namespace: 'shop' }, data }
}

/** Nodes whose pods name ConfigMap shop/settings and Secret shop/hidden. */
async function fleet(t: Test, isProven: (object: ConfigMap | Secret) => boolean = () => true) {
  const origin = { id: 'store-2', acceptsCheckpoints: true }
  const { ask, store } = await anApi(t, {
    origin,
    checkpoints: { isOpen: () => true },
    contentProver: { isProven, isProvenRecord: () => true },
  })
  await store.create('namespaces', { apiVersion: 'v1', kind: 'Namespace', metadata: { name: 'shop' } })
  const env = [
    { name: 'A', valueFrom: { configMapKeyRef: { name: 'settings', key: 'a' } } },
    { name: 'B', valueFrom: { secretKeyRef: { name: 'hidden', key: 'b' } } },
  ]
  const podOf = (nodeName: string, name: string): Pod => {
    const pod = aPod({ name, nodeName, namespace: 'shop', containers: [{ name: 'main', image: 'web:1', env }] })
    const { resourceVersion: _, ...metadata } = pod.metadata
    return { ...pod, metadata }
  }
  const deliver = async (node: string, part: object): Promise<unknown> => {
    const body = { apiVersion: 'bramble.dev/v1alpha1', kind: 'NodeCheckpoint', store: origin.id, ...part }
    const sent = { body, as: nodeIdentity(node), serialNumber: '01' }
    const { code, body: answer } = await ask('POST', `/api/v1/nodes/${node}/checkpoint`, sent)
    t.equal(code, 201)
    return answer['message'] ?? ''
  }
  for (const name of ['pi-1', 'pi-2', 'pi-3']) {
    const node = aNode({ name })
    const { resourceVersion: _, ...metadata } = node.metadata
    await store.create('nodes', { ...node, metadata })
    await deliver(name, {
      pods: [{ ...podOf(name, `of-${name}`), metadata: { ...podOf(name, `of-${name}`).metadata, uid: `uid-${name}` } }],
    })
  }
  return {
    ask,
    store,
    deliver,
    get: async (path: string) => (await ask('GET', path)).body,
    read: async (path: string, node: string) => (await ask('GET', path, { as: nodeIdentity(node) })).code,
    assign: (node: string) =>
      store.create('pods', { ...podOf(node, 'assigned'), metadata: { name: 'assigned', namespace: 'shop' } }),
    copies: async () => {
      const { items } = await store.list('secrets', 'kube-system')
      return items.filter(({ metadata }) => metadata.labels?.[checkpointCopyLabel] !== undefined)
    },
  }
}

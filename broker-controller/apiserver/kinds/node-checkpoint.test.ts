import { type Test, test } from 'tap'
import { administrator, nodeIdentity } from '../../../api/identity.ts'
import { shutdownEnding } from '../../../api/node/node-shutdown.ts'
import { mirrorAnnotation, type Pod } from '../../../api/pod.ts'
import { aNode, aPod, type PodOverrides } from '../../../api/testing/builders.ts'
import type { StoreOrigin } from '../../store/store.ts'
import { storeMark } from '../../store/store-mark.ts'
import { anApi } from '../../testing/api-in-memory.ts'

const origin = { id: 'store-2', acceptsCheckpoints: true }
const path = '/api/v1/nodes/pi-1/checkpoint'
const env = [
  { name: 'A', valueFrom: { configMapKeyRef: { name: 'settings', key: 'a' } } },
  { name: 'B', valueFrom: { secretKeyRef: { name: 'hidden', key: 'b' } } },
]
const web = aPod({
  name: 'web',
  uid: 'uid-web',
  nodeName: 'pi-1',
  namespace: 'shop',
  metadata: { ownerReferences: [{ apiVersion: 'apps/v1', kind: 'ReplicaSet', name: 'web', uid: 'gone' }] },
  containers: [{ name: 'main', image: 'web:1', env }],
})

test('a restored store gets the pods of its nodes and what those refer to, unchanged', async (t) => {
  const { deliver, get } = await fleet(t)
  t.match(await deliver({ pods: [web] }), { code: 201 })
  const settings = {
    apiVersion: 'v1',
    kind: 'ConfigMap',
    metadata: { name: 'settings', namespace: 'shop' },
    data: { a: '1' },
  }
  const hidden = {
    apiVersion: 'v1',
    kind: 'Secret',
    metadata: { name: 'hidden', namespace: 'shop' },
    data: { b: 'Mg==' },
  }
  t.match(await deliver({ configMaps: [settings], secrets: [hidden] }), { code: 201 })
  t.match(await deliver({ complete: true }), { code: 201 })
  const learnt = await get('/api/v1/namespaces/shop/pods/web')
  t.match(learnt.body, { metadata: { uid: 'uid-web' }, spec: { nodeName: 'pi-1' } })
  t.equal((learnt.body['metadata'] as { ownerReferences?: unknown }).ownerReferences, undefined)
  t.match((await get('/api/v1/namespaces/shop/configmaps/settings')).body, { data: { a: '1' } })
  t.match((await get('/api/v1/namespaces/shop/secrets/hidden')).body, { data: { b: 'Mg==' } })
  t.match((await get('/api/v1/nodes/pi-1')).body, { metadata: { annotations: { 'bramble.dev/learnt-by': 'store-2' } } })
  t.match(await deliver({ complete: true }), { code: 409, body: { message: /checkpoint was already received/ } })
})

test('an object that exists stays as it is', async (t) => {
  const { deliver, get } = await fleet(t)
  await deliver({ pods: [web] })
  const other = aPod({ name: 'web', uid: 'uid-other', nodeName: 'pi-1', namespace: 'shop' })
  t.match(await deliver({ pods: [other] }), { code: 201 })
  t.match((await get('/api/v1/namespaces/shop/pods/web')).body, { metadata: { uid: 'uid-web' } })
})

test('of two pods with one name the later one is restored', async (t) => {
  const { deliver, get } = await fleet(t)
  const made = (uid: string, creationTimestamp: string) =>
    aPod({ name: 'web', uid, nodeName: 'pi-1', namespace: 'shop', metadata: { creationTimestamp } })
  for (const [uid, time, left] of [
    ['first', '2024-01-01T00:00:00Z', 'first'],
    ['second', '2024-01-02T00:00:00Z', 'second'],
    ['first', '2024-01-01T00:00:00Z', 'second'],
    ['from the future', '2099-01-01T00:00:00Z', 'second'],
  ] as const) {
    t.match(await deliver({ pods: [made(uid, time)] }), { code: 201 })
    t.match((await get('/api/v1/namespaces/shop/pods/web')).body, { metadata: { uid: left } })
  }
})

test('a pod that one node delivered is not replaced by that of another, and an Event reports it', async (t) => {
  const { deliver, get, events } = await fleet(t)
  const made = (uid: string, nodeName: string, creationTimestamp: string) =>
    aPod({ name: 'web', uid, nodeName, namespace: 'shop', metadata: { creationTimestamp } })
  await deliver({ pods: [made('honest', 'pi-2', '2024-01-01T00:00:00Z')] }, 'pi-2')
  const sly = made('sly', 'pi-1', '2024-06-01T00:00:00Z')
  const because = 'Pod shop/web (uid sly) of node pi-1 was not restored: a pod with that name is bound to node pi-2'
  t.match(await deliver({ pods: [sly] }), { code: 201, body: { message: because } })
  t.match((await get('/api/v1/namespaces/shop/pods/web')).body, { metadata: { uid: 'honest' } })
  t.match(await events(), [{ reason: 'PodNotLearnt', message: because, involvedObject: { name: 'pi-1' } }])
})

test('a later pod replaces one from the backup, until the own node of that has delivered it', async (t) => {
  const { deliver, get, store } = await fleet(t, { ...origin, sinceMs: Date.parse('2024-03-01T00:00:00Z') })
  const made = (name: string, uid: string, nodeName: string, creationTimestamp: string) =>
    aPod({ name, uid, nodeName, namespace: 'shop', metadata: { creationTimestamp } })
  const restore = async (pod: Pod) => {
    const { resourceVersion: _, ...metadata } = pod.metadata
    await store.create('pods', { ...pod, metadata })
  }
  const uidOf = async (name: string) => (await get(`/api/v1/namespaces/shop/pods/${name}`)).body['metadata']
  for (const name of ['moved', 'stayed']) await restore(made(name, `old-${name}`, 'pi-2', '2024-01-01T00:00:00Z'))
  await deliver({ pods: [made('stayed', 'old-stayed', 'pi-2', '2024-01-01T00:00:00Z')] }, 'pi-2')
  for (const name of ['moved', 'stayed']) {
    await deliver({ pods: [made(name, `new-${name}`, 'pi-1', '2024-02-01T00:00:00Z')] })
  }
  t.match(await uidOf('moved'), { uid: 'new-moved' })
  t.match(await uidOf('stayed'), { uid: 'old-stayed' })
  // Later than this store is: no node had it from the one before.
  await restore(made('ours', 'made-here', 'pi-2', '2024-03-02T00:00:00Z'))
  t.match(await deliver({ pods: [made('ours', 'sly', 'pi-1', '2024-03-03T00:00:00Z')] }), {
    body: { message: /was not restored/ },
  })
  t.match(await uidOf('ours'), { uid: 'made-here' })
})

test('a pod of a controller that its node no longer has was deleted after the backup', async (t) => {
  for (const hasAllPods of [true, undefined]) {
    const { deliver, store } = await fleet(t, { ...origin, sinceMs: Date.parse('2024-03-01T00:00:00Z') })
    const ownerReferences = [{ apiVersion: 'apps/v1', kind: 'ReplicaSet', name: 'web', uid: 'u', controller: true }]
    const restore = async (name: string, more: PodOverrides = {}) => {
      const creationTimestamp = '2024-01-01T00:00:00Z'
      const pod = aPod({
        name,
        uid: `uid-${name}`,
        nodeName: 'pi-1',
        namespace: 'shop',
        ...more,
        metadata: { creationTimestamp, ownerReferences, ...more.metadata },
      })
      const { resourceVersion: _, ...metadata } = pod.metadata
      await store.create('pods', { ...pod, metadata })
      return pod
    }
    const kept = await restore('kept')
    await restore('replaced')
    await restore('alone', { metadata: { ownerReferences: [] } })
    const labels = { 'statefulset.kubernetes.io/pod-name': 'db-0' }
    await restore('db-0', { metadata: { ownerReferences: [], labels } })
    await restore('elsewhere', { nodeName: 'pi-2' })
    await restore('ended', { status: { phase: 'Succeeded' } })
    await restore('shut-down', { status: { phase: 'Failed', ...shutdownEnding } })
    await restore('static', { metadata: { annotations: { [mirrorAnnotation]: 'hash' } } })
    // By a clock that was ahead, or by this store: it has sent the node nothing yet.
    await restore('dated-later', { metadata: { creationTimestamp: '2024-03-02T00:00:00Z' } })
    await deliver({ pods: [kept] })
    await deliver({ complete: true, ...(hasAllPods && { hasAllPods }) })
    const names = (await store.list('pods')).items.map(({ metadata }) => metadata.name)
    const replaced = ['replaced', 'shut-down', 'db-0', 'dated-later']
    for (const name of replaced) {
      t.equal(names.includes(name), !hasAllPods, hasAllPods ? 'it no longer ran' : 'a lost checkpoint proves nothing')
    }
    t.same(names.filter((name) => !replaced.includes(name)).sort(), ['alone', 'elsewhere', 'ended', 'kept', 'static'])
  }
})

test('a pod that was pending in the backup is bound to the node that delivers it, one that was bound stays', async (t) => {
  const { deliver, get, store, events } = await fleet(t)
  for (const [name, nodeName] of [
    ['waits', ''],
    ['went', 'pi-2'],
  ] as const) {
    const { metadata, spec } = aPod({ name, uid: `uid-${name}`, namespace: 'shop', nodeName })
    const { resourceVersion: _, ...own } = metadata
    await store.create('pods', { apiVersion: 'v1', kind: 'Pod', metadata: own, spec })
    await deliver({ pods: [aPod({ name, uid: `uid-${name}`, namespace: 'shop', nodeName: 'pi-1' })] })
  }
  t.match((await get('/api/v1/namespaces/shop/pods/waits')).body, {
    metadata: { uid: 'uid-waits' },
    spec: { nodeName: 'pi-1' },
    status: { conditions: [{ type: 'PodScheduled', status: 'True' }] },
  })
  t.match((await get('/api/v1/namespaces/shop/pods/went')).body, { spec: { nodeName: 'pi-2' } })
  t.match(await events(), [{ message: /shop\/went .* was not restored: a pod with that name is bound to node pi-2/ }])
})

test('an incomplete or invalid object in a checkpoint leaves what exists unchanged', async (t) => {
  const { deliver, get } = await fleet(t)
  const made = (creationTimestamp: string): Pod => ({ ...web, metadata: { ...web.metadata, creationTimestamp } })
  t.match(await deliver({ pods: [made('2024-01-01T00:00:00Z')] }), { code: 201 })
  // A node does not keep the annotations of a Secret.
  const account = {
    apiVersion: 'v1',
    kind: 'Secret',
    metadata: { name: 'hidden', namespace: 'shop' },
    type: 'kubernetes.io/service-account-token',
  }
  t.match(await deliver({ secrets: [account] }), { code: 201 })
  t.match((await get('/api/v1/namespaces/shop/secrets/hidden')).body, { type: account.type })
  const later = made('2024-01-02T00:00:00Z')
  const wrong = { ...later, metadata: { ...later.metadata, uid: 'later' }, spec: { ...later.spec, containers: [] } }
  t.match(await deliver({ pods: [wrong] }), { code: 422 })
  t.match((await get('/api/v1/namespaces/shop/pods/web')).body, { metadata: { uid: 'uid-web' } })
})

test('a node cannot deliver what is not its own', async (t) => {
  const { deliver, get, ask } = await fleet(t)
  t.match(await deliver({ pods: [aPod({ name: 'far', uid: 'uid-far', nodeName: 'pi-2' })] }), { code: 400 })
  const token = {
    apiVersion: 'v1',
    kind: 'Secret',
    metadata: { name: 'bootstrap-token-abcdef', namespace: 'kube-system' },
  }
  const unnamed = { apiVersion: 'v1', kind: 'Secret', metadata: { name: 'unnamed', namespace: 'default' } }
  const naming = aPod({
    name: 'sly',
    uid: 'uid-sly',
    nodeName: 'pi-1',
    namespace: 'kube-system',
    containers: [{ name: 'main', image: 'a:1', envFrom: [{ secretRef: { name: 'bootstrap-token-abcdef' } }] }],
  })
  t.match(await deliver({ pods: [naming] }), {
    code: 201,
    body: { message: /pods in this namespace are not accepted from checkpoints/ },
  })
  t.match(await get('/api/v1/namespaces/kube-system/pods/sly'), { code: 404 })
  t.match(await deliver({ secrets: [token, unnamed] }), { code: 201 })
  t.match(await get('/api/v1/namespaces/kube-system/secrets/bootstrap-token-abcdef'), { code: 404 })
  t.match(await get('/api/v1/namespaces/default/secrets/unnamed'), { code: 404 })
  const body = { apiVersion: 'bramble.dev/v1alpha1', kind: 'NodeCheckpoint', store: 'store-2', complete: true }
  t.match(await ask('POST', path, { body, as: nodeIdentity('pi-2') }), { code: 403 })
  const marked = { metadata: { annotations: { 'bramble.dev/learnt-by': 'store-2' } } }
  const patch = { body: marked, type: 'application/merge-patch+json', as: nodeIdentity('pi-1') }
  t.match(await ask('PATCH', '/api/v1/nodes/pi-1', patch), {
    code: 403,
    body: { message: /not allowed to modify annotations: bramble.dev\/learnt-by/ },
  })
})

test('an invalid pod is rejected with its fields, and is not restored', async (t) => {
  const { deliver, get } = await fleet(t)
  const odd = aPod({
    name: 'odd',
    uid: 'uid-odd',
    nodeName: 'pi-1',
    containers: [{ name: 'Not A Name', image: 'a:1' }],
  })
  t.match(await deliver({ pods: [odd] }), { code: 422, body: { message: /spec\.containers\[0\]\.name/ } })
  t.match(await get('/api/v1/namespaces/default/pods/odd'), { code: 404 })
})

test('a store that was not restored accepts no checkpoint, nor one that another store requested', async (t) => {
  const normal = await fleet(t, { id: 'store-1', acceptsCheckpoints: false })
  t.match(await normal.deliver({ pods: [web] }), {
    code: 409,
    body: { message: /checkpoints are accepted only after a restore/ },
  })
  const { ask } = await fleet(t)
  const body = { apiVersion: 'bramble.dev/v1alpha1', kind: 'NodeCheckpoint', store: 'store-1', pods: [web] }
  const answer = await ask('POST', path, { body, as: nodeIdentity('pi-1') })
  t.match(answer, { code: 409, body: { message: /requested by another store/ } })
})

const aSecret = (text: string, name = 'hidden') => ({
  apiVersion: 'v1',
  kind: 'Secret',
  metadata: { name, namespace: 'shop' },
  data: { b: Buffer.from(text).toString('base64') },
})
const secretPath = '/api/v1/namespaces/shop/secrets/hidden'

/** A pod that names Secret shop/hidden. */
const naming = (nodeName: string, name = `web-${nodeName}`): Pod =>
  aPod({ name, uid: `uid-${name}`, nodeName, namespace: 'shop', containers: [{ name: 'main', image: 'web:1', env }] })

test('a node that joined after the store began delivers nothing, and waits for nothing', async (t) => {
  const { deliver, get } = await fleet(t)
  const serialOfStore = `${Buffer.from(storeMark('store-2')).toString('hex')}0102030405`.toUpperCase()
  const refused = await deliver({ pods: [web] }, 'pi-1', serialOfStore)
  t.match(refused, { code: 409, body: { message: /only from nodes that joined before the restore/ } })
  t.match(await get('/api/v1/namespaces/shop/pods/web'), { code: 404 })
  t.match((await get('/api/v1/nodes/pi-1')).body, { metadata: { annotations: { 'bramble.dev/learnt-by': 'store-2' } } })
  const serialOfOther = `${Buffer.from(storeMark('store-1')).toString('hex')}0102030405`
  t.match(await deliver({ pods: [web] }, 'pi-2', serialOfOther), { code: 400 }, 'of the store before: it may')
})

test('once the window is closed no checkpoint is accepted', async (t) => {
  const { deliver, get, close } = await fleet(t)
  close()
  t.match(await deliver({ pods: [web] }), {
    code: 409,
    body: { message: 'node "pi-1": checkpoints are accepted only after a restore' },
  })
  t.match(await get('/api/v1/namespaces/shop/pods/web'), { code: 404 })
})

test('invented pods give no access to a Secret that the node did not deliver', async (t) => {
  const { deliver, read, store, ask } = await fleet(t)
  await ask('POST', '/api/v1/namespaces', { body: { apiVersion: 'v1', kind: 'Namespace', metadata: { name: 'shop' } } })
  t.match(await ask('POST', '/api/v1/namespaces/shop/secrets', { body: aSecret('sesame') }), { code: 201 })
  t.match(await deliver({ pods: [naming('pi-1')] }), { code: 201 })
  t.match(await read(secretPath), { code: 403 })
  t.match(await read('/api/v1/namespaces/shop/secrets?fieldSelector=metadata.name%3Dhidden'), { code: 403 })
  t.match(await read('/api/v1/namespaces/shop/secrets?watch=1&fieldSelector=metadata.name%3Dhidden'), { code: 403 })

  const clear = { metadata: { annotations: { 'bramble.dev/learnt-from': null } } }
  const patch = { body: clear, type: 'application/merge-patch+json', as: nodeIdentity('pi-1') }
  const denied = await ask('PATCH', '/api/v1/namespaces/shop/pods/web-pi-1/status', patch)
  t.match(denied, { code: 403 }, 'the node cannot take the mark off')
  await ask('PATCH', '/api/v1/namespaces/shop/pods/web-pi-1', { ...patch, as: administrator })
  t.match(await read(secretPath), { code: 200 }, 'an operator can')

  const bound = naming('pi-2', 'placed')
  await store.create('pods', { ...bound, metadata: { name: 'placed', namespace: 'shop' } })
  t.match(await read(secretPath, 'pi-2'), { code: 200 }, 'and for a pod that was placed here nothing is needed')
})

test('a node reads back what it delivered, and not what was written there later', async (t) => {
  const { deliver, read, ask } = await fleet(t)
  await deliver({ pods: [naming('pi-1')], secrets: [aSecret('sesame')] })
  t.match(await read(secretPath), { code: 200, body: { data: { b: Buffer.from('sesame').toString('base64') } } })
  const body = { data: { b: Buffer.from('the real one').toString('base64') } }
  await ask('PATCH', secretPath, { body, type: 'application/merge-patch+json' })
  t.match(await read(secretPath), { code: 403 })
})

test('of a Secret that two nodes deliver differently neither gets the content of the other, until an operator decides', async (t) => {
  const { deliver, read, get, events, store } = await fleet(t)
  await deliver({ pods: [naming('pi-1')], secrets: [aSecret('forged')] })
  const answered = await deliver({ pods: [naming('pi-2')], secrets: [aSecret('honest')] }, 'pi-2')
  t.match(answered, { code: 201, body: { message: /Secret shop\/hidden of node pi-2 differs from what node pi-1/ } })
  t.match(await read(secretPath, 'pi-2'), { code: 403 }, 'the honest node does not get the forged one')
  const bound = naming('pi-2', 'placed')
  await store.create('pods', { ...bound, metadata: { name: 'placed', namespace: 'shop' } })
  t.match(await read(secretPath, 'pi-2'), { code: 403 }, 'not for a pod that was placed there either')
  t.same(
    (await events()).map(({ reason, type, involvedObject }) => [reason, type, involvedObject.name]),
    [
      ['CheckpointContradiction', 'Warning', 'pi-1'],
      ['CheckpointContradiction', 'Warning', 'pi-2'],
    ],
  )
  t.match((await get(secretPath)).body, { metadata: { annotations: { 'bramble.dev/contested-by': 'pi-2' } } })
  const copies = (await store.list('secrets', 'kube-system')).items
  t.equal(copies.length, 1)
  const kept = Buffer.from(copies[0]?.data?.['object.json'] ?? '', 'base64').toString()
  t.match(JSON.parse(kept), {
    kind: 'Secret',
    metadata: { name: 'hidden', namespace: 'shop' },
    data: aSecret('honest').data,
  })
})

test('content that differs from an existing Secret is kept as a copy and not served', async (t) => {
  const { deliver, read, get, events, ask } = await fleet(t)
  await ask('POST', '/api/v1/namespaces', { body: { apiVersion: 'v1', kind: 'Namespace', metadata: { name: 'shop' } } })
  await ask('POST', '/api/v1/namespaces/shop/secrets', { body: aSecret('restored') })
  await deliver({ pods: [naming('pi-1')], secrets: [aSecret('made up')] })
  t.match(await read(secretPath), { code: 403 })
  t.match((await get(secretPath)).body, { data: aSecret('restored').data })
  t.match(await events(), [{ reason: 'CheckpointContradiction', message: /differs from the existing object/ }])
  await deliver({ pods: [naming('pi-2')], secrets: [aSecret('restored')] }, 'pi-2')
  t.match(await read(secretPath, 'pi-2'), { code: 200 }, 'with its content a node shows that it had it')
})

test('a node delivers a bounded number of pods', async (t) => {
  const { deliver, store, events } = await fleet(t)
  const pods = Array.from({ length: 501 }, (_, index) =>
    aPod({ name: `p-${index}`, uid: `uid-${index}`, nodeName: 'pi-1', namespace: 'shop' }),
  )
  t.match(await deliver({ pods }), {
    code: 201,
    body: { message: /p-500 .*the limit of 500 pods from its checkpoint is reached/ },
  })
  t.equal((await store.list('pods')).items.length, 500)
  t.notOk((await deliver({ pods: pods.slice(0, 500) })).body['message'], 'the same ones may be sent again')
  const system = Array.from({ length: 100 }, (_, index) =>
    aPod({ name: `s-${index}`, uid: `uid-s-${index}`, nodeName: 'pi-2', namespace: 'kube-system' }),
  )
  await deliver({ pods: system }, 'pi-2')
  const reported = (await events()).filter(({ involvedObject }) => involvedObject.name === 'pi-2')
  t.equal(reported.length, 9, 'and is reported a bounded number of times')
  t.match(reported.map(({ message }) => message).join(), /92 more pods of node pi-2/)
})

test('a pod keeps its age and its deletion; one that had finished keeps its end, one that ran begins again', async (t) => {
  const { deliver, store } = await fleet(t)
  const times = { creationTimestamp: '2024-01-01T00:00:00Z', deletionTimestamp: '2024-02-01T00:00:30Z' }
  const metadata = { ...times, deletionGracePeriodSeconds: 30 }
  const leaving = aPod({
    name: 'leaving',
    uid: 'uid-1',
    nodeName: 'pi-1',
    namespace: 'shop',
    metadata,
    phase: 'Running',
  })
  const ended = aPod({ name: 'ended', uid: 'uid-2', nodeName: 'pi-1', namespace: 'shop', phase: 'Succeeded' })
  const { body } = await deliver({ pods: [leaving, ended] })
  t.notOk(body['message'], 'all of them were restored')
  t.match(await store.get('pods', { namespace: 'shop', name: 'leaving' }), { metadata, status: { phase: 'Pending' } })
  const present = await store.get('pods', { namespace: 'shop', name: 'ended' })
  t.equal(present?.status?.phase, 'Succeeded')
  t.notOk(present?.metadata.deletionTimestamp ?? present?.metadata.deletionGracePeriodSeconds)
})

test('the namespace of a restored pod exists afterwards, as the API would create it', async (t) => {
  const { deliver, store } = await fleet(t)
  await deliver({ pods: [web] })
  t.match(await store.get('namespaces', { namespace: '', name: 'shop' }), {
    metadata: { labels: { 'kubernetes.io/metadata.name': 'shop' } },
    spec: { finalizers: ['kubernetes'] },
    status: { phase: 'Active' },
  })
  const { metadata } = (await store.get('namespaces', { namespace: '', name: 'shop' })) ?? {}
  await deliver({ pods: [naming('pi-1')] })
  t.equal((await store.get('namespaces', { namespace: '', name: 'shop' }))?.metadata.uid, metadata?.uid, 'and stays')
})

test('a mirror pod is left to its node; a pod without a uid does not belong to a node', async (t) => {
  const { deliver, get } = await fleet(t)
  const annotations = { 'kubernetes.io/config.mirror': 'hash' }
  const mirror = aPod({ name: 'static', uid: 'uid-static', nodeName: 'pi-1', namespace: 'shop', annotations })
  t.notOk((await deliver({ pods: [mirror] })).body['message'])
  t.match(await get('/api/v1/namespaces/shop/pods/static'), { code: 404 })
  const { uid: _, ...metadata } = web.metadata
  t.match(await deliver({ pods: [{ ...web, metadata }] }), {
    code: 400,
    body: { message: 'pod shop/web was not bound to node "pi-1"' },
  })
})

test('in the namespaces of the system a checkpoint confirms the pods of the backup, and no other', async (t) => {
  const { deliver, store } = await fleet(t)
  const made = (uid: string, nodeName: string) => aPod({ name: 'dns', uid, nodeName, namespace: 'kube-system' })
  const { resourceVersion: _, ...metadata } = made('uid-dns', 'pi-1').metadata
  await store.create('pods', { ...made('uid-dns', 'pi-1'), metadata })
  const message = /pods in this namespace are not accepted from checkpoints/
  t.match(await deliver({ pods: [made('uid-other', 'pi-1')] }), { body: { message } }, 'another pod of the name')
  t.match(await deliver({ pods: [made('uid-dns', 'pi-2')] }, 'pi-2'), { body: { message } }, 'the pod of another node')
  t.notOk((await deliver({ pods: [made('uid-dns', 'pi-1')] })).body['message'])
  t.match(await store.get('pods', { namespace: 'kube-system', name: 'dns' }), {
    metadata: { annotations: { 'bramble.dev/learnt-by': 'store-2' } },
  })
})

test('only pods that came with checkpoints count for the limit', async (t) => {
  const { deliver, store } = await fleet(t)
  for (let index = 0; index < 500; index++) {
    const { metadata, ...pod } = aPod({ name: `own-${index}`, nodeName: 'pi-1', namespace: 'shop' })
    const { resourceVersion: _, ...own } = metadata
    await store.create('pods', { ...pod, metadata: own })
  }
  t.notOk((await deliver({ pods: [web] })).body['message'])
  const more = Array.from({ length: 500 }, (_, index) =>
    aPod({ name: `p-${index}`, uid: `uid-${index}`, nodeName: 'pi-1', namespace: 'shop' }),
  )
  t.match(await deliver({ pods: more }), { body: { message: /p-499 .*the limit of 500 pods/ } }, 'over two deliveries')
})

test('just as many refusals as fit are reported without a summary', async (t) => {
  const { deliver, events } = await fleet(t)
  const system = Array.from({ length: 8 }, (_, index) =>
    aPod({ name: `s-${index}`, uid: `uid-s-${index}`, nodeName: 'pi-1', namespace: 'kube-system' }),
  )
  await deliver({ pods: system })
  t.equal((await events()).length, 8)
})

test('a Node that joins while checkpoints are accepted waits for none; an operator creates one that does', async (t) => {
  const { ask, get, close } = await fleet(t)
  const serialOfStore = `${Buffer.from(storeMark('store-2')).toString('hex')}0102030405`
  const learntBy = async (name: string, more: Parameters<typeof ask>[2]) => {
    const body = { apiVersion: 'v1', kind: 'Node', metadata: { name } }
    t.match(await ask('POST', '/api/v1/nodes', { ...more, body }), { code: 201 }, name)
    const { annotations } = (await get(`/api/v1/nodes/${name}`)).body['metadata'] as { annotations?: object }
    return annotations && 'bramble.dev/learnt-by' in annotations
  }
  t.ok(await learntBy('new', { as: nodeIdentity('new'), serialNumber: serialOfStore }))
  t.notOk(await learntBy('old', { as: nodeIdentity('old'), serialNumber: '01' }), 'it has a checkpoint')
  t.notOk(await learntBy('manual', { as: administrator, serialNumber: serialOfStore }))
  close()
  t.notOk(
    await learntBy('late', { as: nodeIdentity('late'), serialNumber: serialOfStore }),
    'no node is awaited any more',
  )
})

async function fleet(t: Test, ours: StoreOrigin = origin) {
  let isOpen = ours.acceptsCheckpoints
  const { ask, store } = await anApi(t, { origin: ours, checkpoints: { isOpen: () => isOpen } })
  for (const name of ['pi-1', 'pi-2']) {
    const node = aNode({ name })
    const { resourceVersion: _, ...metadata } = node.metadata
    await store.create('nodes', { ...node, metadata })
  }
  return {
    ask,
    store,
    get: (target: string) => ask('GET', target),
    events: async () => (await store.list('events')).items,
    close: () => {
      isOpen = false
    },
    /** `serialNumber`: of the node's certificate; without the store's mark it is older than the store. */
    deliver: (part: object, node = 'pi-1', serialNumber = '01') => {
      const body = { apiVersion: 'bramble.dev/v1alpha1', kind: 'NodeCheckpoint', store: ours.id, ...part }
      return ask('POST', `/api/v1/nodes/${node}/checkpoint`, { body, as: nodeIdentity(node), serialNumber })
    },
    read: (target: string, node = 'pi-1') => ask('GET', target, { as: nodeIdentity(node) }),
  }
}

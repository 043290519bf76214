import { test } from 'tap'
import { anApi, type Document, patchTypes } from '../../testing/api-in-memory.ts'
import { configMapsPath, podsPath, sentMap, sentPod } from '../../testing/sent-objects.ts'

test('a running pod gets its grace period, a pending one is deleted at once', async (t) => {
  const { ask, store } = await anApi(t)
  await ask('POST', podsPath, { body: sentPod('waiting') })
  t.match(await ask('DELETE', `${podsPath}/waiting`), { code: 200, body: { kind: 'Pod' } })
  t.match(await ask('GET', `${podsPath}/waiting`), { code: 404 })
  await ask('POST', podsPath, { body: sentPod('running', { nodeName: 'pi-01', terminationGracePeriodSeconds: 20 }) })
  const marked = await ask('DELETE', `${podsPath}/running`)
  t.match(marked, {
    code: 200,
    body: { metadata: { deletionTimestamp: '2026-01-01T00:00:20Z', deletionGracePeriodSeconds: 20 } },
  })
  const version = await store.version()
  await ask('DELETE', `${podsPath}/running`)
  t.equal(await store.version(), version, 'asking twice is asking once')
  await ask('DELETE', `${podsPath}/running`, { body: { gracePeriodSeconds: 0 } })
  t.match(await ask('GET', `${podsPath}/running`), { code: 404 })
})

test('a deletion can have a precondition on the uid', async (t) => {
  const { ask } = await anApi(t)
  await ask('POST', configMapsPath, { body: sentMap() })
  const other = await ask('DELETE', `${configMapsPath}/settings`, { body: { preconditions: { uid: 'another' } } })
  t.match(other, { code: 409, body: { message: /Precondition failed: UID in precondition: another/ } })
})

test('finalizers keep an object until the last of them is taken away', async (t) => {
  const { ask } = await anApi(t)
  await ask('POST', configMapsPath, { body: sentMap({}, { finalizers: ['example.com/keep'] }) })
  const path = `${configMapsPath}/settings`
  t.match(await ask('DELETE', path), { body: { kind: 'ConfigMap', metadata: { deletionTimestamp: /Z$/ } } })
  t.match(await ask('GET', path), { code: 200 })
  await ask('PATCH', path, { type: patchTypes.merge, body: { metadata: { finalizers: null } } })
  t.match(await ask('GET', path), { code: 404 })
})

test('the certificates of a deleted node are revoked when its last finalizer is removed', async (t) => {
  const { ask } = await anApi(t)
  const body = { apiVersion: 'v1', kind: 'Node', metadata: { name: 'pi-9', finalizers: ['example.com/hold'] } }
  await ask('POST', '/api/v1/nodes', { body })
  await ask('DELETE', '/api/v1/nodes/pi-9')
  const list = '/api/v1/namespaces/kube-system/configmaps/bramble-revoked-certificates'
  t.match(await ask('GET', list), { code: 404 })
  await ask('PATCH', '/api/v1/nodes/pi-9', { body: { metadata: { finalizers: [] } }, type: patchTypes.merge })
  t.match(await ask('GET', '/api/v1/nodes/pi-9'), { code: 404 })
  t.match(await ask('GET', list), { body: { data: { revoked: / system:node:pi-9 NodeDeleted/ } } })
})

test('a finalizer holds a pod beyond its grace, and its node beyond the finalizer', async (t) => {
  const { ask } = await anApi(t)
  const path = (name: string) => `${podsPath}/${name}`
  const drop = { type: patchTypes.merge, body: { metadata: { finalizers: null } } }
  const held = (name: string) =>
    ask('POST', podsPath, { body: sentPod(name, { nodeName: 'pi-01' }, { finalizers: ['example.com/hold'] }) })
  await Promise.all(['a', 'b', 'c'].map(held))

  t.match(await ask('DELETE', path('a')), { code: 200, body: { metadata: { deletionGracePeriodSeconds: 30 } } })
  await ask('PATCH', path('a'), drop)
  t.match(await ask('GET', path('a')), { code: 200 }, 'its node has not reported that its containers stopped')
  const again = { body: { gracePeriodSeconds: 60 } }
  t.match(await ask('DELETE', path('a'), again), { body: { metadata: { deletionGracePeriodSeconds: 30 } } })
  const sooner = { body: { gracePeriodSeconds: 5, propagationPolicy: 'Background' } }
  t.match(await ask('DELETE', path('a'), sooner), { body: { metadata: { deletionGracePeriodSeconds: 5 } } })
  t.match(await ask('DELETE', `${path('a')}?gracePeriodSeconds=0`), { code: 200 })
  t.match(await ask('GET', path('a')), { code: 404 })

  const force = { body: { gracePeriodSeconds: 0 } }
  t.match(await ask('DELETE', path('b'), force), { body: { metadata: { deletionGracePeriodSeconds: 0 } } })
  const more = { type: patchTypes.merge, body: { metadata: { finalizers: ['example.com/hold', 'example.com/more'] } } }
  t.match(await ask('PATCH', path('b'), more), { code: 422 }, 'nothing new can hold what is leaving')
  t.match(await ask('PATCH', path('b'), drop), { code: 200 })
  t.match(await ask('GET', path('b')), { code: 404 })

  const both = { body: { propagationPolicy: 'Orphan', orphanDependents: true } }
  const message =
    'DeleteOptions.meta.k8s.io "" is invalid: propagationPolicy: Invalid value: "Orphan": ' +
    'orphanDependents and deletionPropagation cannot be both set'
  t.match(await ask('DELETE', path('c'), both), { code: 422, body: { message } })
  t.match(await ask('DELETE', path('c'), { body: { propagationPolicy: 'Sideways' } }), { code: 422 })
  t.match(await ask('DELETE', path('c'), { body: { dryRun: ['All'] } }), { code: 200 })
  t.notOk(((await ask('GET', path('c'))).body['metadata'] as Document)['deletionTimestamp'], 'it was a rehearsal')
})

test('deletecollection deletes by selector', async (t) => {
  const { ask } = await anApi(t)
  for (const [name, app] of [
    ['a', 'web'],
    ['b', 'web'],
    ['c', 'db'],
  ] as const) {
    await ask('POST', configMapsPath, { body: sentMap({}, { name, labels: { app } }) })
  }
  const { body } = await ask('DELETE', `${configMapsPath}?labelSelector=app%3Dweb`)
  t.match(body, { kind: 'ConfigMapList', items: { length: 2 } })
  t.match(await ask('GET', configMapsPath), { body: { items: [{ metadata: { name: 'c' } }] } })
})

test('five thousand events are deleted in a few writes of the store, not one by one', async (t) => {
  const { ask, store } = await anApi(t)
  for (let number = 0; number < 5000; number++) {
    const metadata = { name: `event-${number}`, namespace: 'default' }
    await store.create('events', { apiVersion: 'v1', kind: 'Event', metadata, involvedObject: {} })
  }
  let writes = 0
  let under = 0
  const { delete: remove } = store
  store.delete = async (...args) => {
    // What is asked for while nothing else is waited for is written together, as the store on disk does it.
    if (under === 0) writes += 1
    under += 1
    await new Promise((resolve) => setImmediate(resolve))
    under -= 1
    return remove(...args)
  }
  t.match(await ask('DELETE', '/api/v1/namespaces/default/events'), { code: 200, body: { kind: 'EventList' } })
  t.equal((await store.list('events')).items.length, 0)
  t.ok(writes <= 10, `${writes} writes`)
})

test('many nodes are deleted together, and each is written into the list of revocations', async (t) => {
  const { ask } = await anApi(t)
  for (let number = 0; number < 20; number++) {
    await ask('POST', '/api/v1/nodes', { body: { apiVersion: 'v1', kind: 'Node', metadata: { name: `pi-${number}` } } })
  }
  t.match(await ask('DELETE', '/api/v1/nodes'), { code: 200 })
  const list = await ask('GET', '/api/v1/namespaces/kube-system/configmaps/bramble-revoked-certificates')
  t.equal(JSON.stringify(list.body).match(/system:node:pi-\d+ NodeDeleted/g)?.length, 20)
})

test('a deletion answers with the object for the kinds whose clients read it, else with a Status', async (t) => {
  const { ask } = await anApi(t)
  const made = async (path: string, body: Document) => {
    const { name } = body['metadata'] as { name: string }
    t.equal((await ask('POST', path, { body })).code, 201, name)
    return ask('DELETE', `${path}/${name}`)
  }
  const object = (apiVersion: string, kind: string, more: Document = {}) => {
    return { apiVersion, kind, metadata: { name: 'one' }, ...more }
  }
  const core = '/api/v1/namespaces/default'
  const service = object('v1', 'Service', { spec: { ports: [{ port: 80 }] } })
  t.match(await made(`${core}/services`, service), { code: 200, body: { kind: 'Service', spec: { clusterIP: /./ } } })
  const quota = object('v1', 'ResourceQuota', { spec: { hard: { pods: '1' } } })
  t.match(await made(`${core}/resourcequotas`, quota), { body: { kind: 'ResourceQuota' } })
  t.match(await made(`${core}/serviceaccounts`, object('v1', 'ServiceAccount')), { body: { kind: 'ServiceAccount' } })
  const storage = '/apis/storage.k8s.io/v1'
  const driver = object('storage.k8s.io/v1', 'CSIDriver', { spec: {} })
  t.match(await made(`${storage}/csidrivers`, driver), { body: { kind: 'CSIDriver' } })
  const aClass = object('storage.k8s.io/v1', 'StorageClass', { provisioner: 'example.com/disk' })
  t.match(await made(`${storage}/storageclasses`, aClass), { body: { kind: 'StorageClass' } })
  t.match(await made(configMapsPath, sentMap()), { body: { kind: 'Status', details: { kind: 'configmaps' } } })
})

test('an Event is deleted at once with every policy: the garbage collector reads none', async (t) => {
  const { ask } = await anApi(t)
  const path = '/api/v1/namespaces/default/events'
  for (const body of [
    { propagationPolicy: 'Orphan' },
    { propagationPolicy: 'Foreground' },
    { orphanDependents: true },
  ]) {
    const metadata = { name: 'started', namespace: 'default' }
    await ask('POST', path, { body: { apiVersion: 'v1', kind: 'Event', metadata, involvedObject: {} } })
    t.match(await ask('DELETE', `${path}/started`, { body }), { code: 200, body: { kind: 'Status' } })
    t.match(await ask('GET', `${path}/started`), { code: 404 })
  }
})

test('a deletion without a body has the preconditions of its query', async (t) => {
  const { ask } = await anApi(t)
  const { body } = await ask('POST', configMapsPath, { body: sentMap() })
  const { uid, resourceVersion } = body['metadata'] as { uid: string; resourceVersion: string }
  const path = `${configMapsPath}/settings`
  t.match(await ask('DELETE', `${path}?uid=another`), { code: 409, body: { message: /UID in precondition: another/ } })
  const older = await ask('DELETE', `${path}?resourceVersion=1`)
  t.match(older, { code: 409, body: { message: /ResourceVersion in precondition: 1/ } })
  t.match(await ask('DELETE', `${path}?uid=${uid}&resourceVersion=${resourceVersion}`), { code: 200 })
})

test('a deletion with orphanDependents false that waits is answered with 202', async (t) => {
  const { ask } = await anApi(t)
  await ask('POST', configMapsPath, { body: sentMap({}, { finalizers: ['example.com/keep'] }) })
  const path = `${configMapsPath}/settings`
  t.match(await ask('DELETE', path, { body: { orphanDependents: false } }), { code: 202, body: { kind: 'ConfigMap' } })
  t.match(await ask('DELETE', path, { body: { propagationPolicy: 'Background' } }), { code: 200 })
})

test('deletecollection deletes at most its limit, and refuses the options that a list refuses', async (t) => {
  const { ask } = await anApi(t)
  for (const name of ['a', 'b', 'c']) await ask('POST', configMapsPath, { body: sentMap({}, { name }) })
  t.match(await ask('DELETE', `${configMapsPath}?resourceVersionMatch=Exact`), { code: 422 })
  t.match(await ask('DELETE', `${configMapsPath}?limit=none`), { code: 400 })
  const { body } = await ask('DELETE', `${configMapsPath}?limit=2`)
  t.match(body, { items: [{ metadata: { name: 'a' } }, { metadata: { name: 'b' } }], metadata: { continue: /./ } })
  t.match(await ask('GET', configMapsPath), { body: { items: { length: 1 } } })
})

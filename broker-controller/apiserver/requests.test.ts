import { test } from 'tap'
import { type Identity, nodeIdentity } from '../../api/identity.ts'
import { anApi, type Document, patchTypes } from '../testing/api-in-memory.ts'

const configMaps = '/api/v1/namespaces/default/configmaps'
const podsPath = '/api/v1/namespaces/default/pods'
const aMap = (more: Document = {}, metadata: Document = {}) => ({
  apiVersion: 'v1',
  kind: 'ConfigMap',
  metadata: { name: 'settings', ...metadata },
  ...more,
})
const aPod = (name: string, spec: Document = {}, metadata: Document = {}) => ({
  apiVersion: 'v1',
  kind: 'Pod',
  metadata: { name, ...metadata },
  spec: { containers: [{ name: 'main', image: 'busybox' }], ...spec },
})
const aNode = (name: string) => ({ apiVersion: 'v1', kind: 'Node', metadata: { name } })

test('an object is created, read, listed and deleted', async (t) => {
  const { ask } = await anApi(t)
  const created = await ask('POST', configMaps, { body: aMap({ data: { a: '1' } }) })
  t.match(created, { code: 201, body: { kind: 'ConfigMap', metadata: { namespace: 'default', uid: /./ } } })
  t.match(await ask('GET', `${configMaps}/settings`), { code: 200, body: { data: { a: '1' } } })
  t.match(await ask('GET', configMaps), {
    body: { kind: 'ConfigMapList', apiVersion: 'v1', metadata: { resourceVersion: /^\d+$/ }, items: [{}] },
  })
  const gone = await ask('DELETE', `${configMaps}/settings`, { body: { kind: 'DeleteOptions', apiVersion: 'v1' } })
  t.match(gone, { code: 200, body: { status: 'Success', details: { name: 'settings', kind: 'configmaps', uid: /./ } } })
  t.match(await ask('GET', `${configMaps}/settings`), {
    code: 404,
    body: { kind: 'Status', reason: 'NotFound', message: 'configmaps "settings" not found' },
  })
})

test('a list of revoked certificates that cannot be understood is refused', async (t) => {
  const { ask } = await anApi(t)
  const path = '/api/v1/namespaces/kube-system/configmaps'
  const list = (revoked: string) => ({ body: aMap({ data: { revoked } }, { name: 'bramble-revoked-certificates' }) })
  t.match(await ask('POST', path, list('yesterday system:node:pi-3')), {
    code: 422,
    body: { message: /data\[revoked\].*not \\?"TIME USER REASON/ },
  })
  t.match(await ask('POST', path, list('2026-01-01T00:00:00Z system:node:pi-3 Stolen')), { code: 201 })
})

test('a body may be YAML', async (t) => {
  const { ask } = await anApi(t)
  const body = 'apiVersion: v1\nkind: ConfigMap\nmetadata: {name: settings}\ndata: {a: "1"}\n'
  t.match(await ask('POST', configMaps, { body, type: 'application/yaml' }), { code: 201, body: { data: { a: '1' } } })
})

test('what cannot be understood is refused with the reason', async (t) => {
  const { ask } = await anApi(t)
  const post = (body: unknown, type?: string) => ask('POST', configMaps, { body, ...(type !== undefined && { type }) })
  t.match(await post('{'), { code: 400, body: { reason: 'BadRequest' } })
  t.match(await post({ metadata: { name: 'a' } }), { code: 400, body: { message: /Object 'Kind' is missing/ } })
  t.match(await post({ ...aMap(), kind: 'Secret' }), {
    code: 400,
    body: { message: /cannot be handled as a ConfigMap/ },
  })
  t.match(await post(aMap({}, { namespace: 'other' })), {
    code: 400,
    body: { message: /does not match the namespace/ },
  })
  t.match(await post(aMap(), 'application/vnd.kubernetes.protobuf'), { code: 415 })
  t.match(await post(aMap({ data: { a: 1 } })), {
    code: 422,
    body: { reason: 'Invalid', details: { name: 'settings', kind: 'ConfigMap', causes: [{ field: /data/ }] } },
  })
  t.match(await ask('POST', podsPath, { body: aPod('web', { containers: [] }) }), {
    code: 422,
    body: { details: { kind: 'Pod', causes: [{ field: 'spec.containers' }] } },
  })
})

test('unknown fields are refused, warned of, or dropped, as the client wishes', async (t) => {
  const { ask } = await anApi(t)
  const body = aMap({ bogus: 1 })
  t.match(await ask('POST', `${configMaps}?fieldValidation=Strict`, { body }), {
    code: 400,
    body: {
      message:
        'ConfigMap in version "v1" cannot be handled as a ConfigMap: strict decoding error: unknown field "bogus"',
    },
  })
  const ignored = await ask('POST', `${configMaps}?fieldValidation=Ignore&dryRun=All`, { body })
  t.match(ignored, { code: 201, warnings: [], body: { bogus: undefined } })
  t.match(await ask('POST', configMaps, { body }), { code: 201, warnings: ['unknown field "bogus"'] })
})

test('a name can be asked for instead of chosen', async (t) => {
  const { ask } = await anApi(t)
  const { body } = await ask('POST', configMaps, { body: aMap({}, { name: undefined, generateName: 'job-' }) })
  t.match(body, { metadata: { name: /^job-[bcdfghjklmnpqrstvwxz2456789]{5}$/, generateName: 'job-' } })
})

test('nothing is created where there is no namespace, nor in one that is going', async (t) => {
  const { ask } = await anApi(t)
  t.match(await ask('POST', '/api/v1/namespaces/nowhere/configmaps', { body: aMap() }), {
    code: 404,
    body: { message: 'namespaces "nowhere" not found' },
  })
  await ask('POST', '/api/v1/namespaces', { body: { apiVersion: 'v1', kind: 'Namespace', metadata: { name: 'team' } } })
  const going = await ask('DELETE', '/api/v1/namespaces/team')
  t.match(going, { code: 200, body: { status: { phase: 'Terminating' }, metadata: { deletionTimestamp: /Z$/ } } })
  const late = await ask('POST', '/api/v1/namespaces/team/configmaps', { body: aMap() })
  t.match(late, { code: 403, body: { message: /^configmaps ".+" is forbidden: .* it is being terminated/ } })
  t.match(await ask('DELETE', '/api/v1/namespaces/kube-system'), { code: 403 })
})

test('what the server says about an object is not for the client to write', async (t) => {
  const { ask } = await anApi(t)
  const { body } = await ask('POST', podsPath, {
    body: {
      ...aPod('web', {}, { uid: 'mine', creationTimestamp: '2001-01-01T00:00:00Z', generation: 9 }),
      status: { phase: 'Running' },
    },
  })
  t.match(body, { metadata: { generation: 1, creationTimestamp: /^2026/ }, status: { phase: 'Pending' } })
  t.not((body['metadata'] as Document)['uid'], 'mine')
  const path = `${podsPath}/web`
  await ask('PATCH', path, { type: patchTypes.merge, body: { status: { phase: 'Failed' } } })
  t.match(await ask('GET', path), { body: { status: { phase: 'Pending' } } })
  const reported = await ask('PATCH', `${path}/status`, {
    type: patchTypes.strategic,
    body: { status: { phase: 'Running' }, spec: { nodeName: 'elsewhere' }, metadata: { labels: { seen: 'yes' } } },
  })
  t.match(reported.body, { status: { phase: 'Running' }, metadata: { labels: { seen: 'yes' } } })
  t.notMatch(reported.body, { spec: { nodeName: 'elsewhere' } })
})

test('a write onto an older version is a conflict, one without a version is not', async (t) => {
  const { ask } = await anApi(t)
  const { body: first } = await ask('POST', configMaps, { body: aMap() })
  const path = `${configMaps}/settings`
  const version = (first['metadata'] as Document)['resourceVersion']
  t.match(await ask('PUT', path, { body: aMap({ data: { a: '1' } }, { resourceVersion: version }) }), { code: 200 })
  const stale = await ask('PUT', path, { body: aMap({ data: { a: '2' } }, { resourceVersion: version }) })
  t.match(stale, { code: 409, body: { reason: 'Conflict', message: /the object has been modified/ } })
  const patch = { type: patchTypes.merge, body: { metadata: { resourceVersion: version }, data: { a: '2' } } }
  t.match(await ask('PATCH', path, patch), { code: 409 })
  t.match(await ask('PUT', path, { body: aMap({ data: { a: '3' } }, { resourceVersion: '' }) }), { code: 200 })
  t.match(await ask('PUT', path, { body: aMap({}, { name: 'other' }) }), {
    code: 400,
    body: { message: 'the name of the object (other) does not match the name on the URL (settings)' },
  })
  t.match(await ask('PUT', path, { body: aMap({}, { uid: 'another' }) }), { code: 409, body: { message: /UID/ } })
})

test('patches of many clients at once are all kept', async (t) => {
  const { ask, clock } = await anApi(t)
  await ask('POST', configMaps, { body: aMap() })
  const keys = ['a', 'b', 'c']
  const patching = Promise.all(
    keys.map((key) =>
      ask('PATCH', `${configMaps}/settings`, { type: patchTypes.merge, body: { data: { [key]: '1' } } }),
    ),
  )
  await clock.advance(1000)
  for (const { code } of await patching) t.equal(code, 200)
  t.match(await ask('GET', `${configMaps}/settings`), { body: { data: { a: '1', b: '1', c: '1' } } })
})

test('an empty patch changes nothing, a JSON patch and a strategic one do', async (t) => {
  const { ask } = await anApi(t)
  const { body: first } = await ask('POST', '/api/v1/nodes', { body: aNode('pi-01') })
  const path = '/api/v1/nodes/pi-01'
  t.same((await ask('PATCH', path, { type: patchTypes.merge, body: {} })).body['metadata'], first['metadata'])
  const taint = { key: 'dedicated', value: 'db', effect: 'NoSchedule' }
  await ask('PATCH', path, { type: patchTypes.strategic, body: { spec: { taints: [taint] } } })
  const ops = [{ op: 'add', path: '/spec/unschedulable', value: true }]
  const { body } = await ask('PATCH', path, { type: patchTypes.json, body: ops })
  t.match(body, { spec: { taints: [taint], unschedulable: true } })
  t.match(await ask('PATCH', path, { type: 'application/apply-patch+yaml', body: {} }), { code: 415 })
  t.match(await ask('PATCH', '/api/v1/nodes/nowhere', { type: patchTypes.merge, body: {} }), { code: 404 })
})

test('a rehearsal answers as the real thing and keeps nothing', async (t) => {
  const { ask, store } = await anApi(t)
  t.match(await ask('POST', `${configMaps}?dryRun=All`, { body: aMap() }), { code: 201, body: { kind: 'ConfigMap' } })
  t.match(await ask('GET', configMaps), { body: { items: [] } })
  await ask('POST', configMaps, { body: aMap() })
  t.match(await ask('POST', `${configMaps}?dryRun=All`, { body: aMap() }), {
    code: 409,
    body: { reason: 'AlreadyExists' },
  })
  const version = await store.version()
  const path = `${configMaps}/settings?dryRun=All`
  const patch = { type: patchTypes.merge, body: { data: { a: '1' } } }
  t.match(await ask('PATCH', path, patch), { body: { data: { a: '1' } } })
  t.match(await ask('DELETE', path), { code: 200 })
  const deletion = { kind: 'DeleteOptions', apiVersion: 'v1', dryRun: ['All'] }
  t.match(await ask('DELETE', `${configMaps}/settings`, { body: deletion }), { code: 200 }, 'as kubectl asks')
  t.match(await ask('DELETE', configMaps, { body: deletion }), { body: { items: [{}] } })
  t.match(await ask('DELETE', configMaps, { body: { ...deletion, dryRun: ['Some'] } }), { code: 400 })
  t.equal(await store.version(), version)
  t.match(await ask('POST', `${configMaps}?dryRun=maybe`, { body: aMap() }), { code: 400 })
})

test('a running pod is given its grace, a waiting one goes at once', async (t) => {
  const { ask, store } = await anApi(t)
  await ask('POST', podsPath, { body: aPod('waiting') })
  t.match(await ask('DELETE', `${podsPath}/waiting`), { code: 200, body: { kind: 'Pod' } })
  t.match(await ask('GET', `${podsPath}/waiting`), { code: 404 })
  await ask('POST', podsPath, { body: aPod('running', { nodeName: 'pi-01', terminationGracePeriodSeconds: 20 }) })
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

test('a deletion can be meant for one very object', async (t) => {
  const { ask } = await anApi(t)
  await ask('POST', configMaps, { body: aMap() })
  const other = await ask('DELETE', `${configMaps}/settings`, { body: { preconditions: { uid: 'another' } } })
  t.match(other, { code: 409, body: { message: /Precondition failed: UID in precondition: another/ } })
})

test('finalizers keep an object until the last of them is taken away', async (t) => {
  const { ask } = await anApi(t)
  await ask('POST', configMaps, { body: aMap({}, { finalizers: ['example.com/keep'] }) })
  const path = `${configMaps}/settings`
  t.match(await ask('DELETE', path), { body: { kind: 'ConfigMap', metadata: { deletionTimestamp: /Z$/ } } })
  t.match(await ask('GET', path), { code: 200 })
  await ask('PATCH', path, { type: patchTypes.merge, body: { metadata: { finalizers: null } } })
  t.match(await ask('GET', path), { code: 404 })
})

test('a finalizer holds a pod beyond its grace, and its node beyond the finalizer', async (t) => {
  const { ask } = await anApi(t)
  const path = (name: string) => `${podsPath}/${name}`
  const drop = { type: patchTypes.merge, body: { metadata: { finalizers: null } } }
  const held = (name: string) =>
    ask('POST', podsPath, { body: aPod(name, { nodeName: 'pi-01' }, { finalizers: ['example.com/hold'] }) })
  await Promise.all(['a', 'b', 'c'].map(held))

  t.match(await ask('DELETE', path('a')), { code: 200, body: { metadata: { deletionGracePeriodSeconds: 30 } } })
  await ask('PATCH', path('a'), drop)
  t.match(await ask('GET', path('a')), { code: 200 }, 'its node has not said that it is done')
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
  t.match(await ask('DELETE', path('c'), both), { code: 422 })
  t.match(await ask('DELETE', path('c'), { body: { propagationPolicy: 'Sideways' } }), { code: 422 })
  t.match(await ask('DELETE', path('c'), { body: { dryRun: ['All'] } }), { code: 200 })
  t.notOk(((await ask('GET', path('c'))).body['metadata'] as Document)['deletionTimestamp'], 'it was a rehearsal')
})

test('many are deleted by what they have in common', async (t) => {
  const { ask } = await anApi(t)
  for (const [name, app] of [
    ['a', 'web'],
    ['b', 'web'],
    ['c', 'db'],
  ] as const) {
    await ask('POST', configMaps, { body: aMap({}, { name, labels: { app } }) })
  }
  const { body } = await ask('DELETE', `${configMaps}?labelSelector=app%3Dweb`)
  t.match(body, { kind: 'ConfigMapList', items: { length: 2 } })
  t.match(await ask('GET', configMaps), { body: { items: [{ metadata: { name: 'c' } }] } })
})

test('a pod is bound once', async (t) => {
  const { ask } = await anApi(t)
  await ask('POST', podsPath, { body: aPod('web') })
  const bind = (name: string) =>
    ask('POST', `${podsPath}/web/binding`, {
      body: { apiVersion: 'v1', kind: 'Binding', metadata: { name: 'web' }, target: { kind: 'Node', name } },
    })
  t.match(await bind('pi-01'), { code: 201, body: { status: 'Success' } })
  t.match(await ask('GET', `${podsPath}/web`), {
    body: { spec: { nodeName: 'pi-01' }, status: { conditions: [{ type: 'PodScheduled', status: 'True' }] } },
  })
  t.match(await bind('pi-02'), { code: 409, body: { message: /already assigned to node "pi-01"/ } })
})

test('a certificate is asked for by one and granted by another', async (t) => {
  const { ask } = await anApi(t)
  const csrs = '/apis/certificates.k8s.io/v1/certificatesigningrequests'
  const machine: Identity = { user: 'system:bootstrap:abcdef', groups: ['system:bootstrappers'] }
  const request = Buffer.from('-----BEGIN CERTIFICATE REQUEST-----\n').toString('base64')
  const body = {
    apiVersion: 'certificates.k8s.io/v1',
    kind: 'CertificateSigningRequest',
    metadata: { name: 'node-csr-1' },
    spec: {
      request,
      signerName: 'kubernetes.io/kube-apiserver-client-kubelet',
      usages: ['digital signature', 'client auth'],
      username: 'system:masters',
    },
  }
  const asked = await ask('POST', csrs, { body, as: machine })
  t.match(
    asked,
    { code: 201, body: { spec: { username: 'system:bootstrap:abcdef' } } },
    'who asks is not for it to say',
  )
  const path = `${csrs}/node-csr-1`
  t.match(await ask('GET', path, { as: machine }), { code: 200 })
  const verdict = { type: 'Approved', status: 'True', reason: 'ByHand' }
  const approval = { type: patchTypes.merge, body: { status: { conditions: [verdict], certificate: 'Zm9yZ2Vk' } } }
  t.match(await ask('PATCH', `${path}/approval`, { ...approval, as: machine }), { code: 403 })
  const approved = await ask('PATCH', `${path}/approval`, approval)
  t.match(approved.body, { status: { conditions: [{ ...verdict, lastUpdateTime: /Z$/ }], certificate: undefined } })
  const signed = await ask('PATCH', `${path}/status`, {
    type: patchTypes.merge,
    body: { status: { conditions: [], certificate: 'c2lnbmVk' } },
  })
  t.match(signed.body, { status: { conditions: [verdict], certificate: 'c2lnbmVk' } }, 'the verdict stays')
  const both = { conditions: [verdict, { type: 'Denied', status: 'True' }] }
  const changed = (conditions: readonly Document[]) =>
    ask('PATCH', `${path}/approval`, { type: patchTypes.merge, body: { status: { conditions } } })
  t.match(await changed(both.conditions), { code: 422 })
  t.match(await changed([]), { code: 422, body: { message: /may not remove a condition of type "Approved"/ } })
  t.match(await changed([{ ...verdict, status: 'False' }]), { code: 422 })
})

test('a node writes about itself and nobody else', async (t) => {
  const { ask } = await anApi(t)
  const as = nodeIdentity('pi-01')
  t.match(await ask('POST', '/api/v1/nodes', { as, body: aNode('pi-02') }), { code: 403 })
  t.match(await ask('POST', '/api/v1/nodes', { as, body: aNode('pi-01') }), { code: 201 })
  const path = '/api/v1/nodes/pi-01'
  const status = { status: { conditions: [{ type: 'Ready', status: 'True' }] } }
  t.match(await ask('PATCH', `${path}/status`, { as, type: patchTypes.strategic, body: status }), { code: 200 })
  const taints = { spec: { taints: [{ key: 'a', effect: 'NoSchedule' }] } }
  t.match(await ask('PATCH', path, { as, type: patchTypes.strategic, body: taints }), {
    code: 403,
    body: { message: 'nodes "pi-01" is forbidden: node "pi-01" is not allowed to modify taints' },
  })
  t.match(await ask('GET', `${podsPath}?fieldSelector=spec.nodeName%3Dpi-01`, { as }), { code: 200 })
  t.match(await ask('GET', podsPath, { as }), { code: 403 })
})

test('a node shows the pods it runs of its own accord, and takes them away again', async (t) => {
  const { ask } = await anApi(t)
  const as = nodeIdentity('pi-01')
  const { body: node } = await ask('POST', '/api/v1/nodes', { as, body: aNode('pi-01') })
  const { uid } = node['metadata'] as { uid: string }
  const owner = { apiVersion: 'v1', kind: 'Node', name: 'pi-01', uid, controller: true }
  const annotations = { 'kubernetes.io/config.mirror': 'hash' }
  const body = aPod('static-pi-01', { nodeName: 'pi-01' }, { annotations, ownerReferences: [owner] })
  t.match(await ask('POST', podsPath, { as: nodeIdentity('pi-02'), body }), { code: 403 })
  t.match(await ask('POST', podsPath, { as, body }), { code: 201 })
  const changed = { metadata: { annotations: { 'kubernetes.io/config.mirror': null } } }
  const patch = { type: patchTypes.merge, body: changed }
  t.match(await ask('PATCH', `${podsPath}/static-pi-01`, patch), { code: 422 }, 'a mirror stays one')
  t.match(await ask('DELETE', `${podsPath}/static-pi-01`, { as: nodeIdentity('pi-02') }), { code: 403 })
  t.match(await ask('DELETE', `${podsPath}/static-pi-01?gracePeriodSeconds=0`, { as }), { code: 200 })
  t.match(await ask('GET', `${podsPath}/static-pi-01`), { code: 404 })
})

test('a secret is readable for the node whose pod needs it, and for its metadata only elsewhere', async (t) => {
  const { ask, store } = await anApi(t)
  const secret = { apiVersion: 'v1', kind: 'Secret', metadata: { name: 'tls' }, stringData: { key: 'hunter2' } }
  await ask('POST', '/api/v1/namespaces/default/secrets', { body: secret })
  const path = '/api/v1/namespaces/default/secrets/tls'
  const as = nodeIdentity('pi-01')
  t.match(await ask('GET', path, { as }), { code: 403 })
  const spec = { nodeName: 'pi-01', imagePullSecrets: [{ name: 'tls' }], containers: [] }
  await store.create('pods', { apiVersion: 'v1', kind: 'Pod', metadata: { name: 'web', namespace: 'default' }, spec })
  t.match(await ask('GET', path, { as }), { code: 200 })
  for (const form of ['Table', 'PartialObjectMetadata']) {
    const { body } = await ask('GET', path, { accept: `application/json;as=${form};v=v1;g=meta.k8s.io` })
    t.match(body, { kind: form })
    t.notMatch(JSON.stringify(body), /hunter2|aHVudGVyMg==/)
  }
})

test('one who may not is told so; nobody in particular even more so', async (t) => {
  const { ask } = await anApi(t)
  const as = { user: 'eve', groups: [] }
  t.match(await ask('GET', '/api/v1/nodes', { as }), {
    code: 403,
    body: { details: { kind: 'nodes' }, message: /^nodes is forbidden: User "eve" cannot list resource "nodes"/ },
  })
  t.match(await ask('GET', '/api/v1/nodes', { as: 'nobody' }), { code: 403, body: { message: /system:anonymous/ } })
  const authorization = 'Bearer abcdef.0123456789abcdef'
  t.match(await ask('GET', '/api/v1/nodes', { as: 'nobody', headers: { authorization } }), { code: 401 })
  t.match(await ask('GET', '/version', { headers: { 'impersonate-user': 'root' } }), { code: 403 })
})

test('beside the objects there are a few paths, and nothing else', async (t) => {
  const { ask } = await anApi(t)
  t.match(await ask('GET', '/version'), { body: { major: '1', minor: '32', gitVersion: 'v1.32.4-bramble.0.1.0' } })
  t.match(await ask('GET', '/healthz'), { code: 200, body: { text: 'ok' } })
  t.match(await ask('GET', '/livez?verbose'), { body: { text: '[+]ping ok\nlivez check passed\n' } })
  t.match(await ask('GET', '/metrics'), { body: { text: 'up 1\n' } })
  const proto = 'application/com.github.proto-openapi.spec.v2@v1.0+protobuf'
  t.match(await ask('GET', '/openapi/v2', { accept: proto }), { code: 200, body: { text: '' } })
  t.match(await ask('GET', '/openapi/v2', { accept: 'application/json' }), { body: { swagger: '2.0' } })
  t.match(await ask('GET', '/openapi/v3'), {
    code: 404,
    body: { reason: 'NotFound', message: 'the server could not find the requested resource' },
  })
  t.match(await ask('GET', '/api/v1/namespaces/default/pods/web/log'), {
    code: 404,
    body: { message: /^pods\/log is not served: on its node, .*pod\.name=web'/ },
  })
  t.match(await ask('POST', '/version'), { code: 405, body: { reason: 'MethodNotAllowed' } })
  t.match(await ask('GET', '/'), { body: { paths: /./ } })
})

test('a pod names its class, and a class that is not there is refused', async (t) => {
  const { ask } = await anApi(t)
  const classes = '/apis/scheduling.k8s.io/v1/priorityclasses'
  const aClass = (name: string, value: number, more: object = {}) => ({
    apiVersion: 'scheduling.k8s.io/v1',
    kind: 'PriorityClass',
    metadata: { name },
    value,
    ...more,
  })
  t.match(await ask('POST', classes, { body: aClass('high', 1000) }), {
    code: 201,
    body: { preemptionPolicy: 'PreemptLowerPriority' },
  })
  const pods = '/api/v1/namespaces/default/pods'
  const named = (name: string, priorityClassName: string) => ({
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name },
    spec: { priorityClassName, containers: [{ name: 'c', image: 'nginx:1.27' }] },
  })
  t.match(await ask('POST', pods, { body: named('web', 'high') }), { code: 201, body: { spec: { priority: 1000 } } })
  t.match(await ask('POST', pods, { body: named('x', 'low') }), {
    code: 403,
    body: { message: 'pods "x" is forbidden: no PriorityClass with name low was found' },
  })
  t.match(await ask('POST', classes, { body: aClass('usual', 5, { globalDefault: true }) }), { code: 201 })
  const patch = { body: { globalDefault: true }, type: 'application/merge-patch+json' }
  t.match(await ask('PATCH', `${classes}/high`, patch), {
    code: 403,
    body: { message: /PriorityClass usual is already marked as default/ },
  })
})

test('containers are added to a pod by a way of their own, and stay', async (t) => {
  const { ask } = await anApi(t)
  const look = { name: 'look', image: 'busybox', targetContainerName: 'main' }
  t.match(await ask('POST', podsPath, { body: aPod('early', { ephemeralContainers: [look] }) }), {
    code: 422,
    body: { message: /spec\.ephemeralContainers: Forbidden: cannot be set on create/ },
  })
  await ask('POST', podsPath, { body: aPod('web') })
  const add = (more: Document, path = '/ephemeralcontainers', name = 'web') => {
    const body = { spec: { ephemeralContainers: [{ ...look, ...more }] } }
    return ask('PATCH', `${podsPath}/${name}${path}`, { type: patchTypes.strategic, body })
  }
  t.match(await add({}, ''), { code: 422, body: { message: /spec\.ephemeralContainers: Forbidden/ } })
  t.match(await add({}), { code: 200, body: { spec: { ephemeralContainers: [{ imagePullPolicy: 'Always' }] } } })
  t.match(await ask('GET', `${podsPath}/web/ephemeralcontainers`), {
    code: 200,
    body: { metadata: { generation: 2 }, spec: { ephemeralContainers: [{ name: 'look' }] } },
  })
  t.match(await add({ name: 'more' }), { body: { spec: { ephemeralContainers: { length: 2 } } } })
  t.match(await add({ image: 'other' }), { code: 422, body: { message: /containers "look" may not be changed/ } })
  t.match(await ask('PUT', `${podsPath}/web/ephemeralcontainers`, { body: aPod('web') }), {
    code: 422,
    body: { message: /"more" may not be removed.*"look" may not be removed/ },
  })
  const annotations = { 'kubernetes.io/config.mirror': 'hash' }
  await ask('POST', podsPath, { body: aPod('mirror', { nodeName: 'pi' }, { annotations }) })
  t.match(await add({}, '/ephemeralcontainers', 'mirror'), {
    code: 422,
    body: { message: /static pods do not support ephemeral containers/ },
  })
})

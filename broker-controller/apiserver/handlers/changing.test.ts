import { test } from 'tap'
import { anApi, type Document, patchTypes } from '../../testing/api-in-memory.ts'
import { configMapsPath, podsPath, sentMap, sentNode, sentPod } from '../../testing/sent-objects.ts'

test('a client cannot change the metadata that the server sets', async (t) => {
  const { ask } = await anApi(t)
  const { body } = await ask('POST', podsPath, {
    body: {
      ...sentPod('web', {}, { uid: 'mine', creationTimestamp: '2001-01-01T00:00:00Z', generation: 9 }),
      status: { phase: 'Running' },
    },
  })
  t.match(body, { metadata: { generation: undefined, creationTimestamp: /^2026/ }, status: { phase: 'Pending' } })
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
  const { body: first } = await ask('POST', configMapsPath, { body: sentMap() })
  const path = `${configMapsPath}/settings`
  const version = (first['metadata'] as Document)['resourceVersion']
  t.match(await ask('PUT', path, { body: sentMap({ data: { a: '1' } }, { resourceVersion: version }) }), { code: 200 })
  const stale = await ask('PUT', path, { body: sentMap({ data: { a: '2' } }, { resourceVersion: version }) })
  t.match(stale, { code: 409, body: { reason: 'Conflict', message: /the object has been modified/ } })
  const patch = { type: patchTypes.merge, body: { metadata: { resourceVersion: version }, data: { a: '2' } } }
  t.match(await ask('PATCH', path, patch), { code: 409 })
  t.match(await ask('PUT', path, { body: sentMap({ data: { a: '3' } }, { resourceVersion: '' }) }), { code: 200 })
  t.match(await ask('PUT', path, { body: sentMap({}, { name: 'other' }) }), {
    code: 400,
    body: { message: 'the name of the object (other) does not match the name on the URL (settings)' },
  })
  t.match(await ask('PUT', path, { body: sentMap({}, { uid: 'another' }) }), { code: 409, body: { message: /UID/ } })
})

test('patches of many clients at once are all kept', async (t) => {
  const { ask, clock } = await anApi(t)
  await ask('POST', configMapsPath, { body: sentMap() })
  const keys = ['a', 'b', 'c']
  const patching = Promise.all(
    keys.map((key) =>
      ask('PATCH', `${configMapsPath}/settings`, { type: patchTypes.merge, body: { data: { [key]: '1' } } }),
    ),
  )
  await clock.advance(1000)
  for (const { code } of await patching) t.equal(code, 200)
  t.match(await ask('GET', `${configMapsPath}/settings`), { body: { data: { a: '1', b: '1', c: '1' } } })
})

test('an empty patch changes nothing, a JSON patch and a strategic one do', async (t) => {
  const { ask } = await anApi(t)
  const { body: first } = await ask('POST', '/api/v1/nodes', { body: sentNode('pi-01') })
  const path = '/api/v1/nodes/pi-01'
  t.same((await ask('PATCH', path, { type: patchTypes.merge, body: {} })).body['metadata'], first['metadata'])
  const taint = { key: 'dedicated', value: 'db', effect: 'NoSchedule' }
  await ask('PATCH', path, { type: patchTypes.strategic, body: { spec: { taints: [taint] } } })
  const ops = [{ op: 'add', path: '/spec/unschedulable', value: true }]
  const { body } = await ask('PATCH', path, { type: patchTypes.json, body: ops })
  t.match(body, { spec: { taints: [taint], unschedulable: true } })
  t.match(await ask('PATCH', path, { type: 'application/vnd.unknown', body: {} }), { code: 415 })
  t.match(await ask('PATCH', '/api/v1/nodes/nowhere', { type: patchTypes.merge, body: {} }), { code: 404 })
})

test('a node that is not cordoned has no field unschedulable, whatever the client writes', async (t) => {
  const { ask } = await anApi(t)
  const node = sentNode('pi-01')
  const made = await ask('POST', '/api/v1/nodes', { body: { ...node, spec: { unschedulable: false } } })
  t.equal(made.code, 201)
  t.notMatch(JSON.stringify(made.body), /unschedulable/)
  const path = '/api/v1/nodes/pi-01'
  const set = async (unschedulable: boolean) =>
    (await ask('PATCH', path, { type: patchTypes.merge, body: { spec: { unschedulable } } })).body
  const unchanged = await set(false)
  t.same(unchanged['metadata'], made.body['metadata'], 'nothing is written')
  t.match(await set(true), { spec: { unschedulable: true } })
  t.notMatch(JSON.stringify(await set(false)), /unschedulable/, 'nor among the managed fields')
  const { body } = await ask('GET', path)
  const replaced = await ask('PUT', path, { body: { ...body, spec: { unschedulable: false } } })
  t.equal(replaced.code, 200)
  t.notMatch(JSON.stringify(replaced.body), /unschedulable/)
})

test('an update of a kind that needs a version is refused without one, or with version 0', async (t) => {
  const { ask } = await anApi(t)
  const leases = '/apis/coordination.k8s.io/v1/namespaces/default/leases'
  const lease = (metadata: Document = {}) => {
    return { apiVersion: 'coordination.k8s.io/v1', kind: 'Lease', metadata: { name: 'leader', ...metadata }, spec: {} }
  }
  const { body } = await ask('POST', leases, { body: lease() })
  const refused = {
    code: 422,
    body: {
      message:
        'leases.coordination.k8s.io "leader" is invalid: metadata.resourceVersion: Invalid value: 0x0: ' +
        'must be specified for an update',
    },
  }
  t.match(await ask('PUT', `${leases}/leader`, { body: lease() }), refused)
  t.match(await ask('PUT', `${leases}/leader`, { body: lease({ resourceVersion: '0' }) }), refused)
  const without = { type: patchTypes.merge, body: { metadata: { resourceVersion: null } } }
  t.match(await ask('PATCH', `${leases}/leader`, without), refused)
  const { resourceVersion } = body['metadata'] as Document
  t.match(await ask('PUT', `${leases}/leader`, { body: lease({ resourceVersion }) }), { code: 200 })
  const label = { type: patchTypes.merge, body: { metadata: { labels: { a: 'b' } } } }
  t.match(await ask('PATCH', `${leases}/leader`, label), { code: 200 }, 'a patch keeps the version')
})

test('version 0 in an update does not count, and a dry run answers with the stored one', async (t) => {
  const { ask } = await anApi(t)
  await ask('POST', configMapsPath, { body: sentMap() })
  const path = `${configMapsPath}/settings`
  const { body } = await ask('PUT', path, { body: sentMap({ data: { a: '1' } }, { resourceVersion: '0' }) })
  t.match(body, { data: { a: '1' }, metadata: { resourceVersion: /[1-9]/ } })
  const { resourceVersion } = body['metadata'] as Document
  const dry = await ask('PUT', `${path}?dryRun=All`, { body: sentMap({ data: { a: '2' } }) })
  t.match(dry, { code: 200, body: { data: { a: '2' }, metadata: { resourceVersion } } })
})

test('an update creates the object that is not there, of the kinds that Kubernetes creates so', async (t) => {
  const { ask } = await anApi(t)
  const services = '/api/v1/namespaces/default/services'
  const service = (metadata: Document = {}) => {
    return {
      apiVersion: 'v1',
      kind: 'Service',
      metadata: { name: 'web', ...metadata },
      spec: { ports: [{ port: 80 }] },
    }
  }
  t.match(await ask('PUT', `${services}/web`, { body: service({ uid: 'of-another' }) }), {
    code: 409,
    body: { message: /Precondition failed: UID in precondition: of-another, UID in object meta: $/ },
  })
  t.match(await ask('PUT', `${services}/other`, { body: service() }), { code: 400 })
  t.match(await ask('PUT', `${services}/web/status`, { body: service() }), { code: 404 })
  t.match(await ask('PUT', `${services}/web?dryRun=All`, { body: service() }), { code: 201 })
  const made = await ask('PUT', `${services}/web?fieldManager=me`, { body: service({ resourceVersion: '7' }) })
  t.match(made, {
    code: 201,
    body: { metadata: { managedFields: [{ manager: 'me', operation: 'Update' }] }, spec: { clusterIP: /^10\./ } },
  })
  t.match(await ask('PUT', `${services}/web`, { body: service() }), { code: 200 })
  const leases = '/apis/coordination.k8s.io/v1/namespaces/default/leases'
  const lease = { apiVersion: 'coordination.k8s.io/v1', kind: 'Lease', metadata: { name: 'leader' }, spec: {} }
  t.match(await ask('PUT', `${leases}/leader`, { body: lease }), { code: 201 })
  t.match(await ask('PUT', `${configMapsPath}/settings`, { body: sentMap() }), { code: 404 })
})

test('who creates by an update needs the permission to create', async (t) => {
  const { ask } = await anApi(t)
  const rbac = '/apis/rbac.authorization.k8s.io/v1'
  const apiVersion = 'rbac.authorization.k8s.io/v1'
  const rules = [{ apiGroups: [''], resources: ['services'], verbs: ['update'] }]
  await ask('POST', `${rbac}/clusterroles`, {
    body: { apiVersion, kind: 'ClusterRole', metadata: { name: 'updater' }, rules },
  })
  const subjects = [{ kind: 'User', name: 'eve', apiGroup: 'rbac.authorization.k8s.io' }]
  const roleRef = { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name: 'updater' }
  await ask('POST', `${rbac}/clusterrolebindings`, {
    body: { apiVersion, kind: 'ClusterRoleBinding', metadata: { name: 'updater' }, subjects, roleRef },
  })
  const body = { apiVersion: 'v1', kind: 'Service', metadata: { name: 'web' }, spec: { ports: [{ port: 80 }] } }
  const eve = { user: 'eve', groups: ['system:authenticated'] }
  t.match(await ask('PUT', '/api/v1/namespaces/default/services/web', { body, as: eve }), {
    code: 403,
    body: { message: /User "eve" cannot create resource "services"/ },
  })
})

test('a finalizer without a domain is one of the standard ones, but for kinds that take any', async (t) => {
  const { ask } = await anApi(t)
  const refused = (finalizers: readonly string[], message: RegExp) =>
    ask('POST', configMapsPath, { body: sentMap({}, { finalizers }) }).then((got) =>
      t.match(got, { code: 422, body: { message } }),
    )
  await refused(['hold'], /metadata.finalizers\[0\]: .* name is neither a standard finalizer name nor is it fully qual/)
  await refused(['orphan', 'foregroundDeletion'], /finalizer orphan and foregroundDeletion cannot be both set$/)
  t.match(await ask('POST', configMapsPath, { body: sentMap({}, { finalizers: ['orphan', 'a/b'] }) }), { code: 201 })
  const leases = '/apis/coordination.k8s.io/v1/namespaces/default/leases'
  const metadata = { name: 'leader', finalizers: ['hold'] }
  const lease = { apiVersion: 'coordination.k8s.io/v1', kind: 'Lease', metadata, spec: {} }
  t.match(await ask('POST', leases, { body: lease }), { code: 201 })
})

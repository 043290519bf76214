import { test } from 'tap'
import type { Identity } from '../../../api/identity.ts'
import type { ManagedFieldsEntry } from '../../../api/meta.ts'
import { type Ask, anApi, type Document, patchTypes } from '../../testing/api-in-memory.ts'
import { configMapsPath, podsPath, sentMap, sentPod } from '../../testing/sent-objects.ts'

const path = `${configMapsPath}/settings`
const nodeName = 'pi-1'
const type = patchTypes.apply
const userAgent = (name: string) => ({ headers: { 'user-agent': name } })

const applyTo = (ask: Ask, target: string, body: unknown, query = 'fieldManager=ann', as?: Identity) =>
  ask('PATCH', `${target}?${query}`, { type, body, ...(as !== undefined && { as }) })

const managersOf = ({ metadata }: Document) =>
  ((metadata as Document)['managedFields'] as readonly ManagedFieldsEntry[] | undefined) ?? []
const fieldsOf = (body: Document, name: string) => managersOf(body).find(({ manager }) => manager === name)?.fieldsV1
const named = (body: Document) =>
  managersOf(body).map(({ manager, operation, subresource = '' }) => `${manager} ${operation} ${subresource}`.trim())

test('an apply creates the object, and again changes nothing', async (t) => {
  const { ask, clock } = await anApi(t)
  const made = await applyTo(ask, path, sentMap({ data: { a: '1' } }))
  t.match(made, { code: 201, body: { data: { a: '1' }, metadata: { name: 'settings', namespace: 'default' } } })
  t.same(managersOf(made.body), [
    {
      manager: 'ann',
      operation: 'Apply',
      apiVersion: 'v1',
      time: (made.body['metadata'] as Document)['creationTimestamp'],
      fieldsType: 'FieldsV1',
      fieldsV1: { 'f:data': { 'f:a': {} } },
    },
  ])
  await clock.advance(5000)
  const again = await applyTo(ask, path, sentMap({ data: { a: '1' } }))
  t.equal(again.code, 200)
  t.same(again.body, made.body, 'the version and the time are the same')
  const rehearsed = await applyTo(
    ask,
    `${configMapsPath}/other`,
    sentMap({}, { name: 'other' }),
    'fieldManager=ann&dryRun=All',
  )
  t.equal(rehearsed.code, 201)
  t.match(await ask('GET', `${configMapsPath}/other`), { code: 404 })
})

test('an apply needs a manager with a good name, and an object of its path', async (t) => {
  const { ask } = await anApi(t)
  t.match(await applyTo(ask, path, sentMap(), ''), {
    code: 422,
    body: {
      message: 'PatchOptions.meta.k8s.io "" is invalid: fieldManager: Required value: is required for apply patch',
    },
  })
  t.match(await applyTo(ask, path, sentMap(), `fieldManager=${'é'.repeat(65)}`), {
    code: 422,
    body: { message: /fieldManager: Too long: may not be more than 128 bytes/ },
  })
  t.match(await applyTo(ask, path, sentMap(), `fieldManager=${'é'.repeat(64)}`), { code: 201 })
  t.match(await ask('POST', `${configMapsPath}?fieldManager=a%07`, { body: sentMap() }), {
    code: 422,
    body: { message: /^CreateOptions.*invalid character U\+0007 \(at position 1\)/ },
  })
  t.match(await ask('PATCH', `${path}?force=false`, { type: patchTypes.merge, body: {} }), {
    code: 422,
    body: { message: /force: Forbidden: may not be specified for non-apply patch/ },
  })
  t.match(await applyTo(ask, path, { ...sentMap(), kind: 'Secret' }), {
    code: 400,
    body: { message: 'invalid object type: /v1, Kind=Secret' },
  })
  t.match(await applyTo(ask, path, { ...sentMap(), apiVersion: 'v2' }), {
    code: 400,
    body: { message: /invalid object type/ },
  })
  t.match(await applyTo(ask, path, [1]), { code: 400 })
  t.match(await applyTo(ask, path, { data: { b: '1' } }), { code: 200, body: { kind: 'ConfigMap' } })
  t.match(await applyTo(ask, path, sentMap({}, { name: 'other' })), {
    code: 400,
    body: { message: /does not match the name/ },
  })
  t.match(await applyTo(ask, path, sentMap({}, { namespace: 'shop' })), { code: 400 })
  t.match(await applyTo(ask, path, sentMap({ data: { a: 7 } })), { code: 422 })
  const managedFields: readonly unknown[] = []
  t.match(await applyTo(ask, path, sentMap({}, { managedFields })), {
    code: 400,
    body: { message: 'metadata.managedFields must be nil' },
  })
  for (const fieldValidation of ['Strict', 'Warn', 'Ignore']) {
    t.match(
      await applyTo(ask, path, { ...sentMap(), no: 1 }, `fieldManager=ann&fieldValidation=${fieldValidation}`),
      {
        code: 400,
        body: {
          message:
            'failed to create typed patch object (/settings; /v1, Kind=ConfigMap): .no: field not declared in schema',
        },
      },
      fieldValidation,
    )
  }
})

test('a conflict names each field with its manager; force takes them', async (t) => {
  const { ask } = await anApi(t)
  const { body } = await ask('POST', configMapsPath, {
    body: sentMap({ data: { a: '1', b: '1' } }),
    ...userAgent('bob/1.0'),
  })
  const since = (body['metadata'] as Document)['creationTimestamp']
  const refused = await applyTo(ask, path, sentMap({ data: { a: '2', b: '2' } }))
  t.match(refused, {
    code: 409,
    body: {
      reason: 'Conflict',
      message: `Apply failed with 2 conflicts: conflicts with "bob" using v1 at ${since}:\n- .data.a\n- .data.b`,
      details: {
        causes: [
          { reason: 'FieldManagerConflict', message: `conflict with "bob" using v1 at ${since}`, field: '.data.a' },
          { reason: 'FieldManagerConflict', field: '.data.b' },
        ],
      },
    },
  })
  t.match(await applyTo(ask, path, sentMap({ data: { a: '1' } })), { code: 200 }, 'the same value is shared')
  const forced = await applyTo(ask, path, sentMap({ data: { a: '2' } }), 'fieldManager=ann&force=true')
  t.match(forced, { code: 200, body: { data: { a: '2', b: '1' } } })
  t.same(fieldsOf(forced.body, 'bob'), { 'f:data': { '.': {}, 'f:b': {} } })
})

test('many conflicts are counted, and named up to a limit', async (t) => {
  const { ask } = await anApi(t)
  const data = (value: string) => Object.fromEntries(Array.from({ length: 300 }, (_, at) => [`key-${at}`, value]))
  await ask('POST', configMapsPath, { body: sentMap({ data: data('1') }) })
  const { body } = await applyTo(ask, path, sentMap({ data: data('2') }))
  t.match(body['message'], /^Apply failed with 300 conflicts: /)
  t.match(body['message'], /\nand 200 more$/)
  t.equal(((body['details'] as Document)['causes'] as readonly unknown[]).length, 100)
})

test('an uid and a version in the body must be those of the object', async (t) => {
  const { ask } = await anApi(t)
  t.match(await applyTo(ask, path, sentMap({}, { uid: 'mine' })), {
    code: 409,
    body: { message: /uid mismatch: the provided object specified uid mine, and no existing object was found/ },
  })
  t.match(await applyTo(ask, path, sentMap({}, { resourceVersion: '1' })), { code: 400 })
  const { body } = await applyTo(ask, path, sentMap())
  const { uid, resourceVersion } = body['metadata'] as Document
  t.match(await applyTo(ask, path, sentMap({ data: { a: '1' } }, { uid, resourceVersion })), { code: 200 })
  t.match(await applyTo(ask, path, sentMap({ data: { a: '2' } }, { resourceVersion })), { code: 409 })
  t.match(await applyTo(ask, path, sentMap({ data: { a: '2' } }, { uid: 'other' })), { code: 409 })
})

test('an applier that creates needs both permissions', async (t) => {
  const { ask } = await anApi(t)
  const rules = [{ apiGroups: [''], resources: ['configmaps'], verbs: ['patch'] }]
  const group = 'rbac.authorization.k8s.io'
  const rbac = `/apis/${group}/v1/namespaces/default`
  const role = { apiVersion: `${group}/v1`, kind: 'Role', metadata: { name: 'patcher' }, rules }
  await ask('POST', `${rbac}/roles`, { body: role })
  await ask('POST', `${rbac}/rolebindings`, {
    body: {
      apiVersion: `${group}/v1`,
      kind: 'RoleBinding',
      metadata: { name: 'patcher' },
      roleRef: { apiGroup: group, kind: 'Role', name: 'patcher' },
      subjects: [{ kind: 'User', name: 'eve', apiGroup: group }],
    },
  })
  const eve: Identity = { user: 'eve', groups: ['system:authenticated'] }
  const yaml = 'apiVersion: v1\nkind: ConfigMap\nmetadata: {name: settings}\ndata:\n  a: "1"\n'
  t.match(await applyTo(ask, path, yaml, 'fieldManager=eve', eve), {
    code: 403,
    body: {
      message:
        'configmaps "settings" is forbidden: User "eve" cannot create resource "configmaps" in API group "" in the namespace "default"',
    },
  })
  await applyTo(ask, path, sentMap())
  t.match(
    await applyTo(ask, path, yaml, 'fieldManager=eve', eve),
    { code: 200, body: { data: { a: '1' } } },
    'YAML, too',
  )
  t.match(await applyTo(ask, path, sentMap(), 'fieldManager=x', { user: 'mallory', groups: [] }), { code: 403 })
})

test('bodies are JSON or YAML, within bounds', async (t) => {
  const { ask } = await anApi(t)
  const flow = '{apiVersion: v1, kind: ConfigMap, metadata: {name: settings}, data: {a: x}}'
  t.match(await applyTo(ask, path, flow), { code: 201, body: { data: { a: 'x' } } })
  t.match(await applyTo(ask, path, 'a: ['), { code: 400 })
  t.match(await applyTo(ask, path, ''), { code: 400 })
  t.match(await applyTo(ask, path, '{"a":'), { code: 400 })
  t.match(await applyTo(ask, path, `a: ${'x'.repeat(17_000)}`), { code: 413 })
  t.match(await applyTo(ask, path, '['.repeat(9000)), { code: 400 })
  t.match(await applyTo(ask, path, `{"a":${'['.repeat(200)}${']'.repeat(200)}}`), { code: 400 })
  const items = Array.from({ length: 3000 }, () => 'x').join(',')
  const aliases = Array.from({ length: 9 }, (_, at) => `b${at}: *a`).join('\n')
  t.match(await applyTo(ask, path, `a: &a [${items}]\n${aliases}\n`), { code: 413, body: { message: /16384 fields/ } })
  const many = Object.fromEntries(Array.from({ length: 20_000 }, (_, at) => [`key-${at}`, '']))
  t.match(await applyTo(ask, path, sentMap({ data: many })), { code: 413 })
})

test('an applier drops all labels, annotations and finalizers of its object', async (t) => {
  const { ask } = await anApi(t)
  const metadata = { labels: { app: 'web' }, annotations: { note: 'x' }, finalizers: ['example.com/one'] }
  t.match(await applyTo(ask, path, sentMap({}, metadata)), { code: 201, body: { metadata } })
  const { code, body } = await applyTo(ask, path, sentMap())
  t.equal(code, 200)
  t.match(body, { metadata: { name: 'settings', namespace: 'default', uid: String } })
  const left = Object.keys(body['metadata'] as object)
  for (const name of Object.keys(metadata)) t.notOk(left.includes(name), name)
})

test('a key that is given twice is refused in strict requests, and a warning in others', async (t) => {
  const { ask } = await anApi(t)
  const yaml = 'apiVersion: v1\nkind: ConfigMap\nmetadata: {name: settings}\ndata:\n  a: "1"\n  a: "2"\n'
  const json = '{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"settings"},"data":{"a":"1","a":"2"}}'
  for (const [body, sentence] of [
    [yaml, 'line 6: key "a" already set in map'],
    [json, 'duplicate field "data.a"'],
  ]) {
    const strict = await applyTo(ask, path, body, 'fieldManager=ann&fieldValidation=Strict')
    t.equal(strict.code, 400)
    t.equal(
      strict.body['message'],
      `ConfigMap in version "v1" cannot be handled as a ConfigMap: strict decoding error: ${sentence}`,
    )
    const { code, body: made, warnings } = await applyTo(ask, path, body)
    t.ok(code < 300)
    t.match(made, { data: { a: '2' } }, 'the last one counts')
    t.same(warnings, [sentence])
    const ignored = await applyTo(ask, path, body, 'fieldManager=ann&fieldValidation=Ignore')
    t.same(ignored.warnings ?? [], [])
  }
})

test('the status has managers of its own, and the object none of the status', async (t) => {
  const { ask } = await anApi(t)
  const node = `/api/v1/nodes/${nodeName}`
  const status = { conditions: [{ type: 'Ready', status: 'True' }] }
  const metadata = { name: nodeName }
  const body = { apiVersion: 'v1', kind: 'Node', metadata, spec: { unschedulable: true }, status }
  const made = await applyTo(ask, node, body)
  t.match(made.body, { spec: { unschedulable: true } })
  t.same(fieldsOf(made.body, 'ann'), { 'f:spec': { 'f:unschedulable': {} } })
  const reported = await applyTo(ask, `${node}/status`, { ...body, spec: { unschedulable: false } })
  t.match(reported.body, { spec: { unschedulable: true }, status })
  t.same(named(reported.body), ['ann Apply', 'ann Apply status'])
  t.same(managersOf(reported.body)[1]?.fieldsV1, {
    'f:status': { 'f:conditions': { 'k:{"type":"Ready"}': { '.': {}, 'f:status': {}, 'f:type': {} } } },
  })
  const changed = {
    apiVersion: 'v1',
    kind: 'Node',
    metadata,
    status: { conditions: [{ type: 'Ready', status: 'False' }] },
  }
  t.match(await applyTo(ask, `${node}/status`, changed, 'fieldManager=bob'), {
    code: 409,
    body: { message: /conflict with "ann" with subresource "status": .status.conditions\[type="Ready"\].status/ },
  })
  t.match(await applyTo(ask, '/api/v1/nodes/nowhere/status', { ...changed, metadata: {} }), { code: 404 })
})

test('what the server adds to a new object has no manager', async (t) => {
  const { ask } = await anApi(t)
  const { body } = await ask('POST', `${podsPath}?fieldManager=bob`, { body: sentPod('web') })
  const owned = fieldsOf(body, 'bob') as { readonly 'f:spec': Document }
  t.hasProp(owned['f:spec'], 'f:containers')
  t.hasProp(owned['f:spec'], 'f:restartPolicy', 'defaults belong to the creator')
  t.notHas(owned['f:spec'], { 'f:priority': {} }, 'set by admission')
  t.notHas(owned, { 'f:status': {} })
})

test('updates and patches take what they change; a name comes from the client', async (t) => {
  const { ask } = await anApi(t)
  await ask('POST', configMapsPath, {
    body: sentMap({ data: { a: '1' } }),
    ...userAgent('kubectl-create/v1.32 (linux)'),
  })
  await ask('PATCH', `${path}?fieldManager=editor`, { type: patchTypes.merge, body: { data: { b: '1' } } })
  await ask('PATCH', path, { type: patchTypes.json, body: [{ op: 'add', path: '/data/c', value: '1' }] })
  const { body } = await ask('PATCH', path, {
    type: patchTypes.strategic,
    body: { data: { d: '1' } },
    ...userAgent('\u0007/1'),
  })
  t.same(named(body), ['editor Update', 'kubectl-create Update', 'unknown Update'])
  t.same(fieldsOf(body, 'unknown'), { 'f:data': { 'f:c': {}, 'f:d': {} } })
})

test('a client may change managedFields, and clear them', async (t) => {
  const { ask } = await anApi(t)
  const entry = (manager: string, fieldsV1: unknown = { 'f:data': { 'f:a': {} } }) => ({
    manager,
    operation: 'Apply',
    apiVersion: 'v1',
    fieldsType: 'FieldsV1',
    fieldsV1,
  })
  const put = (managedFields: unknown) =>
    ask('PUT', `${path}?fieldManager=bob`, { body: sentMap({ data: { a: '1' } }, { managedFields }) })
  const made = await ask('POST', `${configMapsPath}?fieldManager=bob`, {
    body: sentMap({ data: { a: '1' } }, { managedFields: [entry('ann')] }),
  })
  t.same(named(made.body), ['bob Update'], 'what it sets belongs to the creator')
  t.same(named((await put([entry('ann')])).body), ['ann Apply'])
  t.same(named((await put(undefined)).body), ['ann Apply'], 'managers that are not sent stay')
  const { operation: _, ...bad } = entry('eve')
  for (const malformed of [
    [bad],
    [{ ...entry('eve'), fieldsType: 'x' }],
    [entry('eve', { x: {} })],
    [entry('eve', { 'k:{': {} })],
  ]) {
    t.same(named((await put(malformed)).body), ['ann Apply'], JSON.stringify(malformed))
  }
  t.match(await put([entry('x'.repeat(129))]), { code: 422, body: { message: /managedFields\[0\].manager: Too long/ } })
  t.match(await put([{ ...entry('x'), subresource: 'x'.repeat(257) }]), { code: 422 })
  t.match(await put('x'), { code: 422 })
  t.same(named((await put([{}])).body), [])
  const later = await ask('PATCH', path, { type: patchTypes.merge, body: { data: { b: '1' } } })
  t.same(named(later.body), [], 'nothing is tracked until the next apply')
  t.same(named((await applyTo(ask, path, sentMap({ data: { c: '1' } }))).body), [
    'ann Apply',
    'before-first-apply Update',
  ])
  t.same(named((await put([])).body), [], 'as an empty list does')
})

test('an object that is too large with its managers is stored without them, unless it is applied', async (t) => {
  const { ask } = await anApi(t)
  const data = Object.fromEntries(Array.from({ length: 8000 }, (_, at) => [`key-${at}`, '']))
  const made = await ask('POST', configMapsPath, { body: sentMap({ data }) })
  t.equal(made.code, 201)
  t.same(named(made.body), [])
  t.match(await applyTo(ask, `${configMapsPath}/other`, sentMap({ data }, { name: 'other' })), { code: 413 })
  const fewer = Object.fromEntries(Object.entries(data).slice(0, 3000))
  t.match(await ask('PUT', path, { body: sentMap({ data: fewer }) }), { code: 200 })
})

test('two appliers that create at once both have their fields', async (t) => {
  const { ask, clock } = await anApi(t)
  const both = Promise.all(
    ['ann', 'bob'].map((name) => applyTo(ask, path, sentMap({ data: { [name]: '1' } }), `fieldManager=${name}`)),
  )
  const settled = both.then(() => true)
  while (!(await Promise.race([settled, new Promise((go) => setImmediate(go, false))]))) await clock.advance(10)
  t.same((await both).map(({ code }) => code).sort(), [200, 201])
  const { body } = await ask('GET', path)
  t.match(body, { data: { ann: '1', bob: '1' } })
  t.same(named(body), ['ann Apply', 'bob Apply'])
})

test('5,000 fields are applied, and applied again with another value', async (t) => {
  const { ask } = await anApi(t)
  const data = Object.fromEntries(Array.from({ length: 5000 }, (_, at) => [`key-${at}`, 'value']))
  t.match(await applyTo(ask, path, sentMap({ data })), { code: 201 })
  const { code, body } = await applyTo(ask, path, sentMap({ data: { ...data, 'key-1': 'other' } }))
  t.equal(code, 200)
  t.match(body, { data: { 'key-0': 'value', 'key-1': 'other' } })
})

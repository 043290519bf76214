import { test } from 'tap'
import type { CustomResourceDefinition } from '../../../../api/structural/custom-resource-definition.ts'
import { quietLog } from '../../../../daemon/testing/quiet-log.ts'
import { garbageCollector } from '../../../controllers/garbage/garbage-collector.ts'
import { eventRecorder } from '../../../store/event-recorder.ts'
import { patchTypes } from '../../../testing/api-in-memory.ts'
import { aCustomApi, aDefinition, definitionsPath } from '../../../testing/custom-api.ts'
import { configMapsPath } from '../../../testing/sent-objects.ts'

const path = '/apis/example.com/v1/namespaces/default/shops'
const shopSchema = {
  type: 'object',
  description: 'A shop of the test',
  properties: {
    spec: {
      type: 'object',
      required: ['owner'],
      properties: {
        owner: { type: 'string', minLength: 1, pattern: '^[a-z]+$' },
        replicas: { type: 'integer', default: 1, minimum: 0 },
        color: { type: 'string', enum: ['red', 'blue'] },
        open: { type: 'boolean' },
        port: { 'x-kubernetes-int-or-string': true },
        tags: { type: 'array', items: { type: 'string' }, 'x-kubernetes-list-type': 'set' },
        doors: {
          type: 'array',
          'x-kubernetes-list-type': 'map',
          'x-kubernetes-list-map-keys': ['name'],
          items: {
            type: 'object',
            required: ['name'],
            properties: { name: { type: 'string' }, width: { type: 'integer' } },
          },
        },
        any: { type: 'object', 'x-kubernetes-preserve-unknown-fields': true },
        labels: { type: 'object', additionalProperties: { type: 'string' } },
      },
    },
    status: { type: 'object', properties: { replicas: { type: 'integer' }, phase: { type: 'string' } } },
  },
}
const shopVersion = {
  subresources: {
    status: {},
    scale: { specReplicasPath: '.spec.replicas', statusReplicasPath: '.status.replicas' },
  },
  additionalPrinterColumns: [
    { name: 'Owner', type: 'string', jsonPath: '.spec.owner' },
    { name: 'Replicas', type: 'integer', jsonPath: '.spec.replicas' },
    { name: 'Age', type: 'date', jsonPath: '.metadata.creationTimestamp' },
  ],
  selectableFields: [{ jsonPath: '.spec.color' }],
}
const shops = aDefinition(shopSchema, { version: shopVersion })
const aShop = (name: string, spec: object = {}, more: object = {}) => ({
  apiVersion: 'example.com/v1',
  kind: 'Shop',
  metadata: { name },
  spec: { owner: 'jane', ...spec },
  ...more,
})

test('a definition gets its defaults and its conditions, and its kind is discovered', async (t) => {
  const { define, ask } = await aCustomApi(t)
  t.match(await ask('GET', '/apis/example.com/v1'), { code: 404 })
  const created = await define(shops)
  t.match(created, {
    code: 201,
    body: {
      metadata: { generation: 1 },
      spec: { names: { singular: 'shop', listKind: 'ShopList' }, conversion: { strategy: 'None' } },
      status: { storedVersions: ['v1'] },
    },
  })
  t.match(await ask('GET', `${definitionsPath}/shops.example.com`), {
    body: {
      status: {
        conditions: [
          { type: 'NamesAccepted', status: 'True', reason: 'NoConflicts' },
          { type: 'Established', status: 'True', reason: 'InitialNamesAccepted' },
        ],
        acceptedNames: { plural: 'shops', kind: 'Shop', shortNames: ['sh'], categories: ['all'] },
      },
    },
  })
  t.match(await ask('GET', '/apis/example.com/v1'), {
    body: {
      resources: [
        { name: 'shops', singularName: 'shop', kind: 'Shop', shortNames: ['sh'], categories: ['all'] },
        { name: 'shops/status', kind: 'Shop' },
        { name: 'shops/scale', kind: 'Scale', group: 'autoscaling', version: 'v1' },
      ],
    },
  })
  const { body } = await ask('GET', '/apis')
  const groups = (body['groups'] as { name: string }[]).map(({ name }) => name)
  t.same(groups.slice(-2), ['example.com', 'metrics.k8s.io'], 'kubectl takes built-in kinds of an ambiguous name')
})

test('a condition of a definition may be written without its type and status', async (t) => {
  const { define, ask } = await aCustomApi(t)
  await define(shops)
  const path = `${definitionsPath}/shops.example.com/status`
  const patch = [{ op: 'add', path: '/status/conditions', value: [{ message: 'patched' }] }]
  t.match(await ask('PATCH', path, { type: patchTypes.json, body: patch }), {
    code: 200,
    body: { status: { conditions: [{ type: '', status: '', message: 'patched' }] } },
  })
})

test('an object is refused whose defaults multiply, and shown without them if it was there before', async (t) => {
  const { define, ask, until } = await aCustomApi(t)
  const item = { type: 'object', properties: { text: { type: 'string', default: 'x'.repeat(1000) } } }
  const spec = (items: object) => ({
    type: 'object',
    properties: { spec: { type: 'object', properties: { list: { type: 'array', items } } } },
  })
  const before = aDefinition(spec({ type: 'object' }))
  await define(before)
  const many = { apiVersion: 'example.com/v1', kind: 'Shop', spec: { list: Array.from({ length: 5000 }, () => ({})) } }
  t.match(await ask('POST', path, { body: { ...many, metadata: { name: 'a' } } }), { code: 201 })
  const { body } = await ask('GET', `${definitionsPath}/shops.example.com`)
  const { metadata } = body as { metadata: { resourceVersion: string } }
  const { resourceVersion } = metadata
  const after = { ...aDefinition(spec(item)), metadata: { ...before.metadata, resourceVersion } }
  t.match(await ask('PUT', `${definitionsPath}/shops.example.com`, { body: after }), { code: 200 })
  await until(async () => (await ask('POST', path, { body: { ...many, metadata: { name: 'b' } } })).code === 413)
  t.match(await ask('GET', `${path}/a`), { code: 200, body: { spec: { list: [{}] } } })
})

test('objects are pruned, defaulted, validated and printed by the schema', async (t) => {
  const { define, ask } = await aCustomApi(t)
  await define(shops)
  const sent = aShop(
    'a',
    { color: 'red', extra: 1, any: { kept: [null, { x: 1.5 }] }, open: null },
    { status: { phase: 'x' } },
  )
  const created = await ask('POST', path, { body: sent })
  t.equal(created.code, 201)
  t.same(created.warnings, ['unknown field "spec.extra"'])
  t.strictSame(created.body['spec'], { owner: 'jane', color: 'red', any: { kept: [null, { x: 1.5 }] }, replicas: 1 })
  t.notOk('status' in created.body, 'the status is written apart')
  t.match(await ask('POST', `${path}?fieldValidation=Strict`, { body: aShop('b', { extra: 1 }) }), {
    code: 400,
    body: {
      message: 'Shop in version "v1" cannot be handled as a Shop: strict decoding error: unknown field "spec.extra"',
    },
  })
  const wrong = await ask('POST', path, {
    body: aShop('b', { owner: 'Jane', replicas: '1', color: 'green', tags: ['a', 'a'], doors: [{}], port: 1.5 }),
  })
  t.equal(wrong.code, 422)
  const { causes } = (wrong.body['details'] ?? {}) as { causes: { field: string; message: string }[] }
  t.same(
    causes.map(({ field, message }) => `${field}: ${message}`).sort(),
    [
      '.spec.replicas: Invalid value: 0: .spec.replicas accessor error: 1 is of the type string, expected int64',
      'spec.color: Unsupported value: "green": supported values: "red", "blue"',
      'spec.doors[0].name: Required value',
      `spec.owner: Invalid value: "Jane": spec.owner in body should match '^[a-z]+$'`,
      'spec.port: Invalid value: "number": spec.port in body must be of type integer,string: "number"',
      'spec.replicas: Invalid value: "string": spec.replicas in body must be of type integer: "string"',
      'spec.tags[1]: Duplicate value: "a"',
    ].sort(),
  )
  t.match(await ask('GET', `${path}?fieldSelector=spec.color%3Dred`), { body: { kind: 'ShopList', items: [{}] } })
  t.match(await ask('GET', `${path}?fieldSelector=spec.owner%3Djane`), {
    code: 400,
    body: { message: /field label not supported/ },
  })
  t.match(await ask('GET', path, { accept: 'application/json;as=Table;v=v1;g=meta.k8s.io' }), {
    body: {
      columnDefinitions: [{ name: 'Name' }, { name: 'Owner' }, { name: 'Replicas', type: 'integer' }, { name: 'Age' }],
      rows: [{ cells: ['a', 'jane', 1, '0s'] }],
    },
  })
})

test('objects are replaced with their version only, patched, applied by their lists, and their status is written apart', async (t) => {
  const { define, ask } = await aCustomApi(t)
  await define(shops)
  await ask('POST', path, { body: aShop('a', { doors: [{ name: 'front', width: 1 }] }) })
  t.match(await ask('PUT', `${path}/a`, { body: aShop('a') }), {
    code: 422,
    body: { message: /metadata\.resourceVersion: Invalid value: 0x0: must be specified for an update/ },
  })
  const merge = { type: patchTypes.merge, body: { spec: { replicas: 2, extra: true } } }
  t.match(await ask('PATCH', `${path}/a`, merge), {
    code: 200,
    body: { metadata: { generation: 2 }, spec: { replicas: 2 } },
  })
  t.match(await ask('PATCH', `${path}/a`, { type: patchTypes.strategic, body: {} }), {
    code: 415,
    body: { message: /application\/merge-patch\+json, application\/apply-patch\+yaml$/ },
  })
  const applied = { apiVersion: 'example.com/v1', kind: 'Shop', spec: { doors: [{ name: 'back', width: 2 }] } }
  t.match(await ask('PATCH', `${path}/a?fieldManager=m`, { type: patchTypes.apply, body: applied }), {
    code: 200,
    body: {
      spec: { doors: [{ name: 'front' }, { name: 'back', width: 2 }] },
      metadata: {
        managedFields: [{ manager: 'm', fieldsV1: { 'f:spec': { 'f:doors': { 'k:{"name":"back"}': {} } } } }, {}],
      },
    },
  })
  const unknown = { ...applied, spec: { nothing: 1 } }
  t.match(await ask('PATCH', `${path}/a?fieldManager=m`, { type: patchTypes.apply, body: unknown }), {
    body: { message: /\.spec\.nothing: field not declared in schema/ },
  })
  const status = { type: patchTypes.merge, body: { spec: { replicas: 9 }, status: { phase: 'open', replicas: 2 } } }
  const written = await ask('PATCH', `${path}/a/status`, status)
  t.match(written, {
    code: 200,
    body: { metadata: { generation: 3 }, spec: { replicas: 2 }, status: { phase: 'open' } },
  })
  t.match(await ask('PATCH', `${path}/a/status`, { type: patchTypes.merge, body: { status: { phase: 1 } } }), {
    code: 422,
    body: { details: { causes: [{ field: 'status.phase' }] } },
  })
  t.match(await ask('GET', `${path}/a/scale`), {
    body: { kind: 'Scale', apiVersion: 'autoscaling/v1', spec: { replicas: 2 }, status: { replicas: 2 } },
  })
  await ask('PATCH', `${path}/a/scale`, { type: patchTypes.merge, body: { spec: { replicas: 5 } } })
  t.match(await ask('GET', `${path}/a`), { body: { spec: { owner: 'jane', replicas: 5 } } })
})

test('what was invalid before may stay as it is', async (t) => {
  const { define, ask } = await aCustomApi(t)
  await define(
    aDefinition({
      type: 'object',
      properties: { spec: { type: 'object', 'x-kubernetes-preserve-unknown-fields': true } },
    }),
  )
  await ask('POST', path, { body: aShop('a', { owner: 'Jane Doe', size: 1 }) })
  const stricter = { ...shopSchema.properties.spec.properties, size: { type: 'integer' } }
  const schema = { type: 'object', properties: { spec: { type: 'object', properties: stricter } } }
  const now = await ask('GET', `${definitionsPath}/shops.example.com`)
  const spec = { ...aDefinition(schema).spec, names: (now.body['spec'] as { names: object }).names }
  t.match(await ask('PUT', `${definitionsPath}/shops.example.com`, { body: { ...now.body, spec } }), { code: 200 })
  const merge = (body: object) => ask('PATCH', `${path}/a`, { type: patchTypes.merge, body })
  t.match(await merge({ spec: { size: 2 } }), {
    code: 200,
    body: { spec: { owner: 'Jane Doe', size: 2, replicas: 1 } },
  })
  t.match(await merge({ spec: { owner: 'John Doe' } }), { code: 422 })
})

test('all versions show the same objects, with the defaults of each', async (t) => {
  const { define, ask } = await aCustomApi(t)
  const version = (name: string, extra: object) => ({
    name,
    served: true,
    storage: name === 'v1',
    schema: { openAPIV3Schema: { type: 'object', properties: { spec: { type: 'object', properties: extra } } } },
  })
  const old = { ...version('v1beta1', { owner: { type: 'string' } }), deprecated: true }
  const versions = [old, version('v1', { owner: { type: 'string' }, floors: { type: 'integer', default: 3 } })]
  await define(aDefinition({}, { versions }))
  const oldPath = path.replace('/v1/', '/v1beta1/')
  const body = { metadata: { name: 'a' }, spec: { owner: 'jane' } }
  t.match(await ask('POST', oldPath, { body }), {
    code: 201,
    warnings: ['example.com/v1beta1 Shop is deprecated'],
    body: { apiVersion: 'example.com/v1beta1', spec: { owner: 'jane', floors: undefined } },
  })
  t.match(await ask('GET', `${path}/a`), { body: { apiVersion: 'example.com/v1', spec: { owner: 'jane', floors: 3 } } })
  t.match(await ask('GET', '/apis/example.com'), {
    body: { preferredVersion: { version: 'v1' }, versions: [{ version: 'v1' }, { version: 'v1beta1' }] },
  })
})

test('a watch ends when its kind is defined otherwise, and a deleted definition takes its objects with it', async (t) => {
  const { define, ask, watch, until, clock } = await aCustomApi(t)
  await define(shops)
  await ask('POST', path, { body: { ...aShop('a'), metadata: { name: 'a', finalizers: ['example.com/held'] } } })
  await ask('POST', path, { body: aShop('b') })
  const events = watch(`${path}?watch=1`, new AbortController().signal)
  t.match([(await events.next()).value, (await events.next()).value], [{ type: 'ADDED' }, { type: 'ADDED' }])
  const ended = (async () => {
    for await (const _ of events);
    return 'ended'
  })()
  const columns = { type: patchTypes.json, body: [{ op: 'remove', path: '/spec/versions/0/additionalPrinterColumns' }] }
  t.match(await ask('PATCH', `${definitionsPath}/shops.example.com`, columns), { code: 200 })
  t.equal(await ended, 'ended')
  const marked = await ask('DELETE', `${definitionsPath}/shops.example.com`)
  t.match(marked, {
    code: 200,
    body: {
      metadata: { deletionTimestamp: /./, finalizers: ['customresourcecleanup.apiextensions.k8s.io'] },
    },
  })
  t.match(await ask('POST', path, { body: aShop('c') }), {
    code: 405,
    body: { message: 'create not allowed while custom resource definition is terminating' },
  })
  const { body } = await ask('GET', '/apis/example.com/v1')
  t.same((body['resources'] as { verbs: string[] }[])[0]?.verbs, ['delete', 'deletecollection', 'get', 'list', 'watch'])
  await until(async () => (await ask('GET', `${path}/b`)).code === 404)
  t.match(await ask('GET', `${path}/a`), { code: 200, body: { metadata: { deletionTimestamp: /./ } } })
  await ask('PATCH', `${path}/a`, { type: patchTypes.merge, body: { metadata: { finalizers: null } } })
  await until(async () => {
    await clock.advance(1_000)
    return (await ask('GET', `${definitionsPath}/shops.example.com`)).code === 404
  })
  t.match(await ask('GET', path), { code: 404 })
})

test('the first definition of a name has it, and another one gets it when the first is gone', async (t) => {
  const { define, ask, conditionOf, until, clock } = await aCustomApi(t)
  await define(shops)
  const second = aDefinition(shopSchema, { spec: { names: { plural: 'stores', kind: 'Shop', shortNames: ['st'] } } })
  const stores = { ...second, metadata: { name: 'stores.example.com' } }
  t.match(await ask('POST', definitionsPath, { body: stores }), { code: 201 })
  await until(async () => (await conditionOf('stores.example.com', 'NamesAccepted')) !== undefined)
  t.match(await conditionOf('stores.example.com', 'NamesAccepted'), {
    status: 'False',
    reason: /KindConflict/,
    message: /is already in use/,
  })
  t.match(await ask('GET', path.replace('shops', 'stores')), { code: 404 })
  await ask('DELETE', `${definitionsPath}/shops.example.com`)
  await until(async () => {
    await clock.advance(1_000)
    return (await conditionOf('stores.example.com', 'Established'))?.status === 'True'
  })
  t.match(await ask('GET', path.replace('shops', 'stores')), { code: 200 })
})

test('a short name that another definition has is not served, until that one changes', async (t) => {
  const { define, ask, conditionOf, until } = await aCustomApi(t)
  const aKind = (plural: string, kind: string, ...shortNames: readonly string[]) => ({
    ...aDefinition(shopSchema, { spec: { names: { plural, kind, ...(shortNames.length > 0 && { shortNames }) } } }),
    metadata: { name: `${plural}.example.com` },
  })
  const replace = async (definition: ReturnType<typeof aKind>) => {
    const at = `${definitionsPath}/${definition.metadata.name}`
    const { metadata } = (await ask('GET', at)).body as { metadata: object }
    t.match(await ask('PUT', at, { body: { ...definition, metadata } }), { code: 200 })
  }
  const shortNamesOf = async (plural: string) => {
    const { body } = await ask('GET', '/apis/example.com/v1')
    return (body['resources'] as { name: string; shortNames?: string[] }[]).find(({ name }) => name === plural)
      ?.shortNames
  }
  await define(aKind('stores', 'Store', 's'))
  await define(aKind('shops', 'Shop'))
  await replace(aKind('shops', 'Shop', 's'))
  await until(async () => (await conditionOf('shops.example.com', 'NamesAccepted'))?.status === 'False')
  t.equal(await shortNamesOf('shops'), undefined)
  await replace(aKind('stores', 'Store', 'st'))
  await until(async () => (await conditionOf('shops.example.com', 'NamesAccepted'))?.status === 'True')
  t.same([await shortNamesOf('shops'), await shortNamesOf('stores')], [['s'], ['st']])
})

test('the definitions of a fleet do not grow beyond what they may have together', async (t) => {
  const { ask, store } = await aCustomApi(t)
  const described = (length: number) => aDefinition({ type: 'object', description: 'x'.repeat(length) })
  const full = { ...described(63 * 2 ** 20), metadata: { name: 'full.example.com' } }
  await store.create('customresourcedefinitions', full as unknown as CustomResourceDefinition)
  t.match(await ask('POST', definitionsPath, { body: described(1) }), { code: 201 })
  const to = async (length: number) => {
    const [value, at] = ['x'.repeat(length), '/spec/versions/0/schema/openAPIV3Schema/description']
    const sent = { type: patchTypes.json, body: [{ op: 'replace', path: at, value }] }
    return (await ask('PATCH', `${definitionsPath}/shops.example.com`, sent)).code
  }
  t.same([await to(1_000_000), await to(1_100_000)], [200, 403])
  const other = { ...described(100_000), metadata: { name: 'stores.example.com' } }
  other.spec.names = { ...other.spec.names, plural: 'stores' }
  t.match(await ask('POST', definitionsPath, { body: other }), {
    code: 403,
    body: { message: /would have more than 67108864 bytes/ },
  })
  t.equal(await to(10), 200, 'it may become smaller')
})

test('a definition that is wrong, or asks for what is not there, is refused with the reasons', async (t) => {
  const { ask } = await aCustomApi(t)
  const refused = async (definition: object) => {
    const { code, body } = await ask('POST', definitionsPath, { body: definition })
    t.equal(code, 422)
    const { causes = [] } = (body['details'] ?? {}) as { causes?: { field: string; message: string }[] }
    return causes.map(({ field, message }) => `${field}: ${message}`)
  }
  const at = 'spec.versions[0].schema.openAPIV3Schema'
  const of = (spec: object) => aDefinition({ type: 'object', properties: { spec } })
  t.match(await refused(of({ type: 'object', properties: {}, 'x-kubernetes-validations': [{ rule: 'self.a > 1' }] })), [
    `${at}.properties[spec].x-kubernetes-validations[0].rule: Invalid value: "self.a > 1": compilation failed: ERROR: <input>:1:5: undefined field 'a'`,
  ])
  t.match(await refused(of({ type: 'string', pattern: '(a' })), [/must be a valid regular expression, but isn't/])
  t.match(await refused(of({ type: 'string', default: 1 })), [/properties\[spec\]\.default: Invalid value: "integer"/])
  t.match(await refused(of({ type: 'object', properties: {}, default: { a: 1 } })), [/must not have unknown fields/])
  const ours = aDefinition({ type: 'object' }, { spec: { group: 'networking.k8s.io' } })
  t.match(await refused({ ...ours, metadata: { name: 'shops.networking.k8s.io' } }), [
    'spec.group: Forbidden: the kinds of networking.k8s.io are served by the fleet itself',
    /protected groups must have approval annotation/,
  ])
})

test('rules are evaluated for each write, with the earlier object, and not for what stays as it was', async (t) => {
  const { define, ask } = await aCustomApi(t)
  const count = { type: 'integer', 'x-kubernetes-validations': [{ rule: 'self >= oldSelf', message: 'only more' }] }
  const rules = [{ rule: "self.name != 'none' || self.count == 0", messageExpression: "'not ' + string(self.count)" }]
  const spec = { type: 'object', properties: { count, name: { type: 'string' } }, 'x-kubernetes-validations': rules }
  const status = {
    type: 'object',
    properties: { phase: { type: 'string', 'x-kubernetes-validations': [{ rule: "self in ['Open', 'Closed']" }] } },
  }
  await define(
    aDefinition({ type: 'object', properties: { spec, status } }, { version: { subresources: { status: {} } } }),
  )
  const shop = (name: string, values: object) => ({ ...aShop('a'), spec: { name, ...values } })
  const merge = async (body: object, subresource = '') =>
    ask('PATCH', `${path}/a${subresource}`, { body, type: patchTypes.merge })
  t.match(await ask('POST', path, { body: shop('none', { count: 2 }) }), {
    code: 422,
    body: {
      message: 'Shop.example.com "a" is invalid: spec: Invalid value: "object": not 2',
      details: { causes: [{ reason: 'FieldValueInvalid', field: 'spec' }] },
    },
  })
  t.match(await ask('POST', path, { body: shop('none', { count: 'x' }) }), {
    code: 422,
    body: { message: /must be of type integer.*<nil>: Invalid value: null: some validation rules were not checked/ },
  })
  t.match(await ask('POST', path, { body: shop('b', { count: 2 }) }), { code: 201 })
  t.match(await merge({ spec: { count: 1 } }), { code: 422, body: { message: /spec\.count: .*only more/ } })
  t.match(await merge({ spec: { count: 3 } }), { code: 200 })
  t.match(await merge({ status: { phase: 'x' } }, '/status'), {
    code: 422,
    body: { message: /status\.phase: .*failed rule/ },
  })
  t.match(await merge({ status: { phase: 'Open' } }, '/status'), { code: 200 })
})

test('OpenAPI describes a custom kind at once, in both versions', async (t) => {
  const { define, ask } = await aCustomApi(t)
  const before = await ask('GET', '/openapi/v3')
  await define(shops)
  const after = await ask('GET', '/openapi/v3')
  const [old, now] = [before, after].map(
    ({ body }) => body['paths'] as { [path: string]: { serverRelativeURL: string } },
  )
  t.equal(old?.['api/v1']?.serverRelativeURL, now?.['api/v1']?.serverRelativeURL)
  t.match(now?.['apis/example.com/v1']?.serverRelativeURL, /hash=/)
  const document = await ask('GET', '/openapi/v3/apis/example.com/v1')
  t.match(document.body, {
    components: {
      schemas: {
        'com.example.v1.Shop': {
          description: 'A shop of the test',
          properties: {
            apiVersion: { type: 'string' },
            metadata: { allOf: [{ $ref: '#/components/schemas/io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta' }] },
            spec: { properties: { port: { anyOf: [{ type: 'integer' }, { type: 'string' }] } } },
          },
          'x-kubernetes-group-version-kind': [{ group: 'example.com', kind: 'Shop', version: 'v1' }],
        },
        'com.example.v1.ShopList': {},
      },
    },
    paths: { [`${path.replace('default', '{namespace}')}/{name}`]: { patch: {} } },
  })
  t.notOk(JSON.stringify(document.body).includes('strategic-merge-patch'), 'kubectl sends what is named there')
  t.match((await ask('GET', '/openapi/v2')).body, {
    definitions: {
      'com.example.v1.Shop': {
        properties: { spec: { required: ['owner'], properties: { color: { enum: ['red', 'blue'] } } } },
      },
    },
  })
})

test('names that JavaScript gives to every object are names as others', async (t) => {
  const { define, ask } = await aCustomApi(t)
  const spec = {
    type: 'object',
    properties: { constructor: { type: 'string' }, toString: { type: 'string', default: 'x' } },
  }
  await define(aDefinition({ type: 'object', properties: { spec } }))
  const created = await ask('POST', path, { body: '{"metadata":{"name":"a"},"spec":{"valueOf":1,"constructor":"c"}}' })
  t.strictSame(created.body['spec'], { constructor: 'c', toString: 'x' })
  t.match(await ask('POST', path, { body: '{"metadata":{"name":"b"},"spec":{"__proto__":{"constructor":"c"}}}' }), {
    code: 422,
    body: { message: /this key is not allowed/ },
  })
})

test('what belongs to a custom object goes with it, also when the definition goes at the same time', async (t) => {
  const { define, ask, store, clock, kinds, until } = await aCustomApi(t)
  const stopping = new AbortController()
  const events = eventRecorder({ store, clock })
  const collector = garbageCollector({ store, resources: kinds, events, clock, log: quietLog(t) }).run(stopping.signal)
  t.teardown(async () => {
    stopping.abort()
    await collector
  })
  await define(shops)
  const owners = await Promise.all(['a', 'b'].map((name) => ask('POST', path, { body: aShop(name) })))
  for (const { body } of owners) {
    const { name, uid } = body['metadata'] as { name: string; uid: string }
    const ownerReferences = [{ apiVersion: 'example.com/v1', kind: 'Shop', name, uid }]
    const metadata = { name: `of-${name}`, ownerReferences }
    t.match(await ask('POST', configMapsPath, { body: { metadata } }), { code: 201 })
  }
  const left = async () => (await store.list('configmaps', 'default')).items.map(({ metadata }) => metadata.name)
  const passing = async (isTrue: () => Promise<boolean>) =>
    until(async () => {
      await clock.advance(1_000)
      return isTrue()
    })
  await ask('DELETE', `${path}/a`)
  await passing(async () => !(await left()).includes('of-a'))
  t.same(await left(), ['of-b'])
  await ask('DELETE', `${definitionsPath}/shops.example.com`)
  await passing(async () => (await left()).length === 0)
  t.same(await left(), [])
})

import { type Test, test } from 'tap'
import { mastersGroup } from '../../../api/identity.ts'
import { type Document, patchTypes } from '../../testing/api-in-memory.ts'
import { aConversionWebhook, convertedAnswer, convertedDefinition } from '../../testing/conversion-webhook.ts'
import { aCustomApi, definitionsPath } from '../../testing/custom-api.ts'

const v1 = '/apis/example.com/v1/namespaces/default/shops'
const v2 = '/apis/example.com/v2/namespaces/default/shops'
const old = (name: string, hostPort = `${name}:80`, more: object = {}) => ({
  apiVersion: 'example.com/v1',
  kind: 'Shop',
  metadata: { name },
  hostPort,
  ...more,
})
const young = (name: string, host = name, more: object = {}) => ({
  apiVersion: 'example.com/v2',
  kind: 'Shop',
  metadata: { name },
  host,
  port: '80',
  ...more,
})
type AdmissionRequest = { readonly uid: string; readonly [field: string]: unknown }
/** No administrator: limits hold for it. */
const jane = { user: 'jane', groups: [] }

async function shops(t: Test, storage: 'v1' | 'v2' = 'v1') {
  const webhook = aConversionWebhook()
  const api = await aCustomApi(t, webhook.call)
  t.match(await api.define(convertedDefinition(storage)), { code: 201 })
  /** Changes the definition, and resolves once it is served. */
  const redefine = async (next: ReturnType<typeof convertedDefinition>) => {
    const { body } = await api.ask('GET', `${definitionsPath}/shops.example.com`)
    const { resourceVersion } = body['metadata'] as { resourceVersion: string }
    const put = { ...next, metadata: { ...next.metadata, resourceVersion } }
    t.match(await api.ask('PUT', `${definitionsPath}/shops.example.com`, { body: put }), { code: 200 })
  }
  const stored = async (name: string) => api.store.get('shops.example.com', { namespace: 'default', name })
  return { ...api, webhook, redefine, stored }
}

test('objects are stored in the storage version, and shown in the version of the request', async (t) => {
  const { ask, webhook, stored } = await shops(t)
  t.match(await ask('POST', v1, { body: old('a') }), { code: 201, body: { hostPort: 'a:80' } })
  t.match(await ask('GET', `${v1}/a`), { code: 200 })
  t.equal(webhook.taken(), 0, 'no webhook is called for objects that are in the requested version')
  t.match(await ask('GET', `${v2}/a`), {
    code: 200,
    body: { apiVersion: 'example.com/v2', kind: 'Shop', metadata: { name: 'a', generation: 1 }, host: 'a', port: '80' },
  })
  const created = await ask('POST', v2, { body: young('b') })
  t.match(created, { code: 201, body: { apiVersion: 'example.com/v2', host: 'b', metadata: { uid: String } } })
  t.match(await stored('b'), { apiVersion: 'example.com/v1', hostPort: 'b:80' })
  t.match(await ask('PATCH', `${v2}/b`, { body: { port: '81' }, type: patchTypes.merge }), {
    code: 200,
    body: { host: 'b', port: '81', metadata: { generation: 2 } },
  })
  t.match(await stored('b'), { apiVersion: 'example.com/v1', hostPort: 'b:81' })
  const { body } = await ask('GET', `${v2}/b`)
  t.match(await ask('PUT', `${v2}/b`, { body: { ...body, host: 'c' } }), { code: 200, body: { host: 'c' } })
  t.match(await ask('PUT', `${v2}/b`, { body }), { code: 409 })
  const applied = await ask('PATCH', `${v2}/b?fieldManager=me&force=true`, {
    body: young('b', 'd'),
    type: patchTypes.apply,
  })
  t.match(applied, { code: 200, body: { host: 'd', port: '80' } })
  t.match(await ask('PATCH', `${v2}/n?fieldManager=me`, { body: young('n'), type: patchTypes.apply }), { code: 201 })
  t.match(await ask('DELETE', `${v2}/b`), { code: 200, body: { status: 'Success' } })
  t.equal(await stored('b'), undefined)
})

test('the status and the scale are written through the webhook, and do not count as changes', async (t) => {
  const { ask, stored } = await shops(t)
  await ask('POST', v2, { body: young('a', 'a', { spec: { replicas: 1 } }) })
  const body = { status: { phase: 'Open', replicas: 1 } }
  t.match(await ask('PATCH', `${v2}/a/status`, { body, type: patchTypes.merge }), {
    code: 200,
    body: { host: 'a', status: { phase: 'Open' }, metadata: { generation: 1 } },
  })
  const { body: scale } = await ask('GET', `${v2}/a/scale`)
  t.match(scale, { kind: 'Scale', spec: { replicas: 1 }, status: { replicas: 1 } })
  t.match(await ask('PUT', `${v2}/a/scale`, { body: { ...scale, spec: { replicas: 3 } } }), { code: 200 })
  t.match(await stored('a'), {
    apiVersion: 'example.com/v1',
    hostPort: 'a:80',
    spec: { replicas: 3 },
    status: { phase: 'Open' },
    metadata: { generation: 2 },
  })
})

test('a list has objects that were stored in several versions, converted together', async (t) => {
  const { ask, webhook, redefine, stored } = await shops(t)
  for (const name of ['a', 'b', 'c']) await ask('POST', v1, { body: old(name) })
  await redefine(convertedDefinition('v2'))
  await ask('POST', v2, { body: young('d') })
  webhook.taken()
  t.match(await ask('GET', v2), {
    body: { kind: 'ShopList', items: ['a', 'b', 'c', 'd'].map((host) => ({ host, port: '80' })) },
  })
  t.equal(webhook.reviews.length, 1, 'by one call')
  t.equal(webhook.taken(), 3, 'of those that are stored in the other version')
  t.match(await ask('GET', v2), { code: 200 })
  t.equal(webhook.taken(), 0, 'what is known is not asked for again')
  t.match(await ask('GET', v1), { body: { items: ['a', 'b', 'c', 'd'].map((name) => ({ hostPort: `${name}:80` })) } })
  t.match(await ask('GET', `${v2}?fieldSelector=host=b`), { body: { items: [{ metadata: { name: 'b' } }] } })
  t.match(await ask('GET', `${v1}?fieldSelector=hostPort=d:80`), { body: { items: [{ metadata: { name: 'd' } }] } })
  t.match(await ask('GET', v2, { accept: 'application/json;as=Table;v=v1;g=meta.k8s.io' }), {
    body: { kind: 'Table', rows: [{ cells: ['a', 'a'] }, { cells: ['b', 'b'] }, {}, { cells: ['d', 'd'] }] },
  })
  t.match(await ask('GET', `${definitionsPath}/shops.example.com`), {
    body: { status: { storedVersions: ['v1', 'v2'] } },
  })
  // The next write moves an object into the storage version, which does not change what it means.
  t.match(await ask('PATCH', `${v1}/a`, { body: { metadata: { labels: { x: 'y' } } }, type: patchTypes.merge }), {
    code: 200,
  })
  t.match(await stored('a'), {
    apiVersion: 'example.com/v2',
    host: 'a',
    metadata: { generation: 1, labels: { x: 'y' } },
  })
  t.match(await ask('DELETE', `${v1}?fieldSelector=hostPort=b:80`), { body: { items: [{ hostPort: 'b:80' }] } })
  t.equal(await stored('b'), undefined)
})

test('watches of each version see every change in its version, in order', async (t) => {
  const { ask, watch, webhook } = await shops(t)
  const { body } = await ask('GET', v1)
  const { resourceVersion } = body['metadata'] as { resourceVersion: string }
  await ask('POST', v1, { body: old('a') })
  await ask('POST', v2, { body: young('b') })
  await ask('PATCH', `${v1}/a`, { body: { hostPort: 'z:1' }, type: patchTypes.merge })
  await ask('DELETE', `${v1}/a`)
  webhook.taken()
  const from = `watch=true&resourceVersion=${resourceVersion}`
  const young4 = [
    { type: 'ADDED', object: { apiVersion: 'example.com/v2', host: 'a', metadata: { name: 'a' } } },
    { type: 'ADDED', object: { apiVersion: 'example.com/v2', host: 'b', metadata: { name: 'b' } } },
    { type: 'MODIFIED', object: { apiVersion: 'example.com/v2', host: 'z', port: '1' } },
    { type: 'DELETED', object: { apiVersion: 'example.com/v2', host: 'z', port: '1' } },
  ]
  t.match(await some(watch, `${v2}?${from}`, 4), young4)
  const count = webhook.taken()
  t.ok(count <= 3, `${count} objects were converted`)
  t.match(await some(watch, `${v2}?${from}`, 4), young4)
  t.equal(webhook.taken(), 0, 'once for all watches')
  t.match(await some(watch, `${v1}?${from}`, 4), [
    { object: { hostPort: 'a:80' } },
    { object: { hostPort: 'b:80' } },
    { object: { hostPort: 'z:1' } },
    { type: 'DELETED', object: { hostPort: 'z:1' } },
  ])
  t.match(await some(watch, `${v2}?${from}&fieldSelector=host=a`, 2), [
    { type: 'ADDED', object: { host: 'a' } },
    { type: 'DELETED', object: { host: 'a' } },
  ])
  t.match(await some(watch, `${v2}?watch=true`, 1), [{ type: 'ADDED', object: { host: 'b' } }], 'from what is there')
})

test('a webhook that fails is the error of requests and of watches about other versions only', async (t) => {
  const { ask, watch, webhook, clock, stored } = await shops(t)
  await ask('POST', v1, { body: old('a') })
  const { body } = await ask('GET', v1)
  const { resourceVersion } = body['metadata'] as { resourceVersion: string }
  await ask('POST', v1, { body: old('b') })
  webhook.answerBy(() => {
    throw new Error('Post "https://127.0.0.1:1/convert?timeout=30s": dial tcp 127.0.0.1:1: connect: connection refused')
  })
  const message = /^conversion webhook for example.com\/v1, Kind=Shop failed: Post .*connection refused$/
  t.match(await ask('GET', `${v2}/a`), { code: 500, body: { message } })
  t.match(await ask('GET', v2), { code: 500, body: { message } })
  t.match(await ask('PATCH', `${v2}/a`, { body: { port: '1' }, type: patchTypes.merge }), {
    code: 500,
    body: { message },
  })
  t.match(await ask('DELETE', `${v2}/a`), { code: 500 })
  t.match(await ask('POST', v2, { body: young('c') }), { code: 500, body: { message: /Kind=Shop failed/ } })
  t.equal(await stored('c'), undefined)
  const ending = some(watch, `${v2}?watch=true&resourceVersion=${resourceVersion}`, 1)
  for (let turn = 0; turn < 12; turn++) await clock.advance(1_000)
  t.match(await ending, [{ type: 'ERROR', object: { kind: 'Status', code: 500, message } }])
  t.match(await ask('GET', v1), { code: 200, body: { items: [{}, {}] } })
  t.match(await ask('DELETE', `${v1}/b`), { code: 200 })
  webhook.answerBy()
  t.match(await ask('GET', `${v2}/a`), { code: 200, body: { host: 'a' } })
})

test('what a webhook may not change is refused, in the words of Kubernetes', async (t) => {
  const { ask, webhook } = await shops(t)
  await ask('POST', v1, { body: old('a') })
  await ask('POST', v1, { body: old('b') })
  const first = 'conversion webhook for example.com/v1, Kind=Shop'
  const errorOf = async (
    change: (answer: ReturnType<typeof convertedAnswer>, first: Document) => object,
    path = `${v2}/a`,
  ) => {
    webhook.answerBy((request) => {
      const answer = convertedAnswer(request)
      const [object] = answer['convertedObjects'] as Document[]
      return { ...answer, ...change(answer, object ?? {}) }
    })
    const { code, body } = await ask('GET', path)
    t.equal(code, 500)
    return body['message']
  }
  const metadata = (given: object) => (_: unknown, object: Document) => ({
    convertedObjects: [{ ...object, metadata: { ...(object['metadata'] as object), ...given } }],
  })
  t.equal(
    await errorOf(metadata({ name: 'other' })),
    `${first} returned invalid object: must have the same name: a != other`,
  )
  t.equal(
    await errorOf(metadata({ namespace: 'x' })),
    `${first} returned invalid object: must have the same namespace: default != x`,
  )
  t.match(await errorOf(metadata({ uid: 'x' })), /returned invalid object: must have the same UID: .* != x$/)
  t.match(
    await errorOf(metadata({ labels: { a: 1 } })),
    /returned invalid metadata: metadata.labels\[a\] must be a string, but is number/,
  )
  t.match(
    await errorOf(metadata({ labels: { 'a b': '1' } })),
    /returned invalid metadata: metadata.labels: Invalid value/,
  )
  t.equal(
    await errorOf((_, object) => ({ convertedObjects: [{ ...object, apiVersion: 'example.com/v1' }] })),
    `${first} returned invalid object at index 0: invalid groupVersion (expected example.com/v2, received example.com/v1)`,
  )
  t.match(
    await errorOf((_, object) => ({ convertedObjects: [{ ...object, kind: 'X' }] })),
    /invalid kind \(expected Shop, received X\)$/,
  )
  t.equal(await errorOf(() => ({ convertedObjects: [] })), `${first} returned 0 objects, expected 1`)
  t.match(
    await errorOf((answer, object) => ({ convertedObjects: [object, ...(answer['convertedObjects'] as object[])] })),
    /returned 2 objects, expected 1$/,
  )
  t.match(
    await errorOf((_, object) => ({ convertedObjects: [object, object] }), v2),
    /returned invalid converted object at index 1: must have the same name: b != a$/,
  )
  t.match(await errorOf(() => ({ uid: 'other' })), /failed: expected response.uid=".*", got "other"$/)
  t.equal(await errorOf(() => ({ result: { status: 'Failure', message: 'no' } })), `${first} failed: no`)
  t.equal(await errorOf(() => ({ result: {} })), `${first} failed: response.result.status was '', not 'Success'`)
  webhook.answerBy((request) => {
    const answer = convertedAnswer(request)
    const objects = answer['convertedObjects'] as (Document & { readonly metadata: Document })[]
    const changed = { finalizers: ['a/b'], ownerReferences: [], generation: 9, labels: { new: 'x' } }
    return {
      ...answer,
      convertedObjects: objects.map((one) => ({ ...one, extra: 1, metadata: { ...one.metadata, ...changed } })),
    }
  })
  const { body } = await ask('GET', `${v2}/a`)
  t.match(body, { metadata: { labels: { new: 'x' }, generation: 1 } }, 'labels and annotations may change')
  t.notOk('finalizers' in (body['metadata'] as object))
  t.notOk('extra' in body, 'what the schema does not specify is dropped')
})

test('requests that wait for a webhook that hangs are bounded, and the kind itself goes on', async (t) => {
  const { ask, webhook, store, needs } = await shops(t)
  for (const name of ['a', 'b', 'c', 'd', 'e', 'f']) await ask('POST', v1, { body: old(name) })
  await needs.store.create('clusterrolebindings', {
    apiVersion: 'rbac.authorization.k8s.io/v1',
    kind: 'ClusterRoleBinding',
    metadata: { name: 'jane' },
    roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name: 'cluster-admin' },
    subjects: [{ kind: 'User', name: 'jane', apiGroup: 'rbac.authorization.k8s.io' }],
  })
  await needs.store.create('clusterroles', {
    apiVersion: 'rbac.authorization.k8s.io/v1',
    kind: 'ClusterRole',
    metadata: { name: 'cluster-admin' },
    rules: [{ apiGroups: ['*'], resources: ['*'], verbs: ['*'] }],
  })
  let release = () => {}
  const hung = new Promise<void>((resolve) => {
    release = resolve
  })
  webhook.taken()
  webhook.answerBy(async (request) => {
    await hung
    return convertedAnswer(request)
  })
  const reads = Array.from({ length: 30 }, (_, index) => ask('GET', `${v2}/${'abcdef'[index % 6]}`, { as: jane }))
  const [refused] = await Promise.all([
    Promise.race(reads.map(async (read) => ((await read).code === 429 ? read : new Promise<never>(() => undefined)))),
  ])
  t.match(refused, { code: 429, body: { message: /wait for the same conversion webhooks/ } })
  t.equal(webhook.reviews.length, 4, 'few calls at a time, and one for readers of the same object')
  t.match(await ask('GET', v1), { code: 200 }, 'its storage version is read')
  t.equal((await store.list('shops.example.com')).items.length, 6)
  release()
  const codes = (await Promise.all(reads)).map(({ code }) => code)
  t.same(new Set(codes), new Set([200, 429]))
  t.match(await ask('GET', `${v2}/a`, { as: { user: 'ada', groups: [mastersGroup] } }), { code: 200 })
})

test('managers of other versions keep and lose fields under the names that they have there', async (t) => {
  const { ask } = await shops(t)
  const apply = (path: string, manager: string, body: object, more = '') =>
    ask('PATCH', `${path}/a?fieldManager=${manager}${more}`, { body, type: patchTypes.apply })
  t.match(await apply(v1, 'old', old('a', 'a:80')), { code: 201 })
  const refused = await apply(v2, 'young', { ...young('a', 'b'), port: undefined })
  t.match(refused, { code: 409, body: { message: /conflict with "old": \.hostPort$/ } })
  t.match(await apply(v2, 'young', young('a', 'a')), { code: 200 }, 'the same value')
  const { body: merged } = await apply(v2, 'young', young('a', 'b'), '&force=true')
  const managersOf = ({ metadata }: Document) => {
    const { managedFields = [] } = metadata as { managedFields?: { manager: string; fieldsV1: object }[] }
    return new Map(managedFields.map(({ manager, fieldsV1 }) => [manager, Object.keys(fieldsV1)]))
  }
  t.same(managersOf(merged), new Map([['young', ['f:host', 'f:port']]]), 'it lost all that it had')
  const { body } = await ask('PATCH', `${v1}/a?fieldManager=third`, {
    body: { hostPort: 'c:1' },
    type: patchTypes.merge,
  })
  t.same(managersOf(body), new Map([['third', ['f:hostPort']]]))
})

test('a kind goes, and controllers scale its objects, as in Kubernetes', async (t) => {
  const { ask, webhook, scales, until, stored } = await shops(t)
  await ask('POST', v1, { body: old('a', 'a:80', { spec: { replicas: 1 } }) })
  const target = await scales.get('default', { apiVersion: 'example.com/v2', kind: 'Shop', name: 'a' })
  await scales.update(target, 4, 'autoscaler')
  t.match(await stored('a'), { hostPort: 'a:80', spec: { replicas: 4 } })
  webhook.answerBy(() => {
    throw new Error('gone')
  })
  const finalized = { metadata: { finalizers: ['example.com/keep'] } }
  t.match(await ask('PATCH', `${v1}/a`, { body: finalized, type: patchTypes.merge }), { code: 200 })
  t.match(await ask('DELETE', `${definitionsPath}/shops.example.com`), { code: 200 })
  await until(async () => 'deletionTimestamp' in ((await stored('a')) ?? { metadata: {} }).metadata)
  t.match(await ask('PATCH', `${v1}/a`, { body: { metadata: { finalizers: null } }, type: patchTypes.merge }), {
    code: 200,
  })
  t.equal(await stored('a'), undefined)
})

test('webhooks that name another version of a kind are sent its objects in that version', async (t) => {
  const webhook = aConversionWebhook()
  const seen: AdmissionRequest[] = []
  const { ask, define } = await aCustomApi(t, async (call) => {
    const review = JSON.parse(call.body) as { readonly kind: string; readonly request: AdmissionRequest }
    if (review.kind === 'ConversionReview') return webhook.call(call)
    seen.push(review.request)
    const patch = Buffer.from(JSON.stringify([{ op: 'replace', path: '/port', value: '99' }])).toString('base64')
    const patching = call.client.url?.endsWith('/mutate') && { patchType: 'JSONPatch', patch }
    return {
      apiVersion: 'admission.k8s.io/v1',
      kind: 'AdmissionReview',
      response: { uid: review.request.uid, allowed: !call.client.url?.endsWith('/deny'), ...patching },
    }
  })
  const configure = (kind: 'Mutating' | 'Validating', path: string, rule: object) =>
    ask('POST', `/apis/admissionregistration.k8s.io/v1/${kind.toLowerCase()}webhookconfigurations`, {
      body: {
        apiVersion: 'admissionregistration.k8s.io/v1',
        kind: `${kind}WebhookConfiguration`,
        metadata: { name: path },
        webhooks: [
          {
            name: `${path}.example.com`,
            clientConfig: { url: `https://127.0.0.1:1/${path}` },
            rules: [{ operations: ['*'], ...rule }],
            sideEffects: 'None',
            admissionReviewVersions: ['v1'],
          },
        ],
      },
    })
  await define(convertedDefinition())
  const ofV2 = { apiGroups: ['example.com'], apiVersions: ['v2'], resources: ['shops'] }
  t.match(await configure('Mutating', 'mutate', { ...ofV2, operations: ['CREATE', 'UPDATE'] }), { code: 201 })
  t.match(await ask('POST', v1, { body: old('a') }), { code: 201, body: { hostPort: 'a:99' } })
  t.match(seen, [{ kind: { version: 'v2' }, requestKind: { version: 'v1' }, object: { host: 'a', port: '80' } }])
  t.match(await ask('PATCH', `${v1}/a`, { body: { hostPort: 'b:1' }, type: patchTypes.merge }), {
    body: { hostPort: 'b:99' },
  })
  t.match(seen[1], { operation: 'UPDATE', object: { host: 'b', port: '1' }, oldObject: { host: 'a', port: '99' } })
  await configure('Validating', 'deny', { ...ofV2, operations: ['DELETE'] })
  t.match(await ask('DELETE', `${v1}/a`), {
    code: 400,
    body: { message: /admission webhook "deny.example.com" denied/ },
  })
  t.match(seen.at(-1), { operation: 'DELETE', object: null, oldObject: { apiVersion: 'example.com/v2', host: 'b' } })
  const ofDefinitions = {
    apiGroups: ['apiextensions.k8s.io'],
    apiVersions: ['*'],
    resources: ['customresourcedefinitions'],
  }
  await configure('Validating', 'deny', ofDefinitions)
  await ask('DELETE', '/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations/deny')
  await configure('Validating', 'deny', ofDefinitions)
  const { spec } = convertedDefinition()
  const names = { plural: 'others', kind: 'Other' }
  const other = { ...convertedDefinition(), metadata: { name: 'others.example.com' }, spec: { ...spec, names } }
  t.match(await ask('POST', definitionsPath, { body: other }), { code: 400, body: { message: /denied the request/ } })
})

test('what is kept is dropped when no client reads it', async (t) => {
  const { ask, webhook, clock } = await shops(t)
  await ask('POST', v1, { body: old('a') })
  await ask('GET', `${v2}/a`)
  webhook.taken()
  await clock.advance(3 * 60_000)
  await ask('GET', `${v2}/a`)
  t.equal(webhook.taken(), 0)
  await clock.advance(7 * 60_000)
  await ask('GET', `${v2}/a`)
  t.equal(webhook.taken(), 1)
})

test('a webhook that speaks v1beta1 only is sent that', async (t) => {
  const webhook = aConversionWebhook()
  const versions: string[] = []
  const { ask, define } = await aCustomApi(t, (call) => {
    versions.push((JSON.parse(call.body) as { apiVersion: string }).apiVersion)
    return webhook.call(call)
  })
  await define(convertedDefinition('v1', { conversionReviewVersions: ['v9', 'v1beta1', 'v1'] }))
  await ask('POST', v1, { body: old('a') })
  t.match(await ask('GET', `${v2}/a`), { code: 200, body: { host: 'a' } })
  t.same(versions, ['apiextensions.k8s.io/v1beta1'])
})

test('a conversion is validated as in Kubernetes', async (t) => {
  const { ask } = await aCustomApi(t, aConversionWebhook().call)
  const problemsOf = async (conversion: object) => {
    const definition = convertedDefinition()
    const body = { ...definition, spec: { ...definition.spec, conversion } }
    const answer = await ask('POST', `${definitionsPath}?dryRun=All`, { body })
    const { causes = [] } = (answer.body['details'] ?? {}) as { causes?: { field: string; message: string }[] }
    return causes.map(({ field, message }) => `${field}: ${message}`)
  }
  const clientConfig = { url: 'https://example.com/x' }
  const versions = { conversionReviewVersions: ['v1'] }
  const at = 'spec.conversion.webhook'
  const webhook = (given: object) => problemsOf({ strategy: 'Webhook', webhook: given })
  t.same(await problemsOf({ strategy: 'Other' }), [
    'spec.conversion.strategy: Unsupported value: "Other": supported values: "None", "Webhook"',
  ])
  t.same(await webhook(versions), [`${at}.clientConfig: Required value: required when strategy is set to Webhook`])
  t.same(await webhook({ clientConfig: {}, ...versions }), [
    `${at}.clientConfig: Required value: exactly one of url or service is required`,
  ])
  t.match(await webhook({ clientConfig: { url: 'http://x' }, ...versions }), [/'https' is the only allowed URL scheme/])
  t.match(await webhook({ clientConfig: { service: { namespace: 'a', name: 'b', port: 70_000 } }, ...versions }), [
    /service.port: .*port is not valid/,
  ])
  t.same(await webhook({ clientConfig }), [`${at}.conversionReviewVersions: Required value`])
  t.match(await webhook({ clientConfig, conversionReviewVersions: ['v2', 'v2'] }), [
    /conversionReviewVersions\[1\]: Invalid value: "v2": duplicate version/,
    /must include at least one of v1, v1beta1/,
  ])
  t.match(await problemsOf({ strategy: 'None', webhook: { clientConfig, ...versions } }), [
    /should not be set when strategy/,
  ])
  t.same(await webhook({ clientConfig, ...versions }), [])
})

test('a kind whose caBundle cannot be used is not served until it can', async (t) => {
  const { ask, conditionOf, until } = await aCustomApi(t, aConversionWebhook().call)
  const clientConfig = { url: 'https://127.0.0.1:1/', caBundle: Buffer.from('later').toString('base64') }
  const definition = convertedDefinition('v1', { clientConfig })
  t.match(await ask('POST', definitionsPath, { body: definition }), { code: 201 })
  await until(async () => (await conditionOf('shops.example.com', 'Established')) !== undefined)
  t.match(await conditionOf('shops.example.com', 'Established'), { status: 'False', reason: 'InvalidCABundle' })
  const patch = (caBundle: string | null) => ({ spec: { conversion: { webhook: { clientConfig: { caBundle } } } } })
  const path = `${definitionsPath}/shops.example.com`
  t.match(await ask('PATCH', path, { body: patch(null), type: patchTypes.merge }), { code: 200 })
  await until(async () => (await conditionOf('shops.example.com', 'Established'))?.status === 'True')
  t.match(await ask('PATCH', path, { body: patch('bm8='), type: patchTypes.merge }), {
    code: 422,
    body: { message: /unable to load root certificates/ },
  })
})

/** The first events of a watch. */
async function some(
  watch: (path: string, signal: AbortSignal) => AsyncGenerator<Document>,
  path: string,
  count: number,
): Promise<readonly Document[]> {
  const stop = new AbortController()
  const events: Document[] = []
  for await (const event of watch(path, stop.signal)) {
    events.push(event)
    if (events.length === count) break
  }
  stop.abort()
  return events
}

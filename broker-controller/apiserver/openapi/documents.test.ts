import { test } from 'tap'
import { ObjectMetaSchema } from '../../../api/meta.ts'
import { customResource, resourceRegistry } from '../../../api/resources.ts'
import { integer, object, oneOf, optional } from '../../../api/schema.ts'
import { leastCpuMs } from '../../../daemon/testing/growth.ts'
import { turnsAboveBudget } from '../../../daemon/testing/turn-budget.ts'
import { builtInKinds } from '../../assembly/control-plane.ts'
import type { StoredObject } from '../../store/store.ts'
import { anApi } from '../../testing/api-in-memory.ts'
import { aDefinition } from '../../testing/custom-api.ts'
import type { PackedDocument } from '../aggregator/packed-document.ts'
import { tableColumns } from '../handlers/cells.ts'
import type { KindStrategy } from '../handlers/strategy.ts'
import { liveKinds } from '../kinds/custom/live-kinds.ts'
import { openApiDocuments } from './documents.ts'

type Json = { readonly [name: string]: unknown }

const read = async (document: PackedDocument | undefined): Promise<Json> =>
  JSON.parse((await document?.bytes())?.toString() ?? 'null')

function at(value: unknown, ...path: readonly string[]): unknown {
  return path.reduce<unknown>((inner, name) => (inner as Json | undefined)?.[name], value)
}

function referencesIn(value: unknown): readonly string[] {
  if (typeof value !== 'object' || value === null) return []
  return Object.entries(value).flatMap(([name, inner]) =>
    name === '$ref' && typeof inner === 'string' ? [inner] : referencesIn(inner),
  )
}

const core = 'io.k8s.api.core.v1.'

test('every group and version has a document whose references lead somewhere', async (t) => {
  const documents = openApiDocuments(builtInKinds, '0.1.0')
  const { paths } = await read(await documents.index())
  const names = Object.keys(paths as Json)
  t.ok(names.includes('api/v1'))
  t.ok(names.includes('apis/policy/v1'))
  t.ok(names.includes('apis/authorization.k8s.io/v1'))
  for (const name of names) {
    const made = await documents.ofGroup(name)
    t.match(at(paths, name, 'serverRelativeURL'), `/openapi/v3/${name}?hash=${made?.hash}`)
    const document = await read(made)
    const missing = referencesIn(document).filter((ref) => at(document, ...ref.slice(2).split('/')) === undefined)
    t.same(missing, [], name)
  }
  const v2 = await read(await documents.v2())
  t.same(
    referencesIn(v2).filter((ref) => at(v2, ...ref.slice(2).split('/')) === undefined),
    [],
    'v2',
  )
  t.equal(documents.ofGroup('apis/apps/v9'), undefined)
  t.equal(documents.ofGroup('__proto__'), undefined)
})

test('the fields that every object has are described in the words that clients look for', async (t) => {
  const documents = openApiDocuments(builtInKinds, '0.1.0')
  const document = await read(await documents.ofGroup('api/v1'))
  const properties = (type: string) => at(document, 'components', 'schemas', type, 'properties')
  // The suite of Kubernetes reads them in what kubectl explains.
  t.match(properties(`${core}Pod`), {
    apiVersion: { description: /^APIVersion defines/ },
    kind: { description: /^Kind is/ },
    metadata: { description: /^Standard object's metadata/ },
  })
  t.match(properties('io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta'), {
    creationTimestamp: { description: /^CreationTimestamp is a timestamp/ },
  })
})

test('types have the names and keywords by which clients find and patch them', async (t) => {
  const documents = openApiDocuments(builtInKinds, '0.1.0')
  const document = await read(await documents.ofGroup('api/v1'))
  const type = (name: string) => at(document, 'components', 'schemas', name)
  t.match(type(`${core}Pod`), {
    type: 'object',
    'x-kubernetes-group-version-kind': [{ group: '', kind: 'Pod', version: 'v1' }],
  })
  t.match(type(`${core}PodSpec`), {
    required: ['containers'],
    properties: {
      containers: {
        type: 'array',
        items: { $ref: `#/components/schemas/${core}Container` },
        'x-kubernetes-list-type': 'map',
        'x-kubernetes-list-map-keys': ['name'],
        'x-kubernetes-patch-merge-key': 'name',
        'x-kubernetes-patch-strategy': 'merge',
      },
      volumes: { 'x-kubernetes-patch-strategy': 'merge,retainKeys' },
      tolerations: { 'x-kubernetes-list-type': 'atomic' },
    },
  })
  t.match(at(type(`${core}Container`), 'properties', 'ports'), {
    'x-kubernetes-list-map-keys': ['containerPort', 'protocol'],
    'x-kubernetes-patch-merge-key': 'containerPort',
  })
  t.match(at(type(`${core}PodSpec`), 'properties', 'nodeSelector'), { 'x-kubernetes-map-type': 'atomic' })
  t.match(type('io.k8s.apimachinery.pkg.apis.meta.v1.LabelSelector'), { 'x-kubernetes-map-type': 'atomic' })
  t.equal(at(type(`${core}ConfigMap`), 'properties', 'data', 'x-kubernetes-map-type'), undefined)
  t.match(at(type(`${core}PodStatus`), 'properties', 'hostIPs'), {
    'x-kubernetes-list-type': 'atomic',
    'x-kubernetes-patch-merge-key': 'ip',
  })
  const patching = at(
    document,
    'paths',
    '/api/v1/namespaces/{namespace}/pods/{name}',
    'patch',
    'requestBody',
    'content',
  )
  t.ok(Object.keys(patching as Json).includes('application/apply-patch+yaml'))
  t.same(at(type(`${core}NodeCondition`), 'properties', 'status', 'enum'), ['True', 'False', 'Unknown'])
  t.match(at(document, 'paths', '/api/v1/namespaces/{namespace}/pods/{name}', 'patch'), {
    operationId: 'patchCoreV1NamespacedPod',
    'x-kubernetes-group-version-kind': { group: '', kind: 'Pod', version: 'v1' },
  })
  const renamed = Object.keys(at(document, 'components', 'schemas') as Json).filter((name) => name.endsWith('_'))
  t.same(renamed, [], 'no two types share a name')
})

test('a kind that is registered at start is described too', async (t) => {
  const schema = object({
    apiVersion: oneOf('example.com/v1'),
    kind: oneOf('Widget'),
    metadata: ObjectMetaSchema,
    spec: optional(object({ size: optional(integer) })),
  })
  const widget: KindStrategy = {
    ...customResource('widgets', 'Widget', 'example.com', schema),
    table: { columns: tableColumns('Name'), cells: () => [] },
    selectableFields: [],
    subresources: {},
  }
  const kinds = resourceRegistry<KindStrategy>([...builtInKinds.all, widget])
  const { ask } = await anApi(t, { kinds })
  t.match(await ask('GET', '/openapi/v3/apis/example.com/v1'), {
    code: 200,
    body: {
      paths: { '/apis/example.com/v1/widgets/{name}': { patch: {} } },
      components: { schemas: { 'com.example.v1.WidgetSpec': { properties: { size: { type: 'integer' } } } } },
    },
  })
})

test('the document in the older form has every path and type, and names the program', async (t) => {
  const v2 = await read(await openApiDocuments(resourceRegistry(builtInKinds.all), '0.1.0').v2())
  t.match(v2, { swagger: '2.0', info: { title: 'Bramble', version: '0.1.0' } })
  t.ok(at(v2, 'paths', '/api/v1/nodes'))
  t.ok(at(v2, 'paths', '/apis/policy/v1/namespaces/{namespace}/poddisruptionbudgets'))
  t.ok(at(v2, 'definitions', `${core}Pod`))
})

test('a list has its own type; what is only asked for has none', async (t) => {
  const documents = openApiDocuments(resourceRegistry(builtInKinds.all), '0.1.0')
  const schemas = async (group: string) => at(await read(await documents.ofGroup(group)), 'components', 'schemas')
  const meta = 'io.k8s.apimachinery.pkg.apis.meta.v1.'
  t.same(at(await schemas('api/v1'), `${core}PodList`), {
    type: 'object',
    properties: {
      apiVersion: { type: 'string' },
      items: { type: 'array', items: { $ref: `#/components/schemas/${core}Pod` } },
      kind: { type: 'string' },
      metadata: { $ref: `#/components/schemas/${meta}ListMeta` },
    },
    required: ['items'],
    'x-kubernetes-group-version-kind': [{ group: '', kind: 'PodList', version: 'v1' }],
  })
  const reviews = Object.keys((await schemas('apis/authentication.k8s.io/v1')) as Json)
  t.ok(reviews.some((name) => name.endsWith('.TokenReview')))
  t.notOk(reviews.some((name) => name.endsWith('.TokenReviewList')))
})

// staging/src/k8s.io/apimachinery/pkg/apis/meta/v1/types.go: Status, DeleteOptions, Patch.
test('the types of answers and of deletions have the fields that are read and written', async (t) => {
  const document = await read(await openApiDocuments(resourceRegistry(builtInKinds.all), '0.1.0').ofGroup('api/v1'))
  const meta = 'io.k8s.apimachinery.pkg.apis.meta.v1.'
  const fields = (name: string) =>
    Object.keys((at(document, 'components', 'schemas', `${meta}${name}`, 'properties') ?? {}) as Json).sort()
  t.same(fields('ListMeta'), ['continue', 'remainingItemCount', 'resourceVersion', 'selfLink'])
  t.same(fields('Status'), ['apiVersion', 'code', 'details', 'kind', 'message', 'metadata', 'reason', 'status'])
  t.same(fields('StatusDetails'), ['causes', 'group', 'kind', 'name', 'retryAfterSeconds', 'uid'])
  t.same(fields('StatusCause'), ['field', 'message', 'reason'])
  t.same(fields('Preconditions'), ['resourceVersion', 'uid'])
  for (const field of ['dryRun', 'gracePeriodSeconds', 'orphanDependents', 'preconditions', 'propagationPolicy']) {
    t.ok(fields('DeleteOptions').includes(field), field)
  }
  t.same(at(document, 'components', 'schemas', `${meta}Patch`), { type: 'object' })
})

test('a hash is 32 hexadecimal digits in capitals, as those of kube-openapi', async (t) => {
  const documents = openApiDocuments(resourceRegistry(builtInKinds.all), '0.1.0')
  t.match((await documents.ofGroup('api/v1'))?.hash, /^[0-9A-F]{32}$/)
  t.equal(openApiDocuments(builtInKinds, '0.1.0'), openApiDocuments(builtInKinds, '0.1.0'), 'kept for its kinds')
})

test('a document of a custom kind has another hash with each definition and each version of the program', async (t) => {
  const hashOf = async (generation: number, version: string) => {
    const kinds = liveKinds(builtInKinds)
    const { metadata, ...content } = aDefinition({ type: 'object' })
    const stamps = { uid: '1', resourceVersion: '1', creationTimestamp: '', generation }
    const status = { conditions: [{ type: 'Established', status: 'True' }] }
    const definition = { ...content, metadata: { ...metadata, ...stamps }, status }
    kinds.change(metadata.name, definition as StoredObject<'customresourcedefinitions'>)
    return (await openApiDocuments(kinds, version).ofGroup('apis/example.com/v1'))?.hash
  }
  const hash = await hashOf(1, '1.0')
  t.equal(await hashOf(1, '1.0'), hash)
  t.not(await hashOf(2, '1.0'), hash)
  t.not(await hashOf(1, '1.1'), hash)
})

const manyFields = Object.fromEntries(
  Array.from({ length: 12_000 }, (_, index) => [`field${index}`, { type: 'string', description: 'x'.repeat(60) }]),
)

/** Three definitions nearly as large as an object may be. */
function largeKinds() {
  const kinds = liveKinds(builtInKinds)
  for (const plural of ['as', 'bs', 'cs']) {
    const kind = plural.toUpperCase()
    const names = { plural, kind, singular: plural, listKind: `${kind}List` }
    const { spec, ...content } = aDefinition({ type: 'object', properties: manyFields }, { spec: { names } })
    const stamps = { uid: plural, resourceVersion: '1', creationTimestamp: '', generation: 1 }
    const status = { conditions: [{ type: 'Established', status: 'True' }] }
    const definition = { ...content, spec, metadata: { name: `${plural}.example.com`, ...stamps }, status }
    kinds.change(definition.metadata.name, definition as unknown as StoredObject<'customresourcedefinitions'>)
  }
  return kinds
}

test('documents of the largest definitions are made in short turns', async (t) => {
  const bytes = 3 * JSON.stringify(manyFields).length
  // Documents of other kinds are made again.
  let documents = openApiDocuments(largeKinds(), '0.1.0')
  const prepare = async () => {
    documents = openApiDocuments(largeKinds(), '0.1.0')
  }
  const { above } = await turnsAboveBudget([
    { what: 'v2', bytes, prepare, act: () => documents.v2() },
    { what: 'v2 in protobuf', bytes, prepare, act: () => documents.v2Protobuf() },
    { what: 'v3', bytes, prepare, act: async () => documents.ofGroup('apis/example.com/v1') },
  ])
  t.same(above, [])
})

test('a document is built once, in less than 100 ms of CPU time', async (t) => {
  // A registry of its own: nothing of it is built yet.
  const unbuilt = () => openApiDocuments(resourceRegistry(builtInKinds.all), '0.1.0')
  const tookMs = await leastCpuMs(() => unbuilt().ofGroup('api/v1'))
  t.ok(tookMs < 100, `api/v1 in ${tookMs} ms`)
  const documents = unbuilt()
  t.equal(await documents.ofGroup('api/v1'), await documents.ofGroup('api/v1'))
  t.equal(await documents.v2(), await documents.v2())
})

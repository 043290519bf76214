import { test } from 'tap'
import { ObjectMetaSchema } from '../../../api/meta.ts'
import { customResource, resourceRegistry } from '../../../api/resources.ts'
import { integer, object, oneOf, optional } from '../../../api/schema.ts'
import { builtInKinds } from '../../control-plane.ts'
import { anApi } from '../../testing/api-in-memory.ts'
import { tableColumns } from '../handlers/cells.ts'
import type { KindStrategy } from '../handlers/strategy.ts'
import { type OpenApiDocument, openApiDocuments } from './documents.ts'

type Json = { readonly [name: string]: unknown }

const read = (document: OpenApiDocument | undefined): Json => JSON.parse(document?.bytes.toString() ?? 'null')

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
  const { paths } = read(await documents.index())
  const names = Object.keys(paths as Json)
  t.ok(names.includes('api/v1'))
  t.ok(names.includes('apis/policy/v1'))
  t.ok(names.includes('apis/authorization.k8s.io/v1'))
  for (const name of names) {
    const made = await documents.ofGroup(name)
    t.match(at(paths, name, 'serverRelativeURL'), `/openapi/v3/${name}?hash=${made?.hash}`)
    const document = read(made)
    const missing = referencesIn(document).filter((ref) => at(document, ...ref.slice(2).split('/')) === undefined)
    t.same(missing, [], name)
  }
  const v2 = read(await documents.v2())
  t.same(
    referencesIn(v2).filter((ref) => at(v2, ...ref.slice(2).split('/')) === undefined),
    [],
    'v2',
  )
  t.equal(documents.ofGroup('apis/apps/v9'), undefined)
  t.equal(documents.ofGroup('__proto__'), undefined)
})

test('types have the names and keywords by which clients find and patch them', async (t) => {
  const documents = openApiDocuments(builtInKinds, '0.1.0')
  const document = read(await documents.ofGroup('api/v1'))
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

test('a document is built once, in less than 100 ms of CPU time', async (t) => {
  // A registry of its own: nothing of it is built yet.
  const documents = openApiDocuments(resourceRegistry(builtInKinds.all), '0.1.0')
  const before = process.cpuUsage()
  const core = await documents.ofGroup('api/v1')
  const { user, system } = process.cpuUsage(before)
  t.ok((user + system) / 1000 < 100, `api/v1: ${core?.bytes.length} bytes in ${(user + system) / 1000} ms`)
  t.equal(await documents.ofGroup('api/v1'), core)
  t.equal(await documents.v2(), await documents.v2())
})

/**
 * The paths of a kind, with what may be done on them. kubectl reads the group, version and kind of a `patch` and its
 * parameter `fieldValidation`; generators and chart tools read the rest.
 */

import type { AnyObject } from '../../../api/meta.ts'
import { isCustomName, type Resource } from '../../../api/resources.ts'
import type { DefinedKind, Subresource } from '../handlers/strategy.ts'
import { capitalised, kindTypeName, operationPrefix, wellKnownTypes } from './type-names.ts'
import type { JsonSchema, OpenApiVersion } from './type-schemas.ts'

/** A kind and what can be done with it. A kind that is answered and never stored has no subresources and is `created` only. */
export type DescribedKind = {
  readonly resource: Resource & { readonly defined?: DefinedKind; readonly hasNoCollectionDeletion?: true }
  readonly subresources: { readonly [name: string]: Subresource<AnyObject> }
  readonly isStored: boolean
}

/** What describes an operation, before it is written in one version of OpenAPI. */
type Operation = {
  readonly method: 'get' | 'post' | 'put' | 'patch' | 'delete'
  readonly action: string
  readonly id: string
  readonly kind: Pick<Resource, 'group' | 'version' | 'kind'>
  readonly query: readonly Parameter[]
  /** The types of a patch. */
  readonly patchTypes?: readonly string[]
  /** The type of the body; undefined: it has none. */
  readonly body?: string
  readonly answer: string
}

type Parameter = { readonly name: string; readonly type: 'string' | 'boolean' | 'integer' }
const text = (name: string): Parameter => ({ name, type: 'string' })
const truth = (name: string): Parameter => ({ name, type: 'boolean' })
const number = (name: string): Parameter => ({ name, type: 'integer' })

const pretty = text('pretty')
const listing = [
  pretty,
  truth('allowWatchBookmarks'),
  text('continue'),
  text('fieldSelector'),
  text('labelSelector'),
  number('limit'),
  text('resourceVersion'),
  text('resourceVersionMatch'),
  truth('sendInitialEvents'),
  number('timeoutSeconds'),
  truth('watch'),
]
const writing = [pretty, text('dryRun'), text('fieldManager'), text('fieldValidation')]
const patching = [...writing, truth('force')]
const deleting = [
  pretty,
  text('dryRun'),
  number('gracePeriodSeconds'),
  truth('orphanDependents'),
  text('propagationPolicy'),
]
const deletingMany = [...deleting, text('fieldSelector'), text('labelSelector')]

const strategicMergePatch = 'application/strategic-merge-patch+json'
const patchTypes = [
  'application/json-patch+json',
  'application/merge-patch+json',
  strategicMergePatch,
  'application/apply-patch+yaml',
]

/** kubectl sends strategic merge patches where the document names them. */
function patchTypesOf({ id = '' }: { readonly id?: string }): readonly string[] {
  return isCustomName(id) ? patchTypes.filter((type) => type !== strategicMergePatch) : patchTypes
}

/** The paths of a kind: each an object of its operations and the parameters in the path. */
export function pathsOf(described: DescribedKind, version: OpenApiVersion): { readonly [path: string]: JsonSchema } {
  const { resource } = described
  const { group, version: apiVersion, name, namespaced } = resource
  const base = group === '' ? `/api/${apiVersion}` : `/apis/${group}/${apiVersion}`
  const collection = namespaced ? `${base}/namespaces/{namespace}/${name}` : `${base}/${name}`
  const inside = namespaced ? ['namespace'] : []
  const paths: [string, JsonSchema][] = []
  const add = (path: string, pathParameters: readonly string[], operations: readonly Operation[]) => {
    const written = operations.map((one) => [one.method, operationIn(version, one)])
    const parameters = pathParameters.map((parameter) => pathParameter(version, parameter))
    const shared = parameters.length > 0 ? { parameters } : {}
    paths.push([path, { ...Object.fromEntries(written), ...shared }])
  }
  if (!described.isStored) {
    add(collection, inside, [creation(resource, kindTypeName(resource))])
    return Object.fromEntries(paths)
  }
  if (namespaced) add(`${base}/${name}`, [], [listOf(resource, 'ForAllNamespaces')])
  const ofMany = described.resource.hasNoCollectionDeletion ? [] : [deletionOfMany(resource)]
  add(collection, inside, [listOf(resource, ''), creation(resource, kindTypeName(resource)), ...ofMany])
  const item = `${collection}/{name}`
  add(item, [...inside, 'name'], [...partOperations(resource, ''), deletion(resource)])
  for (const [sub, row] of Object.entries(described.subresources)) {
    const operations = subresourceOperations(resource, sub, row)
    add(`${item}/${sub}`, [...inside, 'name'], operations)
  }
  return Object.fromEntries(paths)
}

function idOf(verb: string, resource: Resource, scope: string, suffix = ''): string {
  return `${verb}${operationPrefix(resource)}${scope}${resource.kind}${suffix}`
}

const scopeOf = ({ namespaced }: Resource) => (namespaced ? 'Namespaced' : '')

function listOf(resource: Resource, suffix: '' | 'ForAllNamespaces'): Operation {
  const id = idOf('list', resource, suffix === '' ? scopeOf(resource) : '', suffix)
  return { method: 'get', action: 'list', id, kind: resource, query: listing, answer: listTypeName(resource) }
}

/** The type of the lists of a kind. */
export function listTypeName(resource: Resource): string {
  const { kind, listKind = `${kind}List` } = resource
  return kindTypeName({ ...resource, kind: listKind })
}

function creation(resource: Resource, type: string): Operation {
  const id = idOf('create', resource, scopeOf(resource))
  return { method: 'post', action: 'post', id, kind: resource, query: writing, body: type, answer: type }
}

function deletionOfMany(resource: Resource): Operation {
  return {
    method: 'delete',
    action: 'deletecollection',
    id: idOf('delete', resource, `Collection${scopeOf(resource)}`),
    kind: resource,
    query: deletingMany,
    body: wellKnownTypes.deleteOptions,
    answer: wellKnownTypes.status,
  }
}

function deletion(resource: Resource): Operation {
  return {
    method: 'delete',
    action: 'delete',
    id: idOf('delete', resource, scopeOf(resource)),
    kind: resource,
    query: deleting,
    body: wellKnownTypes.deleteOptions,
    answer: wellKnownTypes.status,
  }
}

function subresourceOperations(resource: Resource, sub: string, row: Subresource<AnyObject>): readonly Operation[] {
  if (row.access === 'update') return partOperations(resource, sub)
  return row.access === 'view' ? partOperations(resource, sub, row) : [action(resource, sub, row)]
}

/** Reading and changing the object, or a part of it as an object of `kind`. */
function partOperations(
  resource: Resource,
  sub: string,
  kind: Pick<Resource, 'group' | 'version' | 'kind'> = resource,
): readonly Operation[] {
  const type = kindTypeName(kind)
  const id = (verb: string) => idOf(verb, resource, scopeOf(resource), capitalised(sub))
  const common = { kind, answer: type }
  return [
    { ...common, method: 'get', action: 'get', id: id('read'), query: [pretty] },
    { ...common, method: 'put', action: 'put', id: id('replace'), query: writing, body: type },
    {
      ...common,
      method: 'patch',
      action: 'patch',
      id: id('patch'),
      query: patching,
      body: wellKnownTypes.patch,
      patchTypes: patchTypesOf(resource),
    },
  ]
}

type ActionKind = { readonly kind: string; readonly group?: string; readonly version?: string }

function action(resource: Resource, sub: string, row: ActionKind): Operation {
  const kind = { group: row.group ?? resource.group, version: row.version ?? resource.version, kind: row.kind }
  const id = idOf('create', resource, scopeOf(resource), capitalised(sub))
  return { method: 'post', action: 'post', id, kind, query: writing, answer: wellKnownTypes.status }
}

function operationIn(version: OpenApiVersion, operation: Operation): JsonSchema {
  const { id, action: actionName, kind, query, patchTypes: consumes = ['*/*'] } = operation
  const { group, version: apiVersion, kind: name } = kind
  const known = {
    'x-kubernetes-action': actionName,
    'x-kubernetes-group-version-kind': { group, version: apiVersion, kind: name },
  }
  const parameters = query.map((one) => queryParameter(version, one))
  const body = bodyIn(version, operation)
  const common = { operationId: id, tags: [operationPrefix(kind)] }
  if (version === 'v3') {
    return { ...common, parameters, ...body, responses: answersIn(version, operation), ...known }
  }
  const sent = operation.body === undefined ? [] : [body]
  return {
    ...common,
    consumes,
    produces: ['application/json', 'application/yaml'],
    parameters: [...sent, ...parameters],
    responses: answersIn(version, operation),
    ...known,
  }
}

function bodyIn(version: OpenApiVersion, { method, body, patchTypes: types = ['*/*'] }: Operation): JsonSchema {
  if (body === undefined) return {}
  const required = method !== 'delete'
  if (version === 'v2') return { name: 'body', in: 'body', required, schema: referenceTo(version, body) }
  const content = Object.fromEntries(types.map((type) => [type, { schema: referenceTo(version, body) }]))
  return { requestBody: { ...(required && { required }), content } }
}

function answersIn(version: OpenApiVersion, { answer, method }: Operation): JsonSchema {
  const schema = referenceTo(version, answer)
  const content = { 'application/json': { schema }, 'application/yaml': { schema } }
  const good = { description: 'OK', ...(version === 'v2' ? { schema } : { content }) }
  return { [method === 'post' ? 201 : 200]: good, 401: { description: 'Unauthorized' } }
}

function referenceTo(version: OpenApiVersion, type: string): JsonSchema {
  return { $ref: `${version === 'v2' ? '#/definitions/' : '#/components/schemas/'}${type}` }
}

function queryParameter(version: OpenApiVersion, { name, type }: Parameter): JsonSchema {
  const shape = { type, uniqueItems: true }
  return { name, in: 'query', ...(version === 'v2' ? shape : { schema: shape }) }
}

function pathParameter(version: OpenApiVersion, name: string): JsonSchema {
  const shape = { type: 'string', uniqueItems: true }
  return { name, in: 'path', required: true, ...(version === 'v2' ? shape : { schema: shape }) }
}

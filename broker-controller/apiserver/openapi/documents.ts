/**
 * The OpenAPI documents of the kinds that are served: 3.0 for each group and version, 2.0 in one. Each is built when it
 * is first asked for, a group at a time with a turn of the event loop in between, and kept as bytes.
 */
import { createHash } from 'node:crypto'
import { setImmediate } from 'node:timers/promises'
import { apiVersionOf, type Resource } from '../../../api/resources.ts'
import { bool, integer, list, object, optional, text } from '../../../api/schema.ts'
import { systemClock } from '../../../daemon/clock.ts'
import type { KindRegistry } from '../handlers/strategy.ts'
import { inPieces } from '../handlers/turns.ts'
import { reviewKinds } from '../reviews/review-kinds.ts'
import { customType } from './custom-types.ts'
import { type DescribedKind, listTypeName, pathsOf } from './operations.ts'
import { protobufDocument } from './protobuf-document.ts'
import { kindTypeName, wellKnownTypes } from './type-names.ts'
import { type JsonSchema, type OpenApiVersion, type TypeRegistry, typeRegistry } from './type-schemas.ts'

export type OpenApiDocument = {
  readonly bytes: Buffer
  /** Hash of the bytes; clients cache the document under it. */
  readonly hash: string
}

export type OpenApiDocuments = {
  /** `/openapi/v3`: where the document of each group and version is, with its hash. */
  readonly index: () => Promise<OpenApiDocument>
  /** `api/v1`, `apis/policy/v1`; undefined where nothing is served there. */
  readonly ofGroup: (path: string) => Promise<OpenApiDocument> | undefined
  /** `/openapi/v2` in JSON. */
  readonly v2: () => Promise<OpenApiDocument>
  /** The same in protobuf. */
  readonly v2Protobuf: () => Promise<OpenApiDocument>
}

const byKinds = new WeakMap<KindRegistry['served'], OpenApiDocuments>()

/** Documents of the kinds that are served now; they stay the same until the kinds change. `version`: of the program. */
export function openApiDocuments(kinds: KindRegistry, version: string): OpenApiDocuments {
  const { served } = kinds
  const known = byKinds.get(served)
  if (known !== undefined) return known
  const documents = makeDocuments(groupsOf(served), { title: 'Bramble', version })
  byKinds.set(served, documents)
  return documents
}

type Info = { readonly title: string; readonly version: string }
type Groups = ReadonlyMap<string, readonly DescribedKind[]>

function makeDocuments(groups: Groups, info: Info): OpenApiDocuments {
  const built = new Map<string, Promise<OpenApiDocument>>()
  const once = (name: string, build: () => Promise<OpenApiDocument>) => {
    const present = built.get(name)
    if (present !== undefined) return present
    const made = build()
    built.set(name, made)
    return made
  }
  const ofGroup = (path: string) => {
    const group = groups.get(path)
    return group && once(`v3 ${path}`, () => documentOfGroup(group, info))
  }
  return {
    ofGroup,
    index: () => once('index', () => indexOf(groups, info, ofGroup)),
    v2: () => once('v2', async () => documentOf(await wholeDocument(groups, info))),
    v2Protobuf: () =>
      once('v2 protobuf', async () => {
        const bytes = await inPieces(protobufDocument(await wholeDocument(groups, info)), systemClock)
        return { bytes, hash: hashOf(bytes) }
      }),
  }
}

const ofGroups = new WeakMap<
  object,
  { readonly kinds: readonly object[]; readonly document: Promise<OpenApiDocument> }
>()

/** Most groups stay as they are when a kind is defined: their documents do, too. */
function documentOfGroup(group: readonly DescribedKind[], info: Info): Promise<OpenApiDocument> {
  const kinds = group.map(({ resource }) => resource)
  const [first = kinds] = kinds
  const known = ofGroups.get(first)
  if (known?.kinds.length === kinds.length && known.kinds.every((kind, index) => kind === kinds[index])) {
    return known.document
  }
  const document = (async () => {
    const stamp = stampOf(group, info)
    const { bytes, hash } = documentOf(groupDocument(group, info))
    return { bytes, hash: stamp ?? hash }
  })()
  ofGroups.set(first, { kinds, document })
  return document
}

/**
 * The hash of a document of definitions, which needs no document; undefined: kinds of the group are built in. Another version of the program
 * may describe them otherwise, and clients keep a document for good.
 */
function stampOf(group: readonly DescribedKind[], { version }: Info): string | undefined {
  const stamps = group.map(({ resource }) => resource.defined?.stamp)
  return stamps.includes(undefined) ? undefined : hashOf(JSON.stringify([version, ...stamps]))
}

/** By the path of their documents. */
function groupsOf(served: KindRegistry['served']): Groups {
  const groups = new Map<string, DescribedKind[]>()
  const add = (kind: DescribedKind) => {
    const path = documentPath(kind.resource)
    groups.set(path, [...(groups.get(path) ?? []), kind])
  }
  for (const resource of served) add({ resource, subresources: resource.subresources, isStored: true })
  for (const resource of Object.values<Resource>(reviewKinds)) add({ resource, subresources: {}, isStored: false })
  return groups
}

function documentPath(resource: Resource): string {
  return `${resource.group === '' ? 'api' : 'apis'}/${apiVersionOf(resource)}`
}

async function indexOf(
  groups: Groups,
  info: Info,
  ofGroup: (path: string) => Promise<OpenApiDocument> | undefined,
): Promise<OpenApiDocument> {
  const paths: { [path: string]: JsonSchema } = {}
  for (const [path, group] of groups) {
    const hash = stampOf(group, info) ?? (await ofGroup(path))?.hash
    paths[path] = { serverRelativeURL: `/openapi/v3/${path}?hash=${hash}` }
    await setImmediate()
  }
  return documentOf({ paths })
}

function groupDocument(group: readonly DescribedKind[], info: Info): JsonSchema {
  const types = typeRegistry('v3')
  addAnswers(types)
  for (const kind of group) addTypesOf(kind, types, 'v3')
  return { openapi: '3.0.0', info, paths: pathsOfGroup(group, 'v3'), components: { schemas: types.all() } }
}

async function wholeDocument(groups: Groups, info: Info): Promise<JsonSchema> {
  const types = typeRegistry('v2')
  addAnswers(types)
  let paths: { readonly [path: string]: JsonSchema } = {}
  for (const group of groups.values()) {
    for (const kind of group) {
      addTypesOf(kind, types, 'v2')
      if (kind.resource.defined) await setImmediate()
    }
    paths = { ...paths, ...pathsOfGroup(group, 'v2') }
    await setImmediate()
  }
  return { swagger: '2.0', info, paths, definitions: types.all() }
}

function pathsOfGroup(
  group: readonly DescribedKind[],
  version: OpenApiVersion,
): { readonly [path: string]: JsonSchema } {
  return Object.assign({}, ...group.map((kind) => pathsOf(kind, version)))
}

/** The type of the kind, and of its lists. kubectl finds them by what is in `x-kubernetes-group-version-kind`. */
function addTypesOf(
  { resource, subresources, isStored }: DescribedKind,
  types: TypeRegistry,
  openApi: OpenApiVersion,
): void {
  for (const row of Object.values(subresources)) {
    if (row.access !== 'view') continue
    const { group, version, kind } = row
    types.add(kindTypeName(row), row.schema, { 'x-kubernetes-group-version-kind': [{ group, kind, version }] })
  }
  const { group, version, kind, schema, defined, listKind = `${kind}List` } = resource
  const name = kindTypeName(resource)
  const known = (of: string) => ({ 'x-kubernetes-group-version-kind': [{ group, kind: of, version }] })
  if (defined === undefined) types.add(name, schema, known(kind))
  else types.addPlain(name, { ...customType(defined.schema, openApi, types), ...known(kind) })
  if (!isStored) return
  types.addPlain(listTypeName(resource), {
    type: 'object',
    properties: {
      apiVersion: { type: 'string' },
      items: { type: 'array', items: types.reference(name) },
      kind: { type: 'string' },
      metadata: types.reference(wellKnownTypes.listMeta),
    },
    required: ['items'],
    ...known(listKind),
  })
}

const listMeta = object({
  continue: optional(text),
  remainingItemCount: optional(integer),
  resourceVersion: optional(text),
  selfLink: optional(text),
})
const status = object({
  apiVersion: optional(text),
  kind: optional(text),
  metadata: optional(object('meta.v1.ListMeta', listMeta.properties)),
  status: optional(text),
  message: optional(text),
  reason: optional(text),
  details: optional(
    object('meta.v1.StatusDetails', {
      name: optional(text),
      group: optional(text),
      kind: optional(text),
      uid: optional(text),
      causes: optional(
        list(object('meta.v1.StatusCause', { reason: optional(text), message: optional(text), field: optional(text) })),
      ),
      retryAfterSeconds: optional(integer),
    }),
  ),
  code: optional(integer),
})
const deleteOptions = object({
  apiVersion: optional(text),
  kind: optional(text),
  dryRun: optional(list(text)),
  gracePeriodSeconds: optional(integer),
  orphanDependents: optional(bool),
  preconditions: optional(object('meta.v1.Preconditions', { resourceVersion: optional(text), uid: optional(text) })),
  propagationPolicy: optional(text),
})

/** The types that the operations of every kind refer to. */
function addAnswers(types: TypeRegistry): void {
  types.add(wellKnownTypes.listMeta, listMeta)
  types.add(wellKnownTypes.status, status)
  types.add(wellKnownTypes.deleteOptions, deleteOptions)
  types.addPlain(wellKnownTypes.patch, { type: 'object' })
}

function documentOf(content: JsonSchema): OpenApiDocument {
  const bytes = Buffer.from(JSON.stringify(content))
  return { bytes, hash: hashOf(bytes) }
}

/** As clients name a document by its bytes. */
export function hashOf(content: Buffer | string): string {
  return createHash('sha256').update(content).digest('hex').slice(0, 32).toUpperCase()
}

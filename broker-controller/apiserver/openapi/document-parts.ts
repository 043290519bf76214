/** The paths and types of a document, which are put together before they are written, and written one at a time. */
import { ObjectMetaSchema } from '../../../api/meta.ts'
import { bool, integer, list, object, optional, text } from '../../../api/schema.ts'
import { systemClock } from '../../../daemon/clock.ts'
import { pauses } from '../handlers/turns.ts'
import { customType } from './custom-types.ts'
import { type DescribedKind, listTypeName, pathsOf } from './operations.ts'
import { kindTypeName, nestedTypeName, wellKnownTypes } from './type-names.ts'
import { type JsonSchema, type OpenApiVersion, type TypeRegistry, typeRegistry } from './type-schemas.ts'

export type DocumentParts = {
  readonly paths: ReadonlyMap<string, JsonSchema>
  /** Each is made when it is written: those of definitions are large together. */
  readonly types: ReadonlyMap<string, () => JsonSchema>
  /** What operations refer to. Those of the fleet have their parameters in them. */
  readonly parameters: ReadonlyMap<string, JsonSchema>
}

/** With pauses between kinds. */
export async function documentParts(kinds: Iterable<DescribedKind>, openApi: OpenApiVersion): Promise<DocumentParts> {
  const pause = pauses(systemClock)
  const registry = typeRegistry(openApi)
  const paths = new Map<string, JsonSchema>()
  const types = new Map<string, () => JsonSchema>()
  addAnswers(registry)
  for (const kind of kinds) {
    const { resource } = kind
    const { defined } = resource
    const known = kindKnownAs(resource, resource.kind)
    addTypesOf(kind, registry, known)
    if (defined !== undefined) {
      types.set(kindTypeName(resource), () => ({ ...customType(defined.schema, openApi, registry), ...known }))
    }
    for (const [path, item] of Object.entries(pathsOf(kind, openApi))) paths.set(path, item)
    await pause()
  }
  for (const [name, type] of Object.entries(registry.all())) if (!types.has(name)) types.set(name, () => type)
  return { paths, types, parameters: new Map() }
}

/** kubectl finds the type of a kind by what is in `x-kubernetes-group-version-kind`. */
function kindKnownAs({ group, version }: { readonly group: string; readonly version: string }, kind: string) {
  return { 'x-kubernetes-group-version-kind': [{ group, kind, version }] }
}

/** The type of the kind where it is built in, of its lists, and of its subresources. */
function addTypesOf({ resource, subresources, isStored }: DescribedKind, types: TypeRegistry, known: JsonSchema): void {
  for (const row of Object.values(subresources)) {
    if (row.access === 'view') types.add(kindTypeName(row), row.schema, kindKnownAs(row, row.kind))
  }
  const { kind, schema, defined, listKind = `${kind}List` } = resource
  const name = kindTypeName(resource)
  if (defined === undefined) types.add(name, schema, known)
  else types.add(nestedTypeName('meta.v1.ObjectMeta'), ObjectMetaSchema)
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
    ...kindKnownAs(resource, listKind),
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

/** One path or type at a time. `head`: what is beside them. */
export function* jsonDocument(head: JsonSchema, parts: DocumentParts, openApi: OpenApiVersion): Generator<string> {
  yield `${JSON.stringify(head).slice(0, -1)},"paths":{`
  yield* members(parts.paths, (path) => path)
  yield openApi === 'v3' ? '},"components":{"schemas":{' : '},"definitions":{'
  yield* members(parts.types, (type) => type())
  if (parts.parameters.size > 0) {
    yield '},"parameters":{'
    yield* members(parts.parameters, (parameter) => parameter)
  }
  yield openApi === 'v3' ? '}}}' : '}}'
}

function* members<T>(all: ReadonlyMap<string, T>, valueIn: (one: T) => JsonSchema): Generator<string> {
  let separator = ''
  for (const [name, one] of all) {
    yield `${separator}${JSON.stringify(name)}:${JSON.stringify(valueIn(one))}`
    separator = ','
  }
}

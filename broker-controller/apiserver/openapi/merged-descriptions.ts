/**
 * Merges what extension servers describe into the document of the fleet (kube-openapi, pkg/aggregator/aggregator.go,
 * MergeSpecsIgnorePathConflictRenamingDefinitionsAndParameters): the first to name a path keeps it, and a type or parameter of a name that is
 * taken by another one gets `_v2` behind its name.
 */
import { isObject } from '../../../api/text/json.ts'
import { systemClock } from '../../../daemon/clock.ts'
import { equalJSON } from '../../store/equal-json.ts'
import {
  type DescriptionParts,
  definitionRoot,
  type ExtensionDescription,
  parameterRoot,
  usedBy,
} from '../aggregator/extension-description.ts'
import { inPieces } from '../handlers/turns.ts'
import type { DocumentParts } from './document-parts.ts'
import type { JsonSchema } from './type-schemas.ts'

/** In the order of their priority. */
export async function withDescriptions(
  own: DocumentParts,
  descriptions: readonly ExtensionDescription[],
): Promise<DocumentParts> {
  if (descriptions.length === 0) return own
  const merged = { paths: new Map(own.paths), types: new Map(own.types), parameters: new Map(own.parameters) }
  for (const description of descriptions) await inPieces(merge(merged, await description.parts()), systemClock)
  return merged
}

type Merged = {
  readonly paths: Map<string, JsonSchema>
  readonly types: Map<string, () => JsonSchema>
  readonly parameters: Map<string, JsonSchema>
}

function* merge(into: Merged, given: DescriptionParts): Generator<undefined, void> {
  const paths = new Map([...given.paths].filter(([path]) => !into.paths.has(path)))
  if (paths.size === 0) return
  const { definitions, parameters } = paths.size === given.paths.size ? given : yield* neededBy(paths, given)
  const types = yield* newNames(definitions, (name) => into.types.get(name)?.(), isSameType)
  const shared = yield* newNames(parameters, (name) => into.parameters.get(name), equalJSON)
  const references = new Map([...rooted(definitionRoot, types), ...rooted(parameterRoot, shared)])
  for (const [name, type] of definitions) {
    const free = types.get(name) ?? name
    const present = into.types.get(free)
    into.types.set(free, present ? withKindsOf(present, type) : () => referring(type, references))
    yield
  }
  for (const [name, one] of parameters) {
    into.parameters.set(shared.get(name) ?? name, referring(one, references))
    yield
  }
  for (const [path, item] of paths) {
    into.paths.set(path, referring(item, references))
    yield
  }
}

function* neededBy(
  paths: ReadonlyMap<string, JsonSchema>,
  given: DescriptionParts,
): Generator<undefined, Pick<DescriptionParts, 'definitions' | 'parameters'>> {
  const used = yield* usedBy(paths, given)
  return {
    definitions: new Map([...given.definitions].filter(([name]) => used.has(`${definitionRoot}${name}`))),
    parameters: new Map([...given.parameters].filter(([name]) => used.has(`${parameterRoot}${name}`))),
  }
}

/** The name of each in the merged document. */
function* newNames(
  given: ReadonlyMap<string, JsonSchema>,
  presentAt: (name: string) => JsonSchema | undefined,
  isSame: (a: JsonSchema, b: JsonSchema) => boolean,
): Generator<undefined, ReadonlyMap<string, string>> {
  const names = new Map<string, string>()
  const taken = new Set<string>()
  for (const [name, one] of given) {
    const free = nameFor(name, one)
    names.set(name, free)
    if (free !== name) taken.add(free)
    yield
  }
  return names

  function nameFor(name: string, one: JsonSchema): string {
    for (let number = 1; ; number++) {
      const candidate = number === 1 ? name : `${name}_v${number}`
      const present = presentAt(candidate)
      if (present !== undefined && isSame(present, one)) return candidate
      const isOthers = number > 1 && (given.has(candidate) || taken.has(candidate))
      if (present === undefined && !isOthers) return candidate
    }
  }
}

function* rooted(root: string, names: ReadonlyMap<string, string>): Generator<readonly [string, string]> {
  for (const [name, free] of names) yield [`${root}${name}`, `${root}${free}`]
}

const kindsField = 'x-kubernetes-group-version-kind'

function isSameType(a: JsonSchema, b: JsonSchema): boolean {
  const { [kindsField]: _, ...first } = a
  const { [kindsField]: __, ...second } = b
  return equalJSON(first, second)
}

/** Clients find one type under the names of several kinds. */
function withKindsOf(present: () => JsonSchema, { [kindsField]: more }: JsonSchema): () => JsonSchema {
  if (!Array.isArray(more)) return present
  return () => {
    const type = present()
    const kinds = Array.isArray(type[kindsField]) ? type[kindsField] : []
    const added = more.filter((one) => !kinds.some((kind) => equalJSON(kind, one)))
    return { ...type, [kindsField]: [...kinds, ...added] }
  }
}

/** With the names of the merged document. One that leads nowhere makes clients refuse the whole document. */
function referring(value: JsonSchema, references: ReadonlyMap<string, string>): JsonSchema {
  const inner = (one: unknown): unknown => {
    if (Array.isArray(one)) return one.filter((item) => !isDangling(item, references)).map(inner)
    return isObject(one) ? referring(one, references) : one
  }
  const { $ref: reference, ...others } = value
  const read = Object.fromEntries(Object.entries(others).map(([name, one]) => [name, inner(one)]))
  if (typeof reference !== 'string') return reference === undefined ? read : { ...read, $ref: inner(reference) }
  const target = references.get(reference)
  return target === undefined ? { ...read, type: 'object' } : { ...read, $ref: target }
}

/** Whether an item of a list of parameters leads nowhere. */
function isDangling(item: unknown, references: ReadonlyMap<string, string>): boolean {
  const reference = isObject(item) ? item['$ref'] : undefined
  return typeof reference === 'string' && reference.startsWith(parameterRoot) && !references.has(reference)
}

/**
 * What an extension server describes in OpenAPI 2.0 of the version that its APIService stands for (kube-openapi, pkg/aggregator/aggregator.go,
 * FilterSpecByPaths): read as the document of a stranger, and kept packed.
 */
import type { GroupVersion } from '../../../api/registration/group-order.ts'
import { isObject, type JsonObject } from '../../../api/text/json.ts'
import { systemClock } from '../../../daemon/clock.ts'
import { inPieces } from '../handlers/turns.ts'
import { parseJsonBody } from '../wire/request-body.ts'
import { type PackedDocument, packedDocument } from './packed-document.ts'
import { swaggerShapes } from './swagger-shapes.ts'

type Named = ReadonlyMap<string, JsonObject>
export type DescriptionParts = { readonly paths: Named; readonly definitions: Named; readonly parameters: Named }

export type ExtensionDescription = {
  readonly hash: string
  /** In JSON, unpacked. */
  readonly length: number
  readonly parts: () => Promise<DescriptionParts>
}

export const mostDescriptionBytes = 2 * 1024 * 1024
const mostDescriptionValues = 60_000

/** Throws where it cannot be read. */
export async function extensionDescription(body: Buffer, version: GroupVersion): Promise<ExtensionDescription> {
  const document = parseJsonBody(body, mostDescriptionValues)
  if (!isObject(document) || document['swagger'] !== '2.0') throw new Error('its description is not OpenAPI 2.0')
  const parts = await inPieces(partsIn(document, version), systemClock)
  const text = JSON.stringify({
    paths: Object.fromEntries(parts.paths),
    definitions: Object.fromEntries(parts.definitions),
    parameters: Object.fromEntries(parts.parameters),
  })
  const packed = await packedDocument([text], { keptMs: 0 })
  return { hash: packed.hash, length: text.length, parts: () => partsOfPacked(packed) }
}

async function partsOfPacked(packed: PackedDocument): Promise<DescriptionParts> {
  const { paths, definitions, parameters } = JSON.parse((await packed.bytes()).toString())
  const named = (all: { readonly [name: string]: JsonObject }) => new Map(Object.entries(all))
  return { paths: named(paths), definitions: named(definitions), parameters: named(parameters) }
}

function* partsIn(document: JsonObject, { group, version }: GroupVersion): Generator<undefined, DescriptionParts> {
  const read = function* (place: keyof typeof swaggerShapes): Generator<undefined, Map<string, JsonObject>> {
    const found = new Map<string, JsonObject>()
    const all = document[place]
    for (const [name, value] of Object.entries(isObject(all) ? all : {})) {
      const one = swaggerShapes[place](value)
      if (one !== undefined) found.set(name, one)
      yield
    }
    return found
  }
  const [paths, definitions, parameters] = [yield* read('paths'), yield* read('definitions'), yield* read('parameters')]
  const base = `/apis/${group}/${version}/`
  const own = new Map([...paths].filter(([path]) => path.startsWith(base)))
  const everywhere = yield* usedBy(paths, { definitions, parameters })
  const here = yield* usedBy(own, { definitions, parameters })
  const isKept = (name: string) => here.has(name) || !everywhere.has(name)
  const types = [...definitions].filter(([name]) => isKept(`${definitionRoot}${name}`))
  return {
    paths: own,
    definitions: new Map(types.map(([name, type]) => [name, withOwnKinds(type, { group, version })])),
    parameters: new Map([...parameters].filter(([name]) => isKept(`${parameterRoot}${name}`))),
  }
}

export const definitionRoot = '#/definitions/'
export const parameterRoot = '#/parameters/'

/** The references that they lead to, at whatever distance. */
export function* usedBy(
  paths: Named,
  { definitions, parameters }: Pick<DescriptionParts, 'definitions' | 'parameters'>,
): Generator<undefined, ReadonlySet<string>> {
  const used = new Set<string>()
  const waiting: unknown[] = [...paths.values()]
  for (let next = waiting.pop(); next !== undefined; next = waiting.pop()) {
    eachReference(next, (reference) => {
      if (used.has(reference)) return
      used.add(reference)
      waiting.push(named(reference, definitionRoot, definitions) ?? named(reference, parameterRoot, parameters) ?? {})
    })
    yield
  }
  return used
}

function named(reference: string, root: string, all: Named): JsonObject | undefined {
  return reference.startsWith(root) ? all.get(reference.slice(root.length)) : undefined
}

function eachReference(value: unknown, take: (reference: string) => void): void {
  if (typeof value !== 'object' || value === null) return
  for (const [name, inner] of Object.entries(value)) {
    if (name === '$ref' && typeof inner === 'string') take(inner)
    else eachReference(inner, take)
  }
}

const kindsField = 'x-kubernetes-group-version-kind'

/** Those of its own version only: clients find the types of other groups by it, too. */
function withOwnKinds(type: JsonObject, { group, version }: GroupVersion): JsonObject {
  const { [kindsField]: kinds, ...others } = type
  const own = Array.isArray(kinds)
    ? kinds.filter((one) => isObject(one) && one['group'] === group && one['version'] === version)
    : []
  const named = own.filter(({ kind }) => typeof kind === 'string').map(({ kind }) => ({ group, version, kind }))
  return named.length === 0 ? others : { ...others, [kindsField]: named }
}

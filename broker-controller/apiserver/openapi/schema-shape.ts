/** What a schema of a field describes, as far as documents distinguish it. Pure. */
import type { Keywords } from '../../../api/schema.ts'

/** `plain`: a string or a boolean. `any`: whatever its author sends. */
export type SchemaShape =
  | 'list'
  | 'map'
  | 'object'
  | 'quantity'
  | 'intOrString'
  | 'time'
  | 'microTime'
  | 'choice'
  | 'integer'
  | 'number'
  | 'plain'
  | 'any'

/** The first that applies: a quantity is a choice of types as well, and words have a type. */
const shapes: readonly (readonly [SchemaShape, (keywords: Keywords) => boolean])[] = [
  ['list', ({ type, items }) => type === 'array' && items !== undefined],
  ['map', ({ patternProperties }) => patternProperties !== undefined],
  ['object', ({ type }) => type === 'object'],
  ['quantity', (keywords) => keywords['x-kubernetes-quantity'] === true],
  ['intOrString', (keywords) => keywords['x-kubernetes-int-or-string'] === true],
  ['time', (keywords) => keywords['x-bramble-time'] === 'seconds'],
  ['microTime', (keywords) => keywords['x-bramble-time'] === 'micro'],
  ['choice', (keywords) => keywords.anyOf !== undefined || keywords.const !== undefined],
  ['integer', ({ type }) => type === 'integer'],
  ['number', ({ type }) => type === 'number'],
  ['plain', ({ type }) => type !== undefined],
]

export function schemaShape(keywords: Keywords): SchemaShape {
  return shapes.find(([, applies]) => applies(keywords))?.[0] ?? 'any'
}

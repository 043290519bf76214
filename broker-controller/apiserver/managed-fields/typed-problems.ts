/** What the body of an apply cannot be (structured-merge-diff, typed/validate.go). Types of values are the decoder's. */
import { clipped, mostProblems } from '../../../api/problem.ts'
import { type Keywords, keywordsOf, type TSchema } from '../../../api/schema.ts'
import { isObject } from '../../../api/text/json.ts'
import { elementText } from './field-set.ts'
import { Duplicates, itemsByElement, shapeOf } from './typed-fields.ts'

const longestPath = 256

/** Fields that are in no schema, items without their keys and items that are given twice, each with its path. */
export function typedProblems(schema: TSchema, value: unknown): readonly string[] {
  const problems: string[] = []
  const note = (path: string, what: string) => {
    if (problems.length < mostProblems) problems.push(`${clipped(path, longestPath)}: ${what}`)
  }
  const walk = (of: TSchema, inner: unknown, path: string): void => {
    if (problems.length >= mostProblems || typeof inner !== 'object' || inner === null) return
    const keywords = keywordsOf(of)
    if (Array.isArray(inner)) walkItems(of, keywords, inner, path)
    else if (isObject(inner)) walkFields(keywords, inner, path)
  }
  const walkFields = (keywords: Keywords, fields: { readonly [name: string]: unknown }, path: string) => {
    for (const [name, field] of Object.entries(fields)) {
      const next = fieldOfKeywords(keywords, name)
      if (next === undefined) note(`${path}.${name}`, 'field not declared in schema')
      else if (next !== 'anything') walk(next, field, `${path}.${name}`)
    }
  }
  const walkItems = (of: TSchema, { items }: Keywords, list: readonly unknown[], path: string) => {
    const shape = shapeOf(of)
    if (items === undefined) return
    if (shape.shape !== 'items') {
      for (const [index, item] of list.entries()) walk(items, item, `${path}[${index}]`)
      return
    }
    walkElements(items, shape, list, path)
  }
  const walkElements = (items: TSchema, { elementOf, keys }: Keyed, list: readonly unknown[], path: string) => {
    for (const [index, item] of list.entries()) {
      if (elementOf(item) === undefined) note(path, `element ${index}: ${unidentified(item, keys)}`)
    }
    for (const [element, item] of itemsByElement(list, elementOf)) {
      const text = clipped(elementText(element), longestPath)
      if (item instanceof Duplicates) note(path, `duplicate entries for key ${text}`)
      else walk(items, item, `${path}${text}`)
    }
  }
  walk(schema, value, '')
  return problems
}

/** undefined: there is no such field. */
function fieldOfKeywords({ properties, patternProperties }: Keywords, name: string): TSchema | 'anything' | undefined {
  if (properties !== undefined && Object.hasOwn(properties, name)) return properties[name]
  if (patternProperties !== undefined) return Object.values(patternProperties)[0] ?? 'anything'
  return properties === undefined ? 'anything' : undefined
}

function unidentified(item: unknown, keys: readonly string[]): string {
  if (keys.length === 0) return 'associative list without keys has an element that cannot be one of a set'
  if (!isObject(item)) return 'associative list with keys may not have non-map elements'
  const missing = keys.find((key) => typeof (item[key] ?? {}) === 'object') ?? keys[0]
  return `associative list with keys has an element that omits key field "${missing}" (and doesn't have default value)`
}

/** As Go joins them: one as it is, several a line each. */
export function problemLines(problems: readonly string[]): string {
  const [only] = problems
  return problems.length === 1 && only !== undefined
    ? only
    : ['errors:', ...problems.map((one) => `  ${one}`)].join('\n')
}

type Keyed = Extract<ReturnType<typeof shapeOf>, { readonly shape: 'items' }>

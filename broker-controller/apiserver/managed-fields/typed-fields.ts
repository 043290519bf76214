/**
 * Objects seen as sets of fields, by the rules of their schema (sigs.k8s.io/structured-merge-diff, typed): an atomic list or
 * map is one field, items of other lists are fields by their keys or values. Each walk costs the size of the objects.
 */
import { keywordsOf, type TSchema } from '../../../api/schema.ts'
import { fieldOf, isObject, type JsonObject } from '../../../api/text/json.ts'
import { equalJSON } from '../../store/equal-json.ts'
import { type FieldSet, fieldSet, keyElement, noFields, oneField, union, valueElement } from './field-set.ts'

/** How server-side apply sees the values of a schema. */
export type Shape =
  | { readonly shape: 'leaf' }
  /** An object with these fields. `others`: of what has no name among them; undefined: there is nothing else. */
  | {
      readonly shape: 'struct'
      readonly fields: { readonly [name: string]: TSchema }
      readonly others?: TSchema | undefined
    }
  | { readonly shape: 'map'; readonly values: TSchema | undefined }
  | {
      readonly shape: 'items'
      readonly items: TSchema
      /** undefined: the item lacks a key, or cannot be in a set. */
      readonly elementOf: (item: unknown) => string | undefined
      /** Keys that each item must have, in a list whose items have keys. */
      readonly keys: readonly string[]
    }

const leaf: Shape = { shape: 'leaf' }
const shapes = new WeakMap<object, Shape>()

export function shapeOf(schema: TSchema | undefined): Shape {
  if (schema === undefined) return leaf
  const known = shapes.get(schema)
  if (known !== undefined) return known
  const shape = makeShape(schema)
  shapes.set(schema, shape)
  return shape
}

function makeShape(schema: TSchema): Shape {
  const keywords = keywordsOf(schema)
  if (keywords['x-kubernetes-map-type'] === 'atomic') return leaf
  const [others] = Object.values(keywords.patternProperties ?? {})
  if (keywords.properties !== undefined) return { shape: 'struct', fields: keywords.properties, others }
  if (keywords.patternProperties !== undefined) return { shape: 'map', values: others }
  const { items } = keywords
  const listType = keywords['x-kubernetes-list-type']
  if (items === undefined || listType === undefined || listType === 'atomic') return leaf
  if (listType === 'set') return { shape: 'items', items, elementOf: setElement, keys: [] }
  const names = keywords['x-kubernetes-list-map-keys'] ?? []
  const defaults = keywords['x-bramble-key-defaults'] ?? {}
  const keys = names.filter((name) => defaults[name] === undefined)
  return { shape: 'items', items, elementOf: (item) => mapElement(item, names, defaults), keys }
}

function setElement(item: unknown): string | undefined {
  return typeof item === 'object' || item === undefined ? undefined : valueElement(item)
}

function mapElement(item: unknown, names: readonly string[], defaults: JsonObject): string | undefined {
  if (!isObject(item)) return undefined
  const keys: [string, unknown][] = []
  for (const name of names) {
    const value = fieldOf(item, name) ?? fieldOf(defaults, name)
    if (value === undefined || typeof value === 'object') return undefined
    keys.push([name, value])
  }
  return keyElement(keys)
}

/** The schema of what stands under `name` in an object of this shape; undefined: there is no such field. */
export function innerSchema(shape: Shape, name: string): TSchema | undefined {
  if (shape.shape === 'map') return shape.values
  if (shape.shape !== 'struct') return undefined
  return Object.hasOwn(shape.fields, name) ? shape.fields[name] : shape.others
}

/** Items that share their element: they are one field together. */
export class Duplicates {
  readonly items: readonly unknown[]
  constructor(items: readonly unknown[]) {
    this.items = items
  }
}

/** The items by what identifies them, in their order. Items that nothing identifies are left out. */
export function itemsByElement(
  items: readonly unknown[],
  elementOf: (item: unknown) => string | undefined,
): Map<string, unknown> {
  const found = new Map<string, unknown>()
  const repeated = new Map<string, unknown[]>()
  for (const item of items) {
    const element = elementOf(item)
    if (element === undefined) continue
    const several = repeated.get(element)
    if (several !== undefined) several.push(item)
    else if (found.has(element)) repeated.set(element, [found.get(element), item])
    else found.set(element, item)
  }
  for (const [element, several] of repeated) found.set(element, new Duplicates(several))
  return found
}

export function isEmptyValue(value: unknown): boolean {
  if (value === undefined || value === null) return true
  if (typeof value !== 'object') return false
  return Array.isArray(value) ? value.length === 0 : Object.keys(value).length === 0
}

/** The fields that an applier's object names (typed/tofieldset.go). Names that are in no schema are left out. */
export function fieldsOfValue(schema: TSchema | undefined, value: unknown): FieldSet {
  const shape = shapeOf(schema)
  if (shape.shape === 'items') return value === null || Array.isArray(value) ? fieldsOfItems(shape, value) : oneField
  if (shape.shape === 'leaf') return oneField
  if (value === null) return noFields
  if (!isObject(value)) return oneField
  const children: [string, FieldSet][] = []
  for (const [name, inner] of Object.entries(value)) {
    const innerOf = innerSchema(shape, name)
    if (innerOf === undefined || inner === undefined) continue
    const set = fieldsOfValue(innerOf, inner)
    const isMember = shape.shape === 'map' || inner === null || (isObject(inner) && isEmptyValue(inner))
    children.push([`f:${name}`, isMember ? union(set, oneField) : set])
  }
  return fieldSet(children)
}

function fieldsOfItems(shape: Extract<Shape, { shape: 'items' }>, value: readonly unknown[] | null): FieldSet {
  const children: [string, FieldSet][] = []
  for (const [element, item] of itemsByElement(value ?? [], shape.elementOf)) {
    const inner = item instanceof Duplicates ? noFields : fieldsOfValue(shape.items, item)
    children.push([element, union(inner, oneField)])
  }
  return fieldSet(children)
}

/** What differs between two objects. A container that came or went is itself in its set. */
export type Comparison = {
  /** Added, or with another value. */
  readonly changed: FieldSet
  readonly removed: FieldSet
}

const same: Comparison = { changed: noFields, removed: noFields }

/** What differs between two decoded objects of a schema (typed/compare.go). */
export function compareValues(schema: TSchema | undefined, before: unknown, after: unknown): Comparison {
  if (before === after) return same
  if (before === undefined) return { changed: allBelow(schema, after), removed: noFields }
  if (after === undefined) return { changed: noFields, removed: allBelow(schema, before) }
  const shape = shapeOf(schema)
  if (shape.shape === 'items' && Array.isArray(before) && Array.isArray(after)) {
    // Most lists are as they were, and finding what identifies their items costs more than that.
    return equalJSON(before, after) ? same : compareItems(shape, before, after)
  }
  if ((shape.shape === 'struct' || shape.shape === 'map') && isObject(before) && isObject(after)) {
    return isEmptyValue(before) && isEmptyValue(after) ? same : compareObjects(shape, before, after)
  }
  return equalJSON(before, after) ? same : { changed: oneField, removed: noFields }
}

function compareObjects(shape: Shape, before: JsonObject, after: JsonObject): Comparison {
  const parts = new Parts()
  for (const name of Object.keys(after)) {
    parts.add(`f:${name}`, compareValues(innerSchema(shape, name), fieldOf(before, name), after[name]))
  }
  for (const name of Object.keys(before)) {
    if (Object.hasOwn(after, name)) continue
    parts.add(`f:${name}`, compareValues(innerSchema(shape, name), before[name], undefined))
  }
  return parts.comparison()
}

function compareItems(
  { items, elementOf }: Extract<Shape, { shape: 'items' }>,
  before: readonly unknown[],
  after: readonly unknown[],
): Comparison {
  const parts = new Parts()
  const [old, now] = [itemsByElement(before, elementOf), itemsByElement(after, elementOf)]
  for (const [element, item] of now) parts.add(element, compareElements(items, old.get(element), item))
  for (const [element, item] of old) {
    if (!now.has(element)) parts.add(element, compareElements(items, item, undefined))
  }
  return parts.comparison()
}

/** Items that share an element are compared as one atomic field. */
function compareElements(schema: TSchema, before: unknown, after: unknown): Comparison {
  if (before instanceof Duplicates && after instanceof Duplicates) {
    return equalJSON(before.items, after.items) ? same : { changed: oneField, removed: noFields }
  }
  if (before instanceof Duplicates) {
    return { changed: compareValues(schema, undefined, after).changed, removed: oneField }
  }
  if (after instanceof Duplicates) {
    return { changed: oneField, removed: compareValues(schema, before, undefined).removed }
  }
  return compareValues(schema, before, after)
}

/** The comparisons of the parts of a value; most of them find nothing. */
class Parts {
  readonly #changed: [string, FieldSet][] = []
  readonly #removed: [string, FieldSet][] = []

  add(name: string, { changed, removed }: Comparison): void {
    if (changed !== noFields) this.#changed.push([name, changed])
    if (removed !== noFields) this.#removed.push([name, removed])
  }

  comparison(): Comparison {
    if (this.#changed.length + this.#removed.length === 0) return same
    return { changed: fieldSet(this.#changed), removed: fieldSet(this.#removed) }
  }
}

/** The value and everything in it. */
function allBelow(schema: TSchema | undefined, value: unknown): FieldSet {
  if (value === undefined) return noFields
  const shape = shapeOf(schema)
  const children: [string, FieldSet][] = []
  if (shape.shape === 'items' && Array.isArray(value)) {
    for (const [element, item] of itemsByElement(value, shape.elementOf)) {
      children.push([element, item instanceof Duplicates ? oneField : allBelow(shape.items, item)])
    }
  } else if (shape.shape !== 'leaf' && shape.shape !== 'items' && isObject(value)) {
    for (const [name, inner] of Object.entries(value)) {
      children.push([`f:${name}`, allBelow(innerSchema(shape, name), inner)])
    }
  }
  return fieldSet(children, true)
}

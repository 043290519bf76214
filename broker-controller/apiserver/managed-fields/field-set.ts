/**
 * Sets of fields, as `metadata.managedFields` writes them (FieldsV1; sigs.k8s.io/structured-merge-diff, fieldpath):
 * `f:NAME` a field, `k:{…}` a list item by its keys, `v:VALUE` an item of a set, `i:INDEX`, `.` the element itself.
 */
import { isObject, type JsonObject, parseJson } from '../../../api/text/json.ts'

export type FieldSet = {
  /** The element itself is in the set. */
  readonly isMember: boolean
  readonly children: ReadonlyMap<string, FieldSet>
}

export const noFields: FieldSet = { isMember: false, children: new Map() }
export const oneField: FieldSet = { isMember: true, children: new Map() }

/** A set with these children; those that are empty are left out. */
export function fieldSet(children: Iterable<readonly [string, FieldSet]>, isMember = false): FieldSet {
  const kept = new Map<string, FieldSet>()
  for (const [name, child] of children) if (!isEmptySet(child)) kept.set(name, child)
  return kept.size > 0 ? { isMember, children: kept } : isMember ? oneField : noFields
}

/** The set of these paths: `metadata.ownerReferences`. */
export function setOfPaths(paths: readonly string[]): FieldSet {
  return paths
    .map((path) => path.split('.').reduceRight<FieldSet>((inner, name) => fieldSet([[`f:${name}`, inner]]), oneField))
    .reduce(union, noFields)
}

export function isEmptySet({ isMember, children }: FieldSet): boolean {
  return !isMember && children.size === 0
}

export function union(a: FieldSet, b: FieldSet): FieldSet {
  if (isEmptySet(a) || a === b) return b
  if (isEmptySet(b)) return a
  const children = new Map(a.children)
  for (const [name, child] of b.children) children.set(name, union(children.get(name) ?? noFields, child))
  return { isMember: a.isMember || b.isMember, children }
}

/** The union of all of them, at the cost of their size together. */
export function unionOf(sets: readonly FieldSet[]): FieldSet {
  const [first = noFields, ...others] = sets
  if (others.length === 0) return first
  const byName = new Map<string, FieldSet[]>()
  for (const { children } of sets) {
    for (const [name, child] of children) {
      const same = byName.get(name)
      if (same === undefined) byName.set(name, [child])
      else same.push(child)
    }
  }
  const isMember = sets.some((one) => one.isMember)
  return fieldSet(
    [...byName].map(([name, same]) => [name, unionOf(same)] as const),
    isMember,
  )
}

/** The members of `a` that are not in `b`; `a` itself where there are no others. */
export function difference(a: FieldSet, b: FieldSet): FieldSet {
  if (isEmptySet(a) || isEmptySet(b)) return a
  const isMember = a.isMember && !b.isMember
  let isSame = isMember === a.isMember
  const children: [string, FieldSet][] = []
  for (const [name, child] of a.children) {
    const other = b.children.get(name)
    const rest = other === undefined ? child : difference(child, other)
    if (rest !== child) isSame = false
    children.push([name, rest])
  }
  return isSame ? a : fieldSet(children, isMember)
}

export function intersection(a: FieldSet, b: FieldSet): FieldSet {
  if (isEmptySet(a) || isEmptySet(b)) return noFields
  const children: [string, FieldSet][] = []
  for (const [name, child] of a.children) {
    const other = b.children.get(name)
    if (other !== undefined) children.push([name, intersection(child, other)])
  }
  return fieldSet(children, a.isMember && b.isMember)
}

/** `a` without the members of `b` and all below them. */
export function without(a: FieldSet, b: FieldSet): FieldSet {
  if (b.isMember) return noFields
  if (b.children.size === 0 || isEmptySet(a)) return a
  const children = [...a.children].map(([name, child]) => {
    const other = b.children.get(name)
    return [name, other === undefined ? child : without(child, other)] as const
  })
  return fieldSet(children, a.isMember)
}

export function equalSets(a: FieldSet, b: FieldSet): boolean {
  if (a === b) return true
  if (a.isMember !== b.isMember || a.children.size !== b.children.size) return false
  for (const [name, child] of a.children) {
    const other = b.children.get(name)
    if (other === undefined || !equalSets(child, other)) return false
  }
  return true
}

/** How many elements the set names. */
export function sizeOfSet({ children }: FieldSet): number {
  let size = 1
  for (const child of children.values()) size += sizeOfSet(child)
  return size
}

/** The set that FieldsV1 describes; undefined where it is invalid, or deeper than any object. */
export function parseFieldsV1(fields: unknown, levels = 64): FieldSet | undefined {
  if (!isObject(fields) || levels === 0) return undefined
  const children: [string, FieldSet][] = []
  for (const [name, inner] of Object.entries(fields)) {
    if (name === '.') continue
    const element = canonicalElement(name)
    const child = parseFieldsV1(inner, levels - 1)
    if (element === undefined || child === undefined) return undefined
    children.push([element, child === noFields ? oneField : child])
  }
  return fieldSet(children, Object.hasOwn(fields, '.'))
}

/** As `keyElement` and `valueElement` write it; undefined: no name of an element. */
function canonicalElement(name: string): string | undefined {
  if (name.startsWith('f:') || /^i:-?\d{1,9}$/.test(name)) return name
  const value = parseJson(name.slice(2))
  if (name.startsWith('v:')) return value === undefined || !isPlain(value) ? undefined : valueElement(value)
  if (!name.startsWith('k:') || !isObject(value)) return undefined
  const keys = Object.entries(value)
  return keys.every(([, part]) => isPlain(part)) ? keyElement(keys) : undefined
}

const isPlain = (value: unknown) => typeof value !== 'object' || value === null

/** A list item by its keys. */
export function keyElement(keys: readonly (readonly [string, unknown])[]): string {
  // Most lists have one key, and an object may have thousands of items, each of which is named several times in a request.
  const [[name = '', value] = []] = keys
  if (keys.length === 1 && typeof value === 'string') return `k:{${JSON.stringify(name)}:${JSON.stringify(value)}}`
  return `k:${JSON.stringify(Object.fromEntries(keys.toSorted(([a], [b]) => (a < b ? -1 : 1))))}`
}

/** An item of a set. */
export function valueElement(value: unknown): string {
  return `v:${JSON.stringify(value)}`
}

/** FieldsV1 of the set, its names in order. */
export function formatFieldsV1({ isMember, children }: FieldSet): JsonObject {
  // Every name has a prefix, so none is one that objects inherit.
  const result: { [name: string]: JsonObject } = isMember ? { '.': nothing } : {}
  for (const name of [...children.keys()].sort()) {
    const child = children.get(name)
    if (child !== undefined) result[name] = child.children.size === 0 ? nothing : formatFieldsV1(child)
  }
  return result
}

const nothing: JsonObject = Object.freeze({})

/** The paths of the members, as conflicts name them: `.spec.containers[name="main"].image`; at most `most`. */
export function pathsOfMembers(set: FieldSet, most = Number.POSITIVE_INFINITY): readonly string[] {
  const paths: string[] = []
  const collect = ({ isMember, children }: FieldSet, path: string) => {
    if (isMember && paths.length < most) paths.push(path)
    for (const [name, child] of children) {
      if (paths.length >= most) return
      collect(child, `${path}${elementText(name)}`)
    }
  }
  collect(set, '')
  return paths
}

export function countMembers({ isMember, children }: FieldSet): number {
  let count = isMember ? 1 : 0
  for (const child of children.values()) count += countMembers(child)
  return count
}

export function elementText(name: string): string {
  const rest = name.slice(2)
  if (name.startsWith('f:')) return `.${rest}`
  if (name.startsWith('v:')) return `[=${rest}]`
  if (name.startsWith('i:')) return `[${rest}]`
  const keys = Object.entries(parseJson(rest) ?? {})
  return `[${keys.map(([key, value]) => `${key}=${JSON.stringify(value)}`).join(',')}]`
}

/**
 * Kubernetes' own patch: lists whose items have a key are merged item by item. Which list has which key follows from the
 * kind's schema. Directives: `$patch`, `$retainKeys`, `$setElementOrder/FIELD`, `$deleteFromPrimitiveList/FIELD`.
 */
import { ApiError } from '../../../api/api-error.ts'
import { quoted } from '../../../api/problem.ts'
import { keywordsOf, schemaOfField, type TSchema } from '../../../api/schema.ts'
import { fieldOf, isObject, type JsonObject } from '../../../api/text/json.ts'
import { type OwnObject, ownCopy, setField } from './patch.ts'

/** `target` with `patch` merged into it, neither changed. Throws ApiError BadRequest for a patch that makes no sense. */
export function strategicMergePatch(schema: TSchema, target: unknown, patch: unknown): unknown {
  if (!isObject(patch)) throw bad('must be an object')
  return mergedObject(schema, isObject(target) ? target : {}, patch)
}

const orderOf = '$setElementOrder/'
const deleteFrom = '$deleteFromPrimitiveList/'

function mergedObject(schema: TSchema | undefined, target: JsonObject, patch: JsonObject): JsonObject {
  const directive = fieldOf(patch, '$patch')
  if (directive === 'delete') return {}
  if (directive === 'replace') {
    const { $patch: _, ...fields } = patch
    return withoutDirectives(fields)
  }
  if (directive !== undefined) throw bad(`$patch: ${quoted(directive)} is not known here`)

  const result = retained(target, patch)
  for (const [name, value] of Object.entries(patch)) {
    if (isDirective(name)) continue
    const field = schemaOfField(schema, name)
    const known = fieldOf(result, name)
    if (Array.isArray(value)) setField(result, name, mergedList(field, name, known, value, patch))
    else setField(result, name, mergedField(field, known, value))
  }
  for (const name of fieldsOnlyDirected(patch)) {
    const known = fieldOf(result, name)
    if (Array.isArray(known)) setField(result, name, mergedList(schemaOfField(schema, name), name, known, [], patch))
  }
  return result
}

/** undefined: the patch removes the field. */
function mergedField(schema: TSchema | undefined, known: unknown, value: unknown): unknown {
  if (value === null) return undefined
  return isObject(value) ? mergedObject(schema, isObject(known) ? known : {}, value) : value
}

/** Fields whose list is reordered or thinned out without being given. */
function fieldsOnlyDirected(patch: JsonObject): readonly string[] {
  const names = Object.keys(patch).flatMap((name) =>
    [orderOf, deleteFrom].filter((prefix) => name.startsWith(prefix)).map((prefix) => name.slice(prefix.length)),
  )
  return [...new Set(names)].filter((name) => !Object.hasOwn(patch, name))
}

/** A copy of the target to fill in. `$retainKeys`: what is not named is dropped, and the patch may name nothing else. */
function retained(target: JsonObject, patch: JsonObject): OwnObject {
  const given = fieldOf(patch, '$retainKeys')
  if (given === undefined) return ownCopy(target)
  if (!Array.isArray(given)) throw bad('$retainKeys must be a list')
  const keys = new Set<unknown>(given)
  const stray = Object.keys(patch).find((name) => !isDirective(name) && !keys.has(name))
  if (stray !== undefined) throw bad(`$retainKeys does not name ${quoted(stray)}`)
  return Object.fromEntries(Object.entries(target).filter(([name]) => keys.has(name)))
}

function mergedList(
  schema: TSchema | undefined,
  name: string,
  known: unknown,
  given: readonly unknown[],
  patch: JsonObject,
): readonly unknown[] {
  const keywords = schema === undefined ? {} : keywordsOf(schema)
  if (!keywords['x-kubernetes-patch-strategy']?.split(',').includes('merge'))
    return given.filter(isNoDirective).map(withoutNulls)
  const before: readonly unknown[] = Array.isArray(known) ? known : []
  const order = listDirective(patch, `${orderOf}${name}`)
  const key = keywords['x-kubernetes-patch-merge-key']
  const identity = key === undefined ? (item: unknown) => item : (item: unknown) => keyOf(item, key, name)
  const items = given.filter((item) => isNoDirective(item) && !isDeleting(item))

  if (order !== undefined) {
    const named = new Set(order.map(identity))
    const stray = items.find((item) => !named.has(identity(item)))
    if (stray !== undefined) throw bad(`$setElementOrder/${name} does not name ${quoted(identity(stray))}`)
  }
  if (key !== undefined && given.some(isReplacing)) {
    const replacement = mergedItems(keywords.items, key, name, [], given)
    return order === undefined ? replacement : ordered(replacement, identity, order, [])
  }
  const taken = new Set(listDirective(patch, `${deleteFrom}${name}`))
  const merged =
    key === undefined
      ? [...new Set([...before.filter((item) => !taken.has(item)), ...given])]
      : mergedItems(keywords.items, key, name, before, given)
  return ordered(merged, identity, order ?? items, before)
}

/**
 * The items of the patch merged into those with the same key. With `$patch: replace` in the list its items are taken as
 * they stand, also those that share a key (apimachinery, mergeSliceWithSpecialElements).
 */
function mergedItems(
  schema: TSchema | undefined,
  key: string,
  name: string,
  before: readonly unknown[],
  given: readonly unknown[],
): readonly unknown[] {
  const isWhole = given.some(isReplacing)
  const deleted = new Set<unknown>()
  const items: JsonObject[] = []
  for (const item of given) {
    if (!isObject(item)) throw bad(`${name} holds objects, not ${quoted(item)}`)
    const directive = fieldOf(item, '$patch')
    if (directive === 'replace') continue
    if (directive === 'delete') deleted.add(keyOf(item, key, name))
    else if (directive === undefined) items.push(item)
    else throw bad(`$patch: ${quoted(directive)} is not known in ${name}`)
  }
  if (isWhole) return items.map((item) => mergedObject(schema, {}, item))
  const result = before.filter((item) => !deleted.has(keyOf(item, key, name)))
  const places = firstPlaces(result.map((item) => keyOf(item, key, name)))
  for (const item of items) {
    const identity = keyOf(item, key, name)
    const at = places.get(identity) ?? result.length
    const known = result[at]
    result[at] = mergedObject(schema, isObject(known) ? known : {}, item)
    places.set(identity, at)
  }
  return result
}

/**
 * The items the patch names come in its order; those only the target has keep their place before a neighbour they stood
 * before, and otherwise follow.
 */
function ordered(
  items: readonly unknown[],
  identity: (item: unknown) => unknown,
  wanted: readonly unknown[],
  before: readonly unknown[],
): readonly unknown[] {
  const [wantedPlaces, places] = [firstPlaces(wanted.map(identity)), firstPlaces(before.map(identity))]
  const placed = items.map((item) => {
    const key = identity(item)
    return { item, wanted: wantedPlaces.get(key), before: places.get(key) ?? -1, isKnown: places.has(key) }
  })
  const ours = placed.filter((one) => one.wanted === undefined).toSorted((a, b) => a.before - b.before)
  const theirs = placed.filter((one) => one.wanted !== undefined).toSorted((a, b) => (a.wanted ?? 0) - (b.wanted ?? 0))
  const result: unknown[] = []
  let at = 0
  for (const next of theirs) {
    for (let mine = ours[at]; mine !== undefined && next.isKnown && mine.before < next.before; mine = ours[++at]) {
      result.push(mine.item)
    }
    result.push(next.item)
  }
  return [...result, ...ours.slice(at).map(({ item }) => item)]
}

function firstPlaces(identities: readonly unknown[]): Map<unknown, number> {
  const places = new Map<unknown, number>()
  for (const [at, identity] of identities.entries()) if (!places.has(identity)) places.set(identity, at)
  return places
}

function keyOf(item: unknown, key: string, name: string): unknown {
  const identity = isObject(item) ? fieldOf(item, key) : undefined
  if (identity === undefined || identity === null) throw bad(`an item of ${name} has no ${key}`)
  return identity
}

function listDirective(patch: JsonObject, directive: string): readonly unknown[] | undefined {
  const list = fieldOf(patch, directive)
  if (list === undefined || Array.isArray(list)) return list
  throw bad(`${directive} must be a list`)
}

function isDirective(name: string): boolean {
  return name === '$patch' || name === '$retainKeys' || name.startsWith(orderOf) || name.startsWith(deleteFrom)
}

function isDeleting(item: unknown): boolean {
  return isObject(item) && item['$patch'] === 'delete'
}

function isReplacing(item: unknown): boolean {
  return isObject(item) && item['$patch'] === 'replace'
}

/** Not an item that is only `$patch: replace`. */
function isNoDirective(item: unknown): boolean {
  return !isReplacing(item)
}

function withoutDirectives(object: JsonObject): JsonObject {
  return mergedObject(undefined, {}, object)
}

function withoutNulls(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(withoutNulls)
  return isObject(value) ? withoutDirectives(value) : value
}

function bad(what: string): ApiError {
  return new ApiError('BadRequest', `The strategic merge patch cannot be used: ${what}`)
}

/**
 * Kubernetes' own patch: lists whose items have a key are merged item by item. Which list has which key is said by the
 * kind's schema. Directives: `$patch`, `$retainKeys`, `$setElementOrder/FIELD`, `$deleteFromPrimitiveList/FIELD`.
 */
import { ApiError } from '../../api/api-error.ts'
import { fieldOf, isObject, type JsonObject } from '../../api/json.ts'
import { keywordsOf, schemaOfField, type TSchema } from '../../api/schema.ts'
import { withField } from './patch.ts'

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
  if (directive === 'replace') return withoutDirectives(withField(patch, '$patch', undefined))
  if (directive !== undefined) throw bad(`$patch: ${JSON.stringify(directive)} is not known here`)

  let result = retained(target, patch)
  for (const [name, value] of Object.entries(patch)) {
    if (isDirective(name)) continue
    const field = schemaOfField(schema, name)
    const known = fieldOf(result, name)
    if (value === null) result = withField(result, name, undefined)
    else if (Array.isArray(value)) result = withField(result, name, mergedList(field, name, known, value, patch))
    else if (!isObject(value)) result = withField(result, name, value)
    else result = withField(result, name, mergedObject(field, isObject(known) ? known : {}, value))
  }
  for (const name of fieldsOnlyDirected(patch)) {
    const known = fieldOf(result, name)
    if (Array.isArray(known)) {
      result = withField(result, name, mergedList(schemaOfField(schema, name), name, known, [], patch))
    }
  }
  return result
}

/** Fields whose list is reordered or thinned out without being given. */
function fieldsOnlyDirected(patch: JsonObject): readonly string[] {
  const names = Object.keys(patch).flatMap((name) =>
    [orderOf, deleteFrom].filter((prefix) => name.startsWith(prefix)).map((prefix) => name.slice(prefix.length)),
  )
  return [...new Set(names)].filter((name) => !Object.hasOwn(patch, name))
}

/** `$retainKeys`: what is not named goes, and the patch may name nothing else. */
function retained(target: JsonObject, patch: JsonObject): JsonObject {
  const keys = fieldOf(patch, '$retainKeys')
  if (keys === undefined) return target
  if (!Array.isArray(keys)) throw bad('$retainKeys must be a list')
  const stray = Object.keys(patch).find((name) => !isDirective(name) && !keys.includes(name))
  if (stray !== undefined) throw bad(`$retainKeys does not name ${stray}`)
  return Object.fromEntries(Object.entries(target).filter(([name]) => keys.includes(name)))
}

function mergedList(
  schema: TSchema | undefined,
  name: string,
  known: unknown,
  given: readonly unknown[],
  patch: JsonObject,
): readonly unknown[] {
  const keywords = schema === undefined ? {} : keywordsOf(schema)
  if (keywords['x-kubernetes-patch-strategy'] !== 'merge') return given.filter(isNoDirective).map(withoutNulls)
  const before: readonly unknown[] = Array.isArray(known) ? known : []
  const order = listDirective(patch, `${orderOf}${name}`)
  const key = keywords['x-kubernetes-patch-merge-key']
  const identity = key === undefined ? (item: unknown) => item : (item: unknown) => keyOf(item, key, name)

  if (order !== undefined) {
    const named = new Set(order.map(identity))
    const stray = given.find((item) => !isDeleting(item) && isNoDirective(item) && !named.has(identity(item)))
    if (stray !== undefined) throw bad(`$setElementOrder/${name} does not name ${JSON.stringify(identity(stray))}`)
  }
  const taken = listDirective(patch, `${deleteFrom}${name}`) ?? []
  const merged =
    key === undefined
      ? [...new Set([...before.filter((item) => !taken.includes(item)), ...given])]
      : mergedItems(keywords.items, key, name, before, given)
  const inPatch = order ?? given.filter((item) => isNoDirective(item) && !isDeleting(item))
  return ordered(
    merged.map((item) => [identity(item), item]),
    inPatch.map(identity),
    before.map(identity),
  )
}

function mergedItems(
  schema: TSchema | undefined,
  key: string,
  name: string,
  before: readonly unknown[],
  given: readonly unknown[],
): readonly unknown[] {
  const replacing = given.some((item) => isObject(item) && item['$patch'] === 'replace')
  let result: readonly unknown[] = replacing ? [] : before
  for (const item of given) {
    if (!isObject(item)) throw bad(`${name} holds objects, not ${JSON.stringify(item)}`)
    const directive = fieldOf(item, '$patch')
    if (directive === 'replace') continue
    const identity = keyOf(item, key, name)
    if (directive === 'delete') {
      result = result.filter((other) => keyOf(other, key, name) !== identity)
      continue
    }
    if (directive !== undefined) throw bad(`$patch: ${JSON.stringify(directive)} is not known in ${name}`)
    const at = result.findIndex((other) => keyOf(other, key, name) === identity)
    const known = result[at]
    const next = mergedObject(schema, isObject(known) ? known : {}, item)
    result = at < 0 ? [...result, next] : result.with(at, next)
  }
  return result
}

/**
 * The items the patch names come in its order; those only we have keep their place before a neighbour they stood
 * before, and otherwise follow.
 */
function ordered(
  items: readonly (readonly [identity: unknown, item: unknown])[],
  wanted: readonly unknown[],
  before: readonly unknown[],
): readonly unknown[] {
  const place = (order: readonly unknown[], identity: unknown) => order.indexOf(identity)
  const ours = items
    .filter(([identity]) => !wanted.includes(identity))
    .toSorted(([a], [b]) => place(before, a) - place(before, b))
  const theirs = items
    .filter(([identity]) => wanted.includes(identity))
    .toSorted(([a], [b]) => place(wanted, a) - place(wanted, b))
  const result: unknown[] = []
  while (ours.length > 0 || theirs.length > 0) {
    const [mine] = ours
    const [next] = theirs
    const stoodBefore =
      mine !== undefined &&
      (next === undefined || (before.includes(next[0]) && place(before, mine[0]) < place(before, next[0])))
    result.push((stoodBefore ? ours : theirs).shift()?.[1])
  }
  return result
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

/** Not an item that only says `$patch: replace`. */
function isNoDirective(item: unknown): boolean {
  return !(isObject(item) && item['$patch'] === 'replace')
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

/**
 * An applier's object laid over the stored one, and what the applier no longer names taken away
 * (sigs.k8s.io/structured-merge-diff: typed/merge.go, and Apply and prune in merge/update.go).
 */
import type { TSchema } from '../../../api/schema.ts'
import { fieldOf, isObject, type JsonObject } from '../../../api/text/json.ts'
import { type OwnObject, ownCopy, setField } from '../wire/patch.ts'
import type { FieldSet } from './field-set.ts'
import { Duplicates, innerSchema, isEmptyValue, itemsByElement, type Shape, shapeOf } from './typed-fields.ts'

/** `live` with the fields of `given` laid over it. An object or a list that is null in `given` changes nothing. */
export function mergedValue(schema: TSchema | undefined, live: unknown, given: unknown): unknown {
  if (given === undefined) return live
  const shape = shapeOf(schema)
  if (shape.shape === 'leaf') return given
  if (isEmptyValue(given)) return isEmptyValue(live) ? given : live
  if (shape.shape === 'items') {
    return Array.isArray(given) ? mergedItems(shape, Array.isArray(live) ? live : [], given) : given
  }
  if (!isObject(given)) return given
  const result: OwnObject = isObject(live) ? ownCopy(live) : {}
  for (const [name, value] of Object.entries(given)) {
    setField(result, name, mergedValue(innerSchema(shape, name), fieldOf(result, name), value))
  }
  return result
}

/**
 * Both lists keep their order as far as they agree on it: a stored item that is not given stays before the item it stood
 * before.
 */
function mergedItems(
  { items, elementOf }: Extract<Shape, { shape: 'items' }>,
  live: readonly unknown[],
  given: readonly unknown[],
): readonly unknown[] {
  const wanted = itemsByElement(given, elementOf)
  const known = itemsByElement(live, elementOf)
  const order = [...wanted.keys()]
  const shared = order.filter((element) => known.has(element))
  const stored = live.map((item) => ({ item, element: elementOf(item) ?? '' }))
  const merged = new Set<string>()
  const result: unknown[] = []
  const take = (element: string) => {
    const before = known.get(element)
    const item = wanted.get(element)
    merged.add(element)
    if (shared[0] === element) shared.shift()
    result.push(mergedValue(items, before instanceof Duplicates ? undefined : before, lastOf(item)))
  }
  /** It is, or will be, where the applier has it. */
  const isElsewhere = (element: string, asked: string | undefined) =>
    merged.has(element) || (asked !== element && shared.length > 0 && shared[0] !== element)
  let [at, next] = [0, 0]
  while (at < stored.length || next < order.length) {
    const one = stored[at]
    const asked = order[next]
    if (one !== undefined && !wanted.has(one.element)) {
      result.push(one.item)
      at++
    } else if (one !== undefined && isElsewhere(one.element, asked)) {
      at++
    } else {
      if (asked === one?.element) at++
      if (asked !== undefined) take(asked)
      next++
    }
  }
  return result
}

const lastOf = (item: unknown) => (item instanceof Duplicates ? item.items.at(-1) : item)

/**
 * `value` without what the applier named last time only (`dropped`), unless a manager owns it now (`owned`). What stands below something
 * without an owner goes with it. A field of an object counts as owned when anything in it is; an item or a key of a map
 * only by itself (EnsureNamedFieldsAreMembers).
 */
export function prunedValue(
  schema: TSchema | undefined,
  value: unknown,
  dropped: FieldSet,
  owned: FieldSet | undefined,
): unknown {
  const shape = shapeOf(schema)
  if (shape.shape === 'leaf') return value
  if (shape.shape === 'items') {
    if (!Array.isArray(value)) return value
    const rest = value.flatMap((item: unknown) => {
      const element = shape.elementOf(item) ?? ''
      const before = dropped.children.get(element)
      if (before === undefined) return [item]
      const now = owned?.children.get(element)
      if (before.isMember && !now?.isMember) return []
      return [prunedValue(shape.items, item, before, now?.isMember ? now : undefined)]
    })
    return rest.length === 0 ? undefined : rest
  }
  return isObject(value) ? prunedObject(shape, value, dropped, owned) : value
}

function prunedObject(
  shape: Shape,
  value: JsonObject,
  dropped: FieldSet,
  owned: FieldSet | undefined,
): JsonObject | undefined {
  const result = ownCopy(value)
  for (const [element, before] of dropped.children) {
    const name = element.slice(2)
    if (!element.startsWith('f:') || !Object.hasOwn(result, name)) continue
    const present = owned?.children.get(element)
    const now = shape.shape === 'struct' || present?.isMember ? present : undefined
    if ((shape.shape === 'struct' || before.isMember) && now === undefined) delete result[name]
    else setField(result, name, prunedValue(innerSchema(shape, name), result[name], before, now))
  }
  return Object.keys(result).length === 0 ? undefined : result
}

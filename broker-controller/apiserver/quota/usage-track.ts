/** What the objects of one kind in one namespace use, kept up to date by their changes; in parts for quotas with scopes. */
import { amountNamed, type ResourceAmounts } from '../../../api/limits/resource-amounts.ts'
import type { ScopeRequirement } from '../../../api/limits/resource-quota.ts'
import { addQuantities, parseQuantity, type Quantity, type QuantityLike, zeroQuantity } from '../../../api/quantity.ts'
import type { AnyStored } from '../../store/store.ts'
import { isInScope } from './scopes.ts'
import { type CountedKind, countedUntilMs, usageOf } from './usage.ts'

type Counted = { readonly object: AnyStored; readonly usage: ResourceAmounts }
type Part = { readonly requirements: readonly ScopeRequirement[]; readonly used: Map<string, Quantity> }

export interface UsageTrack {
  /** A change that the track has already, by its version, changes nothing. Returns whether the usage changed. */
  put(object: AnyStored, nowMs: number): boolean
  remove(object: AnyStored, version: number): boolean
  /** The sum of all objects in the scopes. Pods that are past the end of their deletion cease to count here. */
  used(requirements: readonly ScopeRequirement[], nowMs: number): ReadonlyMap<string, Quantity>
}

/** `since`: the version of the list that `objects` are. */
export function usageTrack(kind: CountedKind, objects: readonly AnyStored[], since: number, nowMs: number): UsageTrack {
  const counted = new Map<string, Counted>()
  const parts = new Map<string, Part>()
  /** Names of pods whose usage changes with time alone. */
  const ending = new Set<string>()

  const replace = (name: string, now: Counted | undefined): boolean => {
    const before = counted.get(name)
    if (now === undefined) counted.delete(name)
    else counted.set(name, now)
    let changed = false
    for (const { requirements, used } of parts.values()) {
      const had = before !== undefined && isInScope(kind, before.object, requirements) ? before.usage : {}
      const has = now !== undefined && isInScope(kind, now.object, requirements) ? now.usage : {}
      changed = move(used, had, has) || changed
    }
    return changed
  }
  const count = (object: AnyStored, atMs: number): boolean => {
    const { name } = object.metadata
    if (kind.id === 'pods' && countedUntilMs(object) !== undefined) ending.add(name)
    else ending.delete(name)
    return replace(name, { object, usage: usageOf(kind, object, atMs) })
  }
  for (const object of objects) count(object, nowMs)

  return {
    put(object, atMs) {
      const before = counted.get(object.metadata.name)?.object.metadata.resourceVersion ?? since
      return Number(object.metadata.resourceVersion) > Number(before) && count(object, atMs)
    },
    remove({ metadata: { name } }, version) {
      const before = counted.get(name)?.object.metadata.resourceVersion ?? version
      if (version <= Number(before)) return false
      ending.delete(name)
      return replace(name, undefined)
    },
    used(requirements, atMs) {
      for (const name of ending) {
        const object = counted.get(name)?.object
        if (object !== undefined && (countedUntilMs(object) ?? atMs) < atMs) {
          count(object, atMs)
          ending.delete(name)
        }
      }
      const key = JSON.stringify(requirements)
      const part = parts.get(key) ?? { requirements, used: new Map<string, Quantity>() }
      if (!parts.has(key)) {
        for (const { object, usage } of counted.values()) {
          if (isInScope(kind, object, requirements)) move(part.used, {}, usage)
        }
        parts.set(key, part)
      }
      return part.used
    },
  }
}

/** Takes the amounts of `had` from the sums and adds those of `has`. Returns whether a sum changed. */
function move(sums: Map<string, Quantity>, had: ResourceAmounts, has: ResourceAmounts): boolean {
  let changed = false
  for (const name of new Set([...Object.keys(had), ...Object.keys(has)])) {
    const before = sums.get(name) ?? zeroQuantity
    const less = negative(amountNamed(had, name) ?? zeroQuantity)
    const after = addQuantities(addQuantities(before, less), amountNamed(has, name) ?? zeroQuantity)
    changed ||= after.nano !== before.nano
    sums.set(name, after)
  }
  return changed
}

function negative(amount: QuantityLike): Quantity {
  const { nano, family } = typeof amount === 'object' ? amount : parseQuantity(amount)
  return { nano: -nano, family }
}

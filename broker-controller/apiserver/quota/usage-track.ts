/** What the objects of one kind in one namespace use, kept up to date by their changes; in parts for quotas with scopes. */
import { setImmediate as nextTurn } from 'node:timers/promises'
import { amountNamed, type ResourceAmounts } from '../../../api/limits/resource-amounts.ts'
import type { ScopeRequirement } from '../../../api/limits/resource-quota.ts'
import { addQuantities, parseQuantity, type Quantity, type QuantityLike, zeroQuantity } from '../../../api/quantity.ts'
import type { AnyStored } from '../../store/store.ts'
import { isInScope } from './scopes.ts'
import { type CountedKind, countedUntilMs, usageOf } from './usage.ts'

/** An object and what it uses. */
export type Counted = { readonly object: AnyStored; readonly usage: ResourceAmounts }
type Part = { readonly requirements: readonly ScopeRequirement[]; readonly used: Map<string, Quantity> }
type Change = { readonly before: Counted | undefined; readonly now: Counted | undefined }

export interface UsageTrack {
  /** A change that the track has already, by its version, changes nothing. Returns whether the usage changed. */
  put(object: AnyStored, nowMs: number): boolean
  remove(object: AnyStored, version: number): boolean
  has(name: string): boolean
  /** The sum of all objects in the scopes. Pods that are past the end of their deletion cease to count here. */
  used(requirements: readonly ScopeRequirement[], nowMs: number): ReadonlyMap<string, Quantity>
  /** Makes that sum in pieces: what is written meanwhile counts. */
  prepare(requirements: readonly ScopeRequirement[]): Promise<void>
}

/** Objects that are counted without a turn for others: about 5 ms. */
export const countedAtOnce = 250

/** `counted`: the objects by name, which the track keeps from now on. `since`: the version of the list that they were read from. */
export function usageTrack(kind: CountedKind, counted: Map<string, Counted>, since: number): UsageTrack {
  /** What changed since a sum that is being made was begun, for each such sum. */
  const journals = new Set<Change[]>()
  const parts = new Map<string, Part>()
  /** Names of pods whose usage changes with time alone. */
  const ending = new Set<string>()
  const endsItself = ({ object }: Counted) => kind.id === 'pods' && countedUntilMs(object) !== undefined
  for (const [name, one] of counted) if (endsItself(one)) ending.add(name)

  const replace = (name: string, now: Counted | undefined): boolean => {
    const before = counted.get(name)
    if (now === undefined) counted.delete(name)
    else counted.set(name, now)
    const change = { before, now }
    for (const journal of journals) journal.push(change)
    let changed = false
    for (const part of parts.values()) changed = moveIn(part, change) || changed
    return changed
  }
  const moveIn = ({ requirements, used }: Part, { before, now }: Change): boolean => {
    const had = before !== undefined && isInScope(kind, before.object, requirements) ? before.usage : {}
    const has = now !== undefined && isInScope(kind, now.object, requirements) ? now.usage : {}
    return move(used, had, has)
  }
  const keep = (name: string, now: Counted): boolean => {
    if (endsItself(now)) ending.add(name)
    else ending.delete(name)
    return replace(name, now)
  }
  const count = (object: AnyStored, atMs: number): boolean => {
    return keep(object.metadata.name, { object, usage: usageOf(kind, object, atMs) })
  }
  /** Pods that have ended by then count no longer. */
  const endCounts = (atMs: number) => {
    for (const name of ending) {
      const object = counted.get(name)?.object
      if (object === undefined || (countedUntilMs(object) ?? atMs) >= atMs) continue
      count(object, atMs)
      ending.delete(name)
    }
  }

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
    has: (name) => counted.has(name),
    used(requirements, atMs) {
      endCounts(atMs)
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
    async prepare(requirements) {
      const key = JSON.stringify(requirements)
      if (parts.has(key)) return
      const part: Part = { requirements, used: new Map() }
      const journal: Change[] = []
      journals.add(journal)
      try {
        for (const [index, now] of [...counted.values()].entries()) {
          if (counted.size > countedAtOnce && index % countedAtOnce === 0) await nextTurn()
          moveIn(part, { before: undefined, now })
        }
      } finally {
        journals.delete(journal)
      }
      for (const change of journal) moveIn(part, change)
      // Another caller may have made it meanwhile.
      if (!parts.has(key)) parts.set(key, part)
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

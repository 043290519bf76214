/** Whether an object fits into a quota (CheckRequest in apiserver/pkg/admission/plugin/resourcequota/controller.go; messages as there). */
import { amountNamed, formatAmounts, type ResourceAmounts } from '../../../api/limits/resource-amounts.ts'
import { type ResourceQuota, scopeRequirements } from '../../../api/limits/resource-quota.ts'
import type { AnyObject } from '../../../api/meta.ts'
import type { Pod } from '../../../api/pod.ts'
import {
  addQuantities,
  compareQuantities,
  parseQuantity,
  type QuantityLike,
  zeroQuantity,
} from '../../../api/quantity.ts'
import { isInScope } from './scopes.ts'
import { type CountedKind, missingInPod, resourcesOfKind, usageOf } from './usage.ts'

export type Charge = {
  readonly kind: CountedKind
  readonly object: AnyObject
  /** What it uses more than the object that it replaces; amounts above zero only. */
  readonly usage: ResourceAmounts
  readonly isNew: boolean
}

/** What writing the object would use. `old`: the object that it replaces. */
export function chargeOf(kind: CountedKind, object: AnyObject, old: AnyObject | undefined, nowMs: number): Charge {
  const before = old === undefined ? {} : usageOf(kind, old, nowMs)
  const more = Object.entries(usageOf(kind, object, nowMs)).map(
    ([name, amount]) => [name, difference(amount, amountNamed(before, name) ?? zeroQuantity)] as const,
  )
  const usage = Object.fromEntries(more.filter(([, amount]) => compareQuantities(amount, zeroQuantity) > 0))
  return { kind, object, usage, isNew: old === undefined }
}

/** Only a Service and a claim can use more after an update (Handles of each evaluator). */
export function isCharged({ kind, isNew }: Charge): boolean {
  return isNew || kind.id === 'services' || kind.id === 'persistentvolumeclaims'
}

/** Whether the charge counts in the quota. */
export function appliesTo({ spec = {} }: ResourceQuota, { kind, object }: Charge): boolean {
  const resources = resourcesOfKind(kind, Object.keys(spec.hard ?? {}))
  return resources.length > 0 && isInScope(kind, object, scopeRequirements(spec))
}

/** The sentence of a 403; undefined: the charge fits. `used`: what is used of each resource of the quota, with charges that are not written yet. */
export function refusalOf(quota: ResourceQuota, charge: Charge, used: ResourceAmounts): string | undefined {
  const { hard = {} } = quota.spec ?? {}
  const name = quota.metadata.name ?? ''
  const counted = resourcesOfKind(charge.kind, Object.keys(hard))
  const missing = charge.kind.id === 'pods' ? missingInPod(charge.object as Pod, counted) : undefined
  if (missing !== undefined) return `failed quota: ${name}: ${missing}`
  const exceeded = counted.filter((resource) => {
    const requested = amountNamed(charge.usage, resource)
    if (requested === undefined) return false
    const total = addQuantities(amountNamed(used, resource) ?? zeroQuantity, requested)
    return compareQuantities(total, amountNamed(hard, resource) ?? zeroQuantity) > 0
  })
  if (exceeded.length === 0) return undefined
  const only = (amounts: ResourceAmounts) =>
    formatAmounts(
      Object.fromEntries(exceeded.map((resource) => [resource, amountNamed(amounts, resource) ?? zeroQuantity])),
    )
  return `exceeded quota: ${name}, requested: ${only(charge.usage)}, used: ${only(used)}, limited: ${only(hard)}`
}

function difference(amount: QuantityLike, before: QuantityLike): QuantityLike {
  const [now, then] = [amount, before].map((one) => (typeof one === 'object' ? one : parseQuantity(one)))
  return now === undefined || then === undefined ? amount : { nano: now.nano - then.nano, family: now.family }
}

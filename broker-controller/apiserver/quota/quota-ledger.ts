/**
 * Charges writes to the quotas of their namespace. What is used is summed from the objects themselves, so nothing is left wrong
 * by a crash or a lost write. A write that was allowed holds its amounts until it is done: of many at the same time only so
 * many pass as fit. Pods that wait are bounded in every namespace, also in one without quotas.
 */
import { type ResourceAmounts, sumOfAmounts } from '../../../api/limits/resource-amounts.ts'
import { type ResourceQuota, scopeRequirements } from '../../../api/limits/resource-quota.ts'
import { zeroQuantity } from '../../../api/quantity.ts'
import type { QuotaLedger } from '../handlers/quota-ledger.ts'
import { forbid } from '../handlers/resource-request.ts'
import { appliesTo, type Charge, chargeOf, isCharged, refusalOf } from './quota-check.ts'
import { type CountedKind, isCounted, resourcesOfKind } from './usage.ts'
import { type UsageIndex, type UsageIndexNeeds, usageIndex } from './usage-index.ts'
import { type WaitingPodsNeeds, waitingPodsBound } from './waiting-pods.ts'

export type QuotaLedgerNeeds = UsageIndexNeeds &
  WaitingPodsNeeds & {
    /** What may stand in a namespace. */
    readonly kinds: { readonly all: readonly CountedKind[] }
  }

export interface UsageLedger extends QuotaLedger {
  /** What objects use of each resource of the quota that is counted. */
  usedOf(quota: ResourceQuota): Promise<ResourceAmounts>
  readonly index: Pick<UsageIndex, 'changedNamespaces' | 'onReady' | 'keepOnly'>
}

export function usageLedger({ store, kinds, clock }: QuotaLedgerNeeds): UsageLedger {
  const index = usageIndex({ store, clock })
  const waiting = waitingPodsBound({ store, clock })
  /** By namespace: what is being written. */
  const pending = new Map<string, Set<Charge>>()

  const countedKinds = ({ spec }: ResourceQuota) => {
    const names = Object.keys(spec?.hard ?? {})
    return kinds.all
      .map((kind) => ({ kind, resources: resourcesOfKind(kind, names) }))
      .filter(({ resources }) => resources.length > 0)
  }
  const placesOf = (quota: ResourceQuota) =>
    countedKinds(quota).map(({ kind }) => ({
      kind,
      namespace: quota.metadata.namespace ?? '',
      scopes: scopeRequirements(quota.spec ?? {}),
    }))

  const used = (quota: ResourceQuota): ResourceAmounts => {
    const { namespace = '' } = quota.metadata
    const scopes = scopeRequirements(quota.spec ?? {})
    const counted = countedKinds(quota).flatMap(({ kind, resources }) => {
      const sums = index.used({ kind, namespace }, scopes)
      return resources.map((name) => [name, sums?.get(name) ?? zeroQuantity] as const)
    })
    return Object.fromEntries(counted)
  }

  /** Its change was read before its write has returned; or another object has its name, and it will not be created. */
  const isCountedAlready = ({ kind, object, isNew }: Charge) => {
    const { namespace = '', name = '' } = object.metadata
    return isNew && index.has({ kind, namespace }, name)
  }

  /** Synchronous: between reading what is used and holding an amount nothing else happens. Throws Forbidden. */
  const admit = (charge: Charge, quotas: readonly ResourceQuota[]) => {
    const { namespace = '', name = '' } = charge.object.metadata
    for (const quota of quotas) {
      const held = [...(pending.get(namespace) ?? [])].filter(
        (other) => appliesTo(quota, other) && !isCountedAlready(other),
      )
      const taken = held.reduce((sum, { usage }) => sumOfAmounts(sum, usage), used(quota))
      const because = refusalOf(quota, charge, taken)
      if (because !== undefined) throw forbid(charge.kind, name, because)
    }
  }

  const chargeQuotas: QuotaLedger['charge'] = async (kind, object, old, put) => {
    const { namespace = '' } = object.metadata
    const quotas = (await store.list('resourcequotas', namespace)).items
    if (quotas.length === 0) return put(object)
    const charge = chargeOf(kind, object, old, clock.wallMs())
    const concerned = isCharged(charge) ? quotas.filter((quota) => appliesTo(quota, charge)) : []
    if (concerned.length === 0) return put(object)
    await index.refresh(concerned.flatMap(placesOf))
    admit(charge, concerned)
    const held = pending.get(namespace) ?? new Set()
    pending.set(namespace, held.add(charge))
    try {
      const result = await put(object)
      index.written(kind, result)
      return result
    } finally {
      held.delete(charge)
      if (held.size === 0) pending.delete(namespace)
    }
  }

  return {
    index,
    async charge(kind, object, old, put) {
      if (!isCounted(kind)) return put(object)
      const charged = () => chargeQuotas(kind, object, old, put)
      return kind.id === 'pods' && old === undefined ? await waiting.admit(object, charged) : await charged()
    },
    async usedOf(quota) {
      await index.refresh(placesOf(quota))
      return used(quota)
    },
  }
}

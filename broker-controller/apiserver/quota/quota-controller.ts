/** Loop: keeps the status of ResourceQuotas, as pkg/controller/resourcequota of Kubernetes does. */
import { amountNamed, type ResourceAmounts } from '../../../api/limits/resource-amounts.ts'
import type { ResourceQuota } from '../../../api/limits/resource-quota.ts'
import { compareQuantities, formatQuantity } from '../../../api/quantity.ts'
import type { Clock } from '../../../daemon/clock.ts'
import { runController } from '../../../daemon/controller.ts'
import type { Log } from '../../../daemon/log.ts'
import { type Loop, runLoops } from '../../../daemon/run.ts'
import { workQueue } from '../../../daemon/work-queue.ts'
import { informer, keyFrom, keyText } from '../../store/informer.ts'
import { rewrite } from '../../store/rewrite.ts'
import type { Store, StoredObject } from '../../store/store.ts'
import type { UsageLedger } from './quota-ledger.ts'

export type QuotaControllerNeeds = {
  readonly store: Store
  readonly quotas: UsageLedger
  readonly clock: Clock
  readonly log: Log
}

/** Changes of many objects within moments are one change of the status. */
const debounceMs = 20
/** Also without a change: a pod that is past the end of its deletion ceases to count (--resource-quota-sync-period). */
const resyncMs = 5 * 60_000
/** The key of the visit that reads the changes of all objects. Those of quotas have a slash. */
const changesKey = 'changes'

export function resourceQuotaController({ store, quotas, clock, log }: QuotaControllerNeeds): Loop {
  return {
    name: 'resource-quota',
    async run(signal) {
      const queue = workQueue(clock)
      const byNamespace = new Map<string, Set<string>>()
      const known = informer({ store, clock, log }, 'resourcequotas', (present, previous) => {
        const { namespace = '', name } = (present ?? previous)?.metadata ?? {}
        const key = keyText({ namespace, name: name ?? '' })
        const keys = byNamespace.get(namespace) ?? new Set<string>()
        if (present === undefined) keys.delete(key)
        else byNamespace.set(namespace, keys.add(key))
        if (keys.size === 0) byNamespace.delete(namespace)
        queue.add(present === undefined ? changesKey : key)
      })

      const readChanges = () => {
        quotas.index.keepOnly(new Set(byNamespace.keys()))
        for (const namespace of quotas.index.changedNamespaces()) {
          for (const key of byNamespace.get(namespace) ?? []) queue.add(key)
        }
        quotas.index.onReady(() => queue.addAfter(changesKey, debounceMs))
        return undefined
      }
      const reconcile = async (key: string) => {
        if (key === changesKey) return readChanges()
        const at = keyFrom(key)
        const quota = await store.get('resourcequotas', at)
        if (quota === undefined) return undefined
        const used = await quotas.usedOf(quota)
        const change = (now: StoredObject<'resourcequotas'>) => withUsage(now, used)
        await rewrite({ store, clock }, 'resourcequotas', { key: at, uid: quota.metadata.uid, part: 'status', change })
        return { requeueAfterMs: resyncMs }
      }

      queue.add(changesKey)
      const loops = [
        { name: 'quotas', run: known.run },
        {
          name: 'status',
          run: (until: AbortSignal) => runController({ name: 'resource-quota', reconcile }, queue, log, until),
        },
      ]
      await runLoops(loops, signal, log)
    },
  }
}

/** The quota with its status; undefined where that is right already. */
export function withUsage<Q extends ResourceQuota>(quota: Q, used: ResourceAmounts): Q | undefined {
  const { hard = {} } = quota.spec ?? {}
  const counted = Object.fromEntries(
    Object.keys(hard).flatMap((name) => {
      const amount = amountNamed(used, name)
      return amount === undefined ? [] : [[name, formatQuantity(amount)] as const]
    }),
  )
  const { status = {} } = quota
  if (isSame(status.hard, hard) && isSame(status.used, counted)) return undefined
  return { ...quota, status: { hard, used: counted } }
}

function isSame(present: ResourceAmounts | undefined, wanted: ResourceAmounts): boolean {
  if (present === undefined) return false
  const names = new Set([...Object.keys(present), ...Object.keys(wanted)])
  return [...names].every((name) => {
    const [is, shall] = [amountNamed(present, name), amountNamed(wanted, name)]
    if (is === undefined || shall === undefined) return false
    return compareQuantities(is, shall) === 0
  })
}

/**
 * Loop: keeps in every PodDisruptionBudget how many of its pods may be evicted now, and withdraws disruptions that did
 * not come.
 */
import type { ObjectReference } from '../../../api/meta.ts'
import type { PodDisruptionBudget } from '../../../api/pod-disruption-budget.ts'
import { labelMatcher, requirementsOf } from '../../../api/selectors.ts'
import { type Clock, rfc3339 } from '../../../daemon/clock.ts'
import { runController } from '../../../daemon/controller.ts'
import { messageOf } from '../../../daemon/errors.ts'
import { eachInTurns } from '../../../daemon/limits/turn-limit.ts'
import type { Log } from '../../../daemon/log.ts'
import { type Loop, runLoops } from '../../../daemon/run.ts'
import { workQueue } from '../../../daemon/work-queue.ts'
import type { Occurrence } from '../../store/event-correlation.ts'
import type { EventRecorder } from '../../store/event-recorder.ts'
import { informer, keyFrom, keyText } from '../../store/informer.ts'
import { objectReference, podReference } from '../../store/references.ts'
import { rewrite } from '../../store/rewrite.ts'
import type { ObjectKey, Store, StoredPod } from '../../store/store.ts'
import { type BudgetPods, budgetPods } from './budget-pods.ts'
import { countBudget, countsByScale, countsDifferently, failedStatus, withStatus } from './disruption.ts'
import { expectedPodsOf, type OwnerScaleNeeds } from './owner-scale.ts'
import { staleDisruptions } from './stale-disruption.ts'

export type DisruptionNeeds = OwnerScaleNeeds & {
  readonly store: Store
  readonly events: EventRecorder
  readonly clock: Clock
  readonly log: Log
}
type Selected = {
  readonly selects: (pod: StoredPod) => boolean
  readonly pods: BudgetPods
  /** The pods that were there before the budget are among them. */
  isRead: boolean
}

/** A drain changes many pods of a budget within moments: they are counted together. */
const debounceMs = 20

export function disruptionController(needs: DisruptionNeeds): Loop {
  return { name: 'disruption', run: (signal) => runDisruption(needs, signal) }
}

async function runDisruption(needs: DisruptionNeeds, signal: AbortSignal): Promise<void> {
  const { store, clock, log } = needs
  const queue = workQueue(clock)
  /** By namespace, then by the budget's key: a change of a pod concerns the budgets of its namespace only. */
  const selected = new Map<string, Map<string, Selected>>()
  const budgetsOf = (namespace = '') => selected.get(namespace) ?? new Map<string, Selected>()

  const pods = informer({ store, clock, log }, 'pods', (present, previous) => {
    const pod = present ?? previous
    if (pod === undefined) return
    if (present !== undefined) stale.observe(present)
    for (const [budget, of] of budgetsOf(pod.metadata.namespace)) {
      if (countChanges(of, pod.metadata.name, present)) queue.addAfter(budget, debounceMs)
    }
  })
  const stale = staleDisruptions(needs, pods.get)
  const budgets = informer({ store, clock, log }, 'poddisruptionbudgets', (present, previous) => {
    const budget = present ?? previous
    if (budget === undefined) return
    const { namespace = '' } = budget.metadata
    const key = keyText(budget.metadata)
    if (present === undefined) budgetsOf(namespace).delete(key)
    else if (previous === undefined || present.metadata.generation !== previous.metadata.generation) {
      const fresh = { selects: selection(present), pods: budgetPods(), isRead: false }
      selected.set(namespace, budgetsOf(namespace).set(key, fresh))
    }
    if (present !== undefined) queue.add(key)
  })

  /** Changes of pods meanwhile are added as they come. */
  const readPods = async (namespace: string, budget: Selected) => {
    await eachInTurns([...pods.all()], ({ metadata }) => {
      const pod = metadata.namespace === namespace ? pods.get({ namespace, name: metadata.name }) : undefined
      if (pod !== undefined && budget.selects(pod)) budget.pods.set(pod)
    })
    budget.isRead = true
  }

  const reconcile = async (key: string) => {
    const { namespace, name } = keyFrom(key)
    const budget = budgetsOf(namespace).get(key)
    if (budget?.isRead === false) await readPods(namespace, budget)
    const present = budgets.get({ namespace, name })
    if (present !== undefined && budget?.pods.size === 0) await record(needs, objectReference(present), noPods)
    let next: ReturnType<typeof countBudget> | undefined
    let counted: BudgetPods = budgetPods()
    const wanted = await wantedPods(key)
    await rewrite({ store, clock }, 'poddisruptionbudgets', {
      key: { namespace, name },
      part: 'status',
      change: (budget) => {
        const known = budgetsOf(namespace).get(key)
        // It was changed meanwhile: the next visit reads its pods.
        if (known?.isRead === false || (wanted === undefined && countsByScale(budget))) return undefined
        counted = known?.pods ?? counted
        const nowMs = clock.wallMs()
        next = countBudget(budget, counted, nowMs, rfc3339(nowMs), wanted)
        return withStatus(budget, next.status)
      },
    })
    for (const pod of next?.notDeleted ?? []) await recordNotDeleted(needs, counted.get(pod), key)
    const lookAgainMs = next?.lookAgainMs
    return lookAgainMs === undefined ? undefined : { requeueAfterMs: Math.max(1, lookAgainMs - clock.wallMs()) }
  }

  /** Their number, for a budget that is a part of it. Where it cannot be read nothing is evicted until it can. */
  const wantedPods = async (key: string): Promise<number | undefined> => {
    const { namespace, name } = keyFrom(key)
    const budget = budgets.get({ namespace, name })
    if (budget === undefined || !countsByScale(budget)) return undefined
    try {
      return await expectedPodsOf(needs, namespace, budgetsOf(namespace).get(key)?.pods ?? budgetPods())
    } catch (error) {
      const message = `Failed to calculate the number of expected pods: ${messageOf(error)}`
      const failure = { type: 'Warning', reason: 'CalculateExpectedPodCountFailed', message } as const
      await record(needs, objectReference(budget), failure)
      await allowNone(needs, { namespace, name }, messageOf(error))
      throw error
    }
  }

  const count = async () => {
    await pods.listed
    if (!signal.aborted) await runController({ name: 'disruption', reconcile }, queue, log, signal)
  }

  const loops = [
    { name: 'pods', run: pods.run },
    // Budgets select among the pods there are: those come first.
    { name: 'budgets', run: (until: AbortSignal) => pods.listed.then(() => budgets.run(until)) },
    { name: 'count', run: count },
    { name: 'stale', run: stale.run },
  ]
  await runLoops(loops, signal, log)
}

/** As Kubernetes: each count without pods is one (trySync in pkg/controller/disruption/disruption.go). */
const noPods = { type: 'Normal', reason: 'NoPods', message: 'No matching pods found' } as const

async function recordNotDeleted(needs: DisruptionNeeds, pod: StoredPod | undefined, budget: string): Promise<void> {
  if (pod === undefined) return
  const message = `Pod was expected by PDB ${budget} to be deleted but it wasn't`
  await record(needs, podReference(pod), { type: 'Warning', reason: 'NotDeleted', message })
}

async function record(
  { events, log }: DisruptionNeeds,
  object: ObjectReference,
  what: Pick<Occurrence, 'type' | 'reason' | 'message'>,
): Promise<void> {
  try {
    await events.record({ object, component: 'controllermanager', ...what })
  } catch (error) {
    log.warn('Event not recorded', { reason: what.reason, object: keyText(object), error })
  }
}

async function allowNone({ store, clock }: DisruptionNeeds, key: ObjectKey, why: string): Promise<void> {
  const change = (budget: PodDisruptionBudget) => withStatus(budget, failedStatus(budget, why, rfc3339(clock.wallMs())))
  await rewrite({ store, clock }, 'poddisruptionbudgets', { key, part: 'status', change })
}

function selection({ spec }: PodDisruptionBudget): (pod: StoredPod) => boolean {
  const requirements = requirementsOf(spec?.selector)
  if (requirements?.ok !== true) return () => false
  const matches = labelMatcher(requirements.value)
  return ({ metadata }) => matches(metadata.labels)
}

/** True: the counts of the budget may change with it. */
function countChanges({ selects, pods }: Selected, name: string, present: StoredPod | undefined): boolean {
  const before = pods.get(name)
  // Most changes are of statuses, and a selector may be large.
  const isSame = before !== undefined && present?.metadata.labels === before.metadata.labels
  if (present === undefined || !(isSame || selects(present))) return pods.delete(name)
  pods.set(present)
  return before === undefined || countsDifferently(present, before)
}

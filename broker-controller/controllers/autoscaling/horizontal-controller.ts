/** Loop: scales workloads by what their pods use (reconcileAutoscaler in pkg/controller/podautoscaler/horizontal.go). */
import type { AutoscalerStatus } from '../../../api/autoscaling/horizontal-pod-autoscaler.ts'
import { labelMatcher, parseLabelSelector } from '../../../api/selectors.ts'
import { type Clock, rfc3339 } from '../../../daemon/clock.ts'
import { runController } from '../../../daemon/controller.ts'
import { messageOf } from '../../../daemon/errors.ts'
import { eachInTurns, finishedInTurns } from '../../../daemon/limits/turn-limit.ts'
import type { Log } from '../../../daemon/log.ts'
import { type Loop, runLoops } from '../../../daemon/run.ts'
import { workQueue } from '../../../daemon/work-queue.ts'
import { equalJSON } from '../../store/equal-json.ts'
import type { EventRecorder } from '../../store/event-recorder.ts'
import { informer, keyFrom, keyText } from '../../store/informer.ts'
import { objectReference } from '../../store/references.ts'
import { rewrite } from '../../store/rewrite.ts'
import type { StoredObject, StoredPod } from '../../store/store.ts'
import type { AutoscalerMetrics, ScalingAction } from './autoscaler-metrics.ts'
import {
  type AutoscalerCounts,
  type ConditionType,
  withAutoscalerCondition,
  withAutoscalerCounts,
} from './autoscaler-status.ts'
import { type Proposals, proposeReplicas } from './metric-proposals.ts'
import { readUsage, type UsageReadingNeeds } from './pod-usage-reading.ts'
import { type CalculationSettings, defaultCalculationSettings } from './replica-calculation.ts'
import type { Scales, TargetScale } from './scales.ts'
import { afterScaling, type Finding, limitScaling, newScalingHistory, type ScalingHistory } from './scaling-limits.ts'
import { type SelectorIndex, selectorIndex } from './selector-index.ts'

export type AutoscalerNeeds = UsageReadingNeeds & {
  readonly scales: Scales
  readonly events: EventRecorder
  readonly clock: Clock
  readonly log: Log
  readonly autoscalerMetrics: AutoscalerMetrics
}

/** As kube-controller-manager: --horizontal-pod-autoscaler-sync-period, …-downscale-stabilization. */
export type AutoscalerSettings = CalculationSettings & {
  readonly syncPeriodMs: number
  readonly downscaleStabilizationMs: number
}

export const defaultAutoscalerSettings: AutoscalerSettings = {
  ...defaultCalculationSettings,
  syncPeriodMs: 15_000,
  downscaleStabilizationMs: 5 * 60_000,
}

type Autoscaler = StoredObject<'horizontalpodautoscalers'>

/** In Events, and the service account of its writes. */
const component = 'horizontal-pod-autoscaler'
/** --concurrent-horizontal-pod-autoscaler-syncs. */
const syncsAtOnce = 5

/** An autoscaler is first synced one period after it is seen, then each period, whatever changes (rate_limiters.go). */
export function horizontalPodAutoscaler(
  needs: AutoscalerNeeds,
  settings: AutoscalerSettings = defaultAutoscalerSettings,
): Loop {
  const { store, clock, log, autoscalerMetrics } = needs
  const queue = workQueue(clock)
  const histories = new Map<string, ScalingHistory>()
  const selectors = selectorIndex()
  const failing = new Map<string, string>()

  const autoscalers = informer({ store, clock, log }, 'horizontalpodautoscalers', (present, previous) => {
    const key = keyText((present ?? previous)?.metadata ?? {})
    if (present !== undefined) return queue.addAfter(key, settings.syncPeriodMs)
    histories.delete(key)
    failing.delete(key)
    selectors.remove(key)
  })

  const sync = autoscalerSync(needs, settings, selectors)
  const reconcile = async (key: string, signal: AbortSignal) => {
    const autoscaler = autoscalers.get(keyFrom(key))
    if (autoscaler === undefined) return undefined
    const startMs = clock.monotonicMs()
    const failed = (error: unknown): Synced => ({
      history: histories.get(key),
      problem: messageOf(error),
      action: 'none',
    })
    const { history, problem, action } = await sync(autoscaler, histories.get(key), signal).catch(failed)
    autoscalerMetrics.reconciled(action, problem !== undefined, clock.monotonicMs() - startMs)
    if (autoscalers.get(keyFrom(key)) === undefined) return undefined
    if (history !== undefined) histories.set(key, history)
    if (problem === undefined) failing.delete(key)
    else if (failing.get(key) !== problem) {
      failing.set(key, problem)
      log.warn('Autoscaler failed', { autoscaler: key, problem })
    }
    return { requeueAfterMs: settings.syncPeriodMs }
  }
  const work = (signal: AbortSignal) =>
    runController({ name: 'horizontalpodautoscaler', reconcile }, queue, log, signal, syncsAtOnce)
  return {
    name: 'horizontalpodautoscaler',
    run: (signal) =>
      runLoops(
        [
          { name: 'horizontalpodautoscalers', run: autoscalers.run },
          { name: 'work', run: work },
        ],
        signal,
        log,
      ),
  }
}

type Synced = {
  /** undefined: nothing is remembered yet. */
  readonly history: ScalingHistory | undefined
  /** For the log; undefined: the sync succeeded. */
  readonly problem: string | undefined
  readonly action: ScalingAction
}
/** What is known of one autoscaler during its sync. */
type Draft = {
  readonly autoscaler: Autoscaler
  status: AutoscalerStatus
  readonly set: (type: ConditionType, finding: Finding) => void
  readonly count: (counts: AutoscalerCounts) => void
  readonly record: (type: 'Normal' | 'Warning', reason: string, message: string) => Promise<void>
  /** Writes the status if it changed. */
  readonly save: () => Promise<void>
}

function autoscalerSync(needs: AutoscalerNeeds, settings: AutoscalerSettings, selectors: SelectorIndex) {
  const { scales, clock } = needs

  return async (autoscaler: Autoscaler, known: ScalingHistory | undefined, signal: AbortSignal): Promise<Synced> => {
    const { namespace = '' } = autoscaler.metadata
    const target = autoscaler.spec.scaleTargetRef ?? {}
    const draft = draftOf(needs, autoscaler)
    const reading = await scales.get(namespace, target).catch((error: unknown) => messageOf(error))
    if (typeof reading === 'string') {
      await draft.record('Warning', 'FailedGetScale', reading)
      const message = `the HPA controller was unable to get the target's current scale: ${reading}`
      draft.set('AbleToScale', { status: 'False', reason: 'FailedGetScale', message })
      await draft.save()
      return { history: known, problem: reading, action: 'none' }
    }
    draft.set('AbleToScale', {
      status: 'True',
      reason: 'SucceededGetScale',
      message: "the HPA controller was able to get the target's current scale",
    })
    const current = reading.scale.spec?.replicas ?? 0
    const history = known ?? newScalingHistory(current, clock.monotonicMs())
    const decided = await decide({ needs, settings, selectors, draft, reading, current, history }, signal)
    if (decided.wanted === undefined) {
      draft.count({ currentReplicas: current, desiredReplicas: draft.status.desiredReplicas ?? 0, ...decided })
      await draft.save()
      await draft.record('Warning', 'FailedComputeMetricsReplicas', decided.problem ?? '')
      return { history, problem: decided.problem, action: 'none' }
    }
    return await apply(needs, draft, reading, current, decided)
  }
}

type Decided = {
  /** undefined: the metrics do not decide. */
  readonly wanted: number | undefined
  readonly reason: string
  readonly currentMetrics: Proposals['statuses']
  readonly history: ScalingHistory
  readonly problem: string | undefined
}

type Decision = {
  readonly needs: AutoscalerNeeds
  readonly settings: AutoscalerSettings
  readonly selectors: SelectorIndex
  readonly draft: Draft
  readonly reading: TargetScale
  readonly current: number
  readonly history: ScalingHistory
}

/** How many replicas the target is to have; metrics are read only where they decide. */
async function decide(decision: Decision, signal: AbortSignal): Promise<Decided> {
  const { draft, current, history } = decision
  const { minReplicas = 1, maxReplicas = 0 } = draft.autoscaler.spec
  const plainly = { currentMetrics: [], history, problem: undefined }
  if (current === 0 && minReplicas !== 0) {
    const message = 'scaling is disabled since the replica count of the target is zero'
    draft.set('ScalingActive', { status: 'False', reason: 'ScalingDisabled', message })
    return { ...plainly, wanted: 0, reason: '' }
  }
  if (current > maxReplicas) {
    return { ...plainly, wanted: maxReplicas, reason: 'Current number of replicas above Spec.MaxReplicas' }
  }
  if (current < minReplicas) {
    return { ...plainly, wanted: minReplicas, reason: 'Current number of replicas below Spec.MinReplicas' }
  }
  return await decideByMetrics(decision, signal)
}

async function decideByMetrics(decision: Decision, signal: AbortSignal): Promise<Decided> {
  const { needs, settings, draft, current, history } = decision
  const { metadata, spec } = draft.autoscaler
  const pods = await selectedPods(decision)
  if (typeof pods === 'string') {
    return { wanted: undefined, reason: '', currentMetrics: [], history, problem: pods }
  }
  const usage = await readUsage(needs, pods, signal)
  const { namespace = '' } = metadata
  const input = { namespace, current, metrics: spec.metrics ?? [], pods, usage, nowMs: needs.clock.wallMs() }
  const { replicas, metric, statuses, failures, problem } = await finishedInTurns(proposeReplicas(input, settings))
  for (const { reason, message } of failures) await draft.record('Warning', reason, message)
  const [first] = failures
  if (replicas === undefined) {
    const message = `the HPA was unable to compute the replica count: ${first?.message ?? ''}`
    draft.set('ScalingActive', { status: 'False', reason: first?.reason ?? '', message })
    return { wanted: undefined, reason: '', currentMetrics: statuses, history, problem }
  }
  draft.set('ScalingActive', {
    status: 'True',
    reason: 'ValidMetricFound',
    message: `the HPA was able to successfully calculate a replica count from ${metric}`,
  })
  const limited = limitScaling({
    current,
    wanted: replicas,
    minReplicas: spec.minReplicas ?? 1,
    maxReplicas: spec.maxReplicas ?? 0,
    behavior: spec.behavior,
    history,
    downscaleStabilizationMs: settings.downscaleStabilizationMs,
    nowMs: needs.clock.monotonicMs(),
  })
  draft.set('AbleToScale', limited.ableToScale)
  draft.set('ScalingLimited', limited.scalingLimited)
  const above = replicas > current ? `${metric} above target` : ''
  const reason = replicas < current ? 'All metrics below target' : above
  return { wanted: limited.replicas, reason, currentMetrics: statuses, history: limited.history, problem }
}

/** The pods of the target; a text: why there is no selector for them alone (validateAndParseSelector). */
async function selectedPods({ needs, selectors, draft, reading }: Decision): Promise<readonly StoredPod[] | string> {
  const { namespace = '' } = draft.autoscaler.metadata
  const selector = reading.scale.status?.selector ?? ''
  const refuse = async (event: string, reason: string, problem: string, message = problem) => {
    await draft.record('Warning', event, problem)
    draft.set('ScalingActive', { status: 'False', reason, message })
    return problem
  }
  if (selector === '') {
    const message = "the HPA target's scale is missing a selector"
    return await refuse('SelectorRequired', 'InvalidSelector', 'selector is required', message)
  }
  const parsed = parseLabelSelector(selector)
  if (!parsed.ok) {
    const problem = `couldn't convert selector into a corresponding internal selector object: ${parsed.problem}`
    return await refuse('InvalidSelector', 'InvalidSelector', problem)
  }
  const matches = labelMatcher(parsed.value)
  const key = keyText(draft.autoscaler.metadata)
  selectors.set(key, namespace, matches)
  const pods: StoredPod[] = []
  await eachInTurns((await needs.store.list('pods', namespace)).items, (pod) => {
    if (matches(pod.metadata.labels)) pods.push(pod)
  })
  const others = await selectors.selecting(namespace, pods)
  if (others.length <= 1) return pods
  const names = others.map((one) => `{${keyFrom(one).name} ${namespace}}`).join(' ')
  const problem = `pods by selector ${selector} are controlled by multiple HPAs: [${names}]`
  return await refuse('AmbiguousSelector', 'AmbiguousSelector', problem)
}

/** Scales the target where it has other replicas than wanted, and writes the status. */
async function apply(
  { scales, clock }: AutoscalerNeeds,
  draft: Draft,
  reading: TargetScale,
  current: number,
  { wanted = current, reason, currentMetrics, history, problem }: Decided,
): Promise<Synced> {
  if (wanted === current) {
    draft.count({ currentReplicas: current, desiredReplicas: current, currentMetrics })
    await draft.save()
    return { history, problem, action: 'none' }
  }
  const failed = await scales.update(reading, wanted, component).then(
    () => undefined,
    (error: unknown) => messageOf(error),
  )
  if (failed !== undefined) {
    await draft.record('Warning', 'FailedRescale', `New size: ${wanted}; reason: ${reason}; error: ${failed}`)
    const message = `the HPA controller was unable to update the target scale: ${failed}`
    draft.set('AbleToScale', { status: 'False', reason: 'FailedUpdateScale', message })
    const desiredReplicas = draft.status.desiredReplicas ?? 0
    draft.count({ currentReplicas: current, desiredReplicas, currentMetrics })
    await draft.save()
    return { history, problem: failed, action: 'none' }
  }
  draft.set('AbleToScale', {
    status: 'True',
    reason: 'SucceededRescale',
    message: `the HPA controller was able to update the target scale to ${wanted}`,
  })
  await draft.record('Normal', 'SuccessfulRescale', `New size: ${wanted}; reason: ${reason}`)
  const scaledAt = rfc3339(clock.wallMs())
  draft.count({ currentReplicas: current, desiredReplicas: wanted, currentMetrics, scaledAt })
  await draft.save()
  const isRemembered = draft.autoscaler.spec.behavior !== undefined
  return {
    history: isRemembered ? afterScaling(history, current, wanted, clock.monotonicMs()) : history,
    problem,
    action: wanted > current ? 'scale_up' : 'scale_down',
  }
}

function draftOf({ store, events, clock, log }: AutoscalerNeeds, autoscaler: Autoscaler): Draft {
  const { name, namespace = '', uid } = autoscaler.metadata
  const draft: Draft = {
    autoscaler,
    status: autoscaler.status ?? {},
    set(type, finding) {
      draft.status = withAutoscalerCondition(draft.status, type, finding, rfc3339(clock.wallMs()))
    },
    count(counts) {
      draft.status = withAutoscalerCounts(draft.status, counts)
    },
    async record(type, reason, message) {
      try {
        await events.record({ object: objectReference(autoscaler), component, type, reason, message })
      } catch (error) {
        log.warn('Event not recorded', { reason, object: keyText(autoscaler.metadata), error })
      }
    },
    async save() {
      const { status } = draft
      if (equalJSON(status, autoscaler.status ?? {})) return
      const change = (fresh: Autoscaler) => ({ ...fresh, status })
      try {
        await rewrite({ store, clock }, 'horizontalpodautoscalers', {
          key: { namespace, name },
          uid,
          part: 'status',
          change,
        })
      } catch (error) {
        await draft.record('Warning', 'FailedUpdateStatus', messageOf(error))
        throw new Error(`failed to update status for ${name}: ${messageOf(error)}`, { cause: error })
      }
    },
  }
  return draft
}

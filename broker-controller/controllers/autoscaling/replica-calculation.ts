/**
 * How many replicas the usage of pods asks for (pkg/controller/podautoscaler/replica_calculator.go and metrics/utilization.go).
 * Amounts are in thousandths: of a core, of a byte.
 */
import { podCondition } from '../../../api/pod/pod-conditions.ts'
import type { Pod } from '../../../api/pod.ts'
import { milliValue } from '../../../api/quantity.ts'
import type { Steps } from '../../../daemon/watchdog/steps.ts'

export type CalculationSettings = {
  /** A ratio of usage to target that is as near to one as this changes nothing. */
  readonly tolerance: number
  /** After its start the usage of CPU counts only while the pod is ready. */
  readonly cpuInitializationPeriodMs: number
  /** A pod that has not become ready for this long after its start has not been ready at all. */
  readonly initialReadinessDelayMs: number
}

/** As kube-controller-manager: --horizontal-pod-autoscaler-tolerance, …-cpu-initialization-period, …-initial-readiness-delay. */
export const defaultCalculationSettings: CalculationSettings = {
  tolerance: 0.1,
  cpuInitializationPeriodMs: 5 * 60_000,
  initialReadinessDelayMs: 30_000,
}

export type PodMetric = { readonly value: number; readonly timestampMs: number; readonly windowMs: number }

export type CalculationInput = {
  /** The target's `spec.replicas`. */
  readonly current: number
  /** `cpu`, `memory`. */
  readonly resource: string
  /** The container whose usage counts; undefined: all of them. */
  readonly container?: string | undefined
  readonly pods: readonly Pod[]
  /** By the names of pods. */
  readonly metrics: ReadonlyMap<string, PodMetric>
  /** Wall time. */
  readonly nowMs: number
}

export type Calculation =
  | { readonly ok: true; readonly replicas: number; readonly average: number; readonly utilization?: number }
  | { readonly ok: false; readonly problem: string }

const mostReplicas = 2 ** 31 - 1

/** For a target in percent of what the pods request (GetResourceReplicas). In steps, as the others: there may be very many pods. */
export function* replicasByUtilization(
  input: CalculationInput,
  target: number,
  settings: CalculationSettings,
): Steps<Calculation> {
  const counted = yield* countedPods(input, settings)
  if (!counted.ok) return counted
  const requests = yield* podRequests(input)
  if (!requests.ok) return requests
  const requestOf = (pod: string) => requests.byPod.get(pod) ?? 0
  const fallback = Math.max(100, target)
  return yield* proposed(input.current, settings, counted, {
    ratioOf: (used) => utilizationRatio(used, requests.byPod, target),
    whenMissing: (pod) => Math.trunc((requestOf(pod) * fallback) / 100),
  })
}

/** For a target as an average of the pods (GetRawResourceReplicas, calcPlainMetricReplicas). */
export function* replicasByValue(
  input: CalculationInput,
  target: number,
  settings: CalculationSettings,
): Steps<Calculation> {
  const counted = yield* countedPods(input, settings)
  if (!counted.ok) return counted
  return yield* proposed(input.current, settings, counted, {
    *ratioOf(used) {
      const average = Number((yield* sumOf(used.values())) / BigInt(used.size))
      return { ok: true, ratio: average / target, average }
    },
    whenMissing: () => target,
  })
}

type PodGroups = {
  readonly readyCount: number
  readonly unready: readonly string[]
  readonly missing: readonly string[]
  readonly used: ReadonlyMap<string, number>
}

/** Which pods count, and what they use (groupPods). */
function* countedPods(
  { pods, metrics, resource, nowMs }: CalculationInput,
  settings: CalculationSettings,
): Steps<(PodGroups & { readonly ok: true }) | { readonly ok: false; readonly problem: string }> {
  if (pods.length === 0) return failed('no pods returned by selector while calculating replica count')
  const used = new Map<string, number>()
  const unready: string[] = []
  const missing: string[] = []
  for (const pod of pods) {
    yield
    const { name = '', deletionTimestamp } = pod.metadata
    if (deletionTimestamp !== undefined || pod.status?.phase === 'Failed') continue
    const metric = metrics.get(name)
    // A pod without a phase was not seen by its node: the API makes it Pending.
    if ((pod.status?.phase ?? 'Pending') === 'Pending') unready.push(name)
    else if (metric === undefined) missing.push(name)
    else if (resource === 'cpu' && isUnready(pod, metric, nowMs, settings)) unready.push(name)
    else used.set(name, metric.value)
  }
  if (used.size === 0) return failed('did not receive metrics for targeted pods (pods might be unready)')
  return { ok: true, readyCount: used.size, unready, missing, used }
}

function isUnready(pod: Pod, metric: PodMetric, nowMs: number, settings: CalculationSettings): boolean {
  const ready = podCondition(pod, 'Ready')
  const startMs = Date.parse(pod.status?.startTime ?? '')
  if (ready === undefined || Number.isNaN(startMs)) return true
  const changedMs =
    ready.lastTransitionTime === undefined ? Number.NEGATIVE_INFINITY : Date.parse(ready.lastTransitionTime)
  const isFalse = ready.status === 'False'
  if (startMs + settings.cpuInitializationPeriodMs > nowMs) {
    // A sample counts when its whole window is after the pod became ready.
    return isFalse || metric.timestampMs < changedMs + metric.windowMs
  }
  return isFalse && startMs + settings.initialReadinessDelayMs > changedMs
}

/** What each pod requests of the resource; init containers that stay count, too (calculatePodRequests). */
function* podRequests({
  pods,
  resource,
  container,
}: CalculationInput): Steps<
  { readonly ok: true; readonly byPod: ReadonlyMap<string, number> } | { readonly ok: false; readonly problem: string }
> {
  const byPod = new Map<string, number>()
  for (const { metadata, spec } of pods) {
    yield
    const staying = (spec.initContainers ?? []).filter(({ restartPolicy }) => restartPolicy === 'Always')
    const counted = [...spec.containers, ...staying].filter(({ name }) => container === undefined || container === name)
    let sum = 0
    for (const { name, resources } of counted) {
      const request = resources?.requests?.[resource]
      if (request === undefined) {
        return failed(`missing request for ${resource} in container ${name} of Pod ${metadata.name}`)
      }
      sum += milliValue(request)
    }
    byPod.set(metadata.name ?? '', sum)
  }
  return { ok: true, byPod }
}

type Ratio =
  | { readonly ok: true; readonly ratio: number; readonly average: number; readonly utilization?: number }
  | { readonly ok: false; readonly problem: string }

function* utilizationRatio(
  used: ReadonlyMap<string, number>,
  requests: ReadonlyMap<string, number>,
  target: number,
): Steps<Ratio> {
  const total = yield* sumOf(used.values())
  const requested = yield* sumOf([...used.keys()].map((pod) => requests.get(pod) ?? 0))
  if (requested === 0n) return failed('no metrics returned matched known pods')
  const utilization = Math.min(Number((total * 100n) / requested), mostReplicas)
  const average = Number(total / BigInt(used.size))
  return { ok: true, ratio: utilization / target, average, utilization }
}

type Measure = {
  ratioOf(used: ReadonlyMap<string, number>): Steps<Ratio>
  /** What a pod without a metric is taken to use where the others ask for fewer replicas. */
  whenMissing(pod: string): number
}

/** The usage with that of pods whose usage is not known: see `proposed`. */
function* withGuesses(
  used: ReadonlyMap<string, number>,
  ratio: number,
  { unready, missing, whenMissing }: Pick<PodGroups, 'unready' | 'missing'> & Pick<Measure, 'whenMissing'>,
): Steps<ReadonlyMap<string, number>> {
  const filled = new Map(used)
  for (const pod of ratio < 1 ? missing : []) {
    yield
    filled.set(pod, whenMissing(pod))
  }
  for (const pod of ratio > 1 ? [...missing, ...unready] : []) {
    yield
    filled.set(pod, 0)
  }
  return filled
}

/**
 * Pods whose usage is not known do not turn the direction: they are taken to use much where replicas would be removed, and
 * nothing where replicas would be added.
 */
function* proposed(
  current: number,
  { tolerance }: CalculationSettings,
  { readyCount, unready, missing, used }: PodGroups,
  { ratioOf, whenMissing }: Measure,
): Steps<Calculation> {
  const first = yield* ratioOf(used)
  if (!first.ok) return first
  const { ratio, average, utilization } = first
  const result = (replicas: number): Calculation => ({
    ok: true,
    replicas: Math.min(replicas, mostReplicas),
    average,
    ...(utilization !== undefined && { utilization }),
  })
  const isNear = (one: number) => Math.abs(1 - one) <= tolerance
  const growsWithUnready = unready.length > 0 && ratio > 1
  if (!growsWithUnready && missing.length === 0) {
    return result(isNear(ratio) ? current : Math.ceil(ratio * readyCount))
  }
  const filled = yield* withGuesses(used, ratio, { unready, missing, whenMissing })
  const second = yield* ratioOf(filled)
  if (!second.ok) return second
  const shrinks = second.ratio < 1
  if (isNear(second.ratio) || ratio < 1 !== shrinks) return result(current)
  const replicas = Math.ceil(second.ratio * filled.size)
  return result(shrinks ? Math.min(replicas, current) : Math.max(replicas, current))
}

function* sumOf(values: Iterable<number>): Steps<bigint> {
  let sum = 0n
  for (const value of values) {
    yield
    sum += BigInt(value)
  }
  return sum
}

function failed(problem: string): { readonly ok: false; readonly problem: string } {
  return { ok: false, problem }
}

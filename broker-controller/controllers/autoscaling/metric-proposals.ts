/** How many replicas the metrics of an autoscaler ask for, all together (computeReplicasForMetrics in pkg/controller/podautoscaler/horizontal.go). */
import type {
  MetricSpec,
  MetricStatus,
  MetricTarget,
  MetricValueStatus,
} from '../../../api/autoscaling/horizontal-pod-autoscaler.ts'
import type { LabelSelector } from '../../../api/meta.ts'
import type { Pod } from '../../../api/pod.ts'
import { formatQuantity, milliValue } from '../../../api/quantity.ts'
import type { Steps } from '../../../daemon/watchdog/steps.ts'
import {
  type CalculationSettings,
  type PodMetric,
  replicasByUtilization,
  replicasByValue,
} from './replica-calculation.ts'

/** By the name of the container; in thousandths of a core or a byte, as quantities of metrics.k8s.io are read. */
export type ReadUsage = {
  readonly timestampMs: number
  readonly windowMs: number
  readonly containers: ReadonlyMap<string, { readonly [resource: string]: number }>
}

export type ProposalInput = {
  readonly namespace: string
  readonly current: number
  readonly metrics: readonly MetricSpec[]
  readonly pods: readonly Pod[]
  /** By the names of pods, those without any left out. */
  readonly usage: ReadonlyMap<string, ReadUsage>
  readonly nowMs: number
}

/** A metric that cannot be read: the Event and the reason of the condition, with their message. */
export type MetricFailure = { readonly reason: string; readonly message: string }

export type Proposals = {
  /** undefined: metrics are missing, and what the others ask for must not be done. */
  readonly replicas: number | undefined
  /** The metric that asks for most, as messages call it. */
  readonly metric: string
  readonly statuses: readonly MetricStatus[]
  readonly failures: readonly MetricFailure[]
  /** The sentence about all failures; undefined: there is none. */
  readonly problem: string | undefined
}

type Proposal =
  | { readonly ok: true; readonly replicas: number; readonly metric: string; readonly status: MetricStatus }
  | (MetricFailure & { readonly ok: false; readonly problem: string })

/** In steps: there may be very many pods. */
export function* proposeReplicas(input: ProposalInput, settings: CalculationSettings): Steps<Proposals> {
  const proposals: Proposal[] = []
  for (const metric of input.metrics) proposals.push(yield* proposalOf(metric, input, settings))
  const failures = proposals.filter((one) => !one.ok)
  const [firstFailure] = failures
  let best: { readonly replicas: number; readonly metric: string } = { replicas: 0, metric: '' }
  for (const one of proposals) {
    if (one.ok && (best.replicas === 0 || one.replicas > best.replicas)) best = one
  }
  const problem =
    firstFailure &&
    `invalid metrics (${failures.length} invalid out of ${proposals.length}), first error is: ${firstFailure.problem}`
  // What is not known could ask for more: it is not a reason to remove replicas.
  const isUnsafe = failures.length >= proposals.length || (failures.length > 0 && best.replicas < input.current)
  return {
    replicas: isUnsafe ? undefined : best.replicas,
    metric: best.metric,
    // A metric that cannot be read has a status without a type, as in Kubernetes.
    statuses: proposals.map((one) => (one.ok ? one.status : { type: '' })),
    failures: failures.map(({ reason, message }) => ({ reason, message })),
    problem,
  }
}

function* proposalOf(spec: MetricSpec, input: ProposalInput, settings: CalculationSettings): Steps<Proposal> {
  switch (spec.type) {
    case 'Resource': {
      const { name = '', target = {} } = spec.resource ?? {}
      const found = yield* byResource(input, settings, { resource: name, target })
      if (!found.ok)
        return failure('FailedGetResourceMetric', `failed to get ${name} resource metric value`, found.problem)
      return { ...found, status: { type: 'Resource', resource: { name, current: found.current } } }
    }
    case 'ContainerResource': {
      const { name = '', container = '', target = {} } = spec.containerResource ?? {}
      const found = yield* byResource(input, settings, { resource: name, container, target })
      const what = `failed to get ${container} container metric value`
      if (!found.ok) return failure('FailedGetContainerResourceMetric', what, found.problem)
      const status = { name, container, current: found.current }
      return { ...found, status: { type: 'ContainerResource', containerResource: status } }
    }
    case 'Pods':
      return failure(
        'FailedGetPodsMetric',
        'failed to get pods metric value',
        `unable to get metric ${spec.pods?.metric?.name ?? ''}: ${noCustomMetrics}`,
      )
    case 'Object':
      return objectFailure(spec, input.namespace)
    case 'External':
      return externalFailure(spec, input.namespace)
    default: {
      const problem = `unknown metric source type ${JSON.stringify(spec.type ?? '')}`
      return { ok: false, reason: 'InvalidMetricSourceType', message: problem, problem }
    }
  }
}

function failure(reason: string, what: string, message: string): Proposal {
  return { ok: false, reason, message, problem: `${what}: ${message}` }
}

type Wanted = { readonly resource: string; readonly container?: string; readonly target: MetricTarget }
type Found =
  | { readonly ok: true; readonly replicas: number; readonly metric: string; readonly current: MetricValueStatus }
  | { readonly ok: false; readonly problem: string }

/** computeStatusForResourceMetricGeneric. */
function* byResource(input: ProposalInput, settings: CalculationSettings, wanted: Wanted): Steps<Found> {
  const { resource, container, target } = wanted
  const { current, pods, nowMs } = input
  const isValue = target.averageValue !== undefined
  const what = `failed to get ${resource} ${isValue ? 'usage' : 'utilization'}`
  if (!isValue && target.averageUtilization === undefined) {
    const problem =
      'invalid resource metric source: neither an average utilization target nor an average value (usage) target was set'
    return { ok: false, problem }
  }
  const read = yield* metricsOf(input, wanted)
  if (!read.ok) {
    return { ok: false, problem: `${what}: unable to get metrics for resource ${resource}: ${read.problem}` }
  }
  const question = { current, resource, container, pods, metrics: read.metrics, nowMs }
  const answer =
    target.averageValue !== undefined
      ? yield* replicasByValue(question, milliValue(target.averageValue), settings)
      : yield* replicasByUtilization(question, target.averageUtilization ?? 0, settings)
  if (!answer.ok) return { ok: false, problem: `${what}: ${answer.problem}` }
  const { replicas, average, utilization } = answer
  const share = `${resource}${container === undefined ? '' : ' container'} resource utilization (percentage of request)`
  return {
    ok: true,
    replicas,
    metric: isValue ? `${resource} resource` : share,
    current: {
      averageValue: formatQuantity({ nano: BigInt(average) * 1_000_000n, family: 'decimal' }),
      ...(utilization !== undefined && { averageUtilization: utilization }),
    },
  }
}

type Metrics =
  | { readonly ok: true; readonly metrics: ReadonlyMap<string, PodMetric> }
  | { readonly ok: false; readonly problem: string }

/** Usage of one container, or the sum of all if each of them is known (metrics/client.go). */
function* metricsOf({ namespace, usage }: ProposalInput, { resource, container }: Wanted): Steps<Metrics> {
  if (usage.size === 0) return { ok: false, problem: 'no metrics returned from resource metrics API' }
  const metrics = new Map<string, PodMetric>()
  for (const [pod, { containers, timestampMs, windowMs }] of usage) {
    yield
    const counted = container === undefined ? [...containers.values()] : [containers.get(container)]
    const present = counted.filter((used) => used !== undefined)
    if (present.length < counted.length) {
      const missing = `container ${container} not present in metrics for pod ${namespace}/${pod}`
      return { ok: false, problem: `failed to get container metrics: ${missing}` }
    }
    const value = sumOfKnown(present.map((used) => (Object.hasOwn(used, resource) ? used[resource] : undefined)))
    if (value !== undefined) metrics.set(pod, { value, timestampMs, windowMs })
  }
  return { ok: true, metrics }
}

// The errors of Kubernetes' clients where neither API is served (k8s.io/metrics, custom_metrics/discovery.go).
const noCustomMetrics =
  'unable to fetch metrics from custom metrics API: no custom metrics API (custom.metrics.k8s.io) registered'
const noExternalMetrics =
  'unable to fetch metrics from external metrics API: the server could not find the requested resource'

function objectFailure({ object }: MetricSpec, namespace: string): Proposal {
  const { metric, describedObject, target } = object ?? {}
  const reason = 'FailedGetObjectMetric'
  const what = 'failed to get object metric value'
  const isAverage = target?.type === 'AverageValue' && target.averageValue !== undefined
  const isValue = target?.type === 'Value' && target.value !== undefined
  if (!isAverage && !isValue) {
    return failure(
      reason,
      what,
      'invalid object metric source: neither a value target nor an average value target was set',
    )
  }
  const { kind = '', name = '' } = describedObject ?? {}
  // The order of the words is that of Kubernetes.
  const message = `unable to get metric ${metric?.name ?? ''}: ${kind} on ${namespace} ${name}/${noCustomMetrics}`
  return failure(reason, isAverage ? `${what}: failed to get ${metric?.name ?? ''} object metric` : what, message)
}

function externalFailure({ external }: MetricSpec, namespace: string): Proposal {
  const { metric, target } = external ?? {}
  const name = metric?.name ?? ''
  const missing = `${noExternalMetrics} (get ${name}.external.metrics.k8s.io)`
  const problem = `unable to get external metric ${namespace}/${name}/${selectorInGo(metric?.selector)}: ${missing}`
  const what = target?.averageValue === undefined ? `external metric ${name}` : `${name} external metric`
  const outer = `failed to get ${name} external metric value: failed to get ${what}: ${problem}`
  return { ok: false, reason: 'FailedGetExternalMetric', message: problem, problem: outer }
}

/** As Go prints a *LabelSelector with %+v. */
function selectorInGo(selector: LabelSelector | undefined): string {
  if (selector === undefined) return 'nil'
  const { matchLabels = {}, matchExpressions = [] } = selector
  const labels = Object.entries(matchLabels).sort(([a], [b]) => (a < b ? -1 : 1))
  const equal = labels.map(([key, value]) => `${key}: ${value},`).join('')
  const others = matchExpressions.map(
    ({ key, operator, values = [] }) =>
      `LabelSelectorRequirement{Key:${key},Operator:${operator},Values:[${values.join(' ')}],},`,
  )
  const list = `[]LabelSelectorRequirement{${others.join('')}}`
  return `&LabelSelector{MatchLabels:map[string]string{${equal}},MatchExpressions:${list},}`
}

/** undefined: one is not known. */
function sumOfKnown(amounts: readonly (number | undefined)[]): number | undefined {
  let sum = 0
  for (const amount of amounts) {
    if (amount === undefined) return undefined
    sum += amount
  }
  return sum
}

/** The conditions of a pod: status, transition time and reason. */
import type { ContainerStatus, Pod, PodCondition, PodPhase } from '../../../api/pod.ts'
import { rfc3339, wholeSeconds } from '../../../daemon/clock.ts'
import type { RuntimeContainer } from '../../runtime/runtime.ts'
import { isRunning } from '../record/pod-containers.ts'
import { incomplete, isInitialized, plainInits } from '../record/pod-phase.ts'

type ConditionFacts = {
  readonly pod: Pod
  readonly phase: PodPhase | undefined
  readonly sandbox: RuntimeContainer | undefined
  readonly containerStatuses: readonly ContainerStatus[]
  readonly initStatuses: readonly ContainerStatus[]
  readonly startTime: string
  /** As last reported: an unchanged condition keeps its transition time. */
  readonly last: readonly PodCondition[] | undefined
  readonly nowWallMs: number
}

/** In Kubernetes' order and wording. */
export function conditionsOf(given: ConditionFacts): readonly PodCondition[] {
  const { pod, sandbox, startTime, containerStatuses } = given
  const now = rfc3339(given.nowWallMs)
  const changedAt = (type: string, status: 'True' | 'False', otherwise: string | undefined) => {
    const last = given.last?.find((condition) => condition.type === type)
    if (last !== undefined) return last.status === status ? last.lastTransitionTime : now
    return otherwise ?? startTime
  }
  const condition = (type: string, verdict: Verdict, otherwise: string | undefined): PodCondition => {
    const lastTransitionTime = changedAt(type, verdict.status, otherwise)
    return { type, ...verdict, ...(lastTransitionTime === undefined ? {} : { lastTransitionTime }) }
  }
  const containersReady = readiness(given)
  const ready = containersReady.status === 'True' ? gatesVerdict(pod) : containersReady
  const since = (verdict: Verdict) => (verdict.status === 'True' ? newestStart(containerStatuses) : undefined)
  // The time at which its gates were met is not reported: the time of the first observation counts.
  const gated = (pod.spec.readinessGates ?? []).length > 0 ? now : undefined
  const sandboxUp = sandbox !== undefined && isRunning(sandbox)
  return [
    condition('PodReadyToStartContainers', { status: sandboxUp ? 'True' : 'False' }, wholeSeconds(sandbox?.startedAt)),
    condition('Initialized', initialization(given), startTime),
    condition('Ready', ready, gated ?? since(ready)),
    condition('ContainersReady', containersReady, since(containersReady)),
    condition('PodScheduled', { status: 'True' }, startTime),
  ]
}

type Verdict = { readonly status: 'True' | 'False'; readonly reason?: string; readonly message?: string }

function initialization({ pod, phase, containerStatuses, initStatuses }: ConditionFacts): Verdict {
  if (phase === 'Succeeded') return { status: 'True', reason: 'PodCompleted' }
  if (isInitialized(pod, containerStatuses, initStatuses)) return { status: 'True' }
  const missing = incomplete(pod, initStatuses).join(' ')
  return {
    status: 'False',
    reason: 'ContainersNotInitialized',
    message: `containers with incomplete status: [${missing}]`,
  }
}

function readiness({ pod, phase, containerStatuses, initStatuses }: ConditionFacts): Verdict {
  if (phase === 'Succeeded') return { status: 'False', reason: 'PodCompleted' }
  if (phase === 'Failed') return { status: 'False', reason: 'PodFailed' }
  const plain = plainInits(pod, initStatuses)
  const sidecars = initStatuses.filter((status) => !plain.includes(status))
  const unready = [...sidecars, ...containerStatuses].filter(({ ready }) => !ready).map(({ name }) => name)
  if (unready.length === 0) return { status: 'True' }
  return {
    status: 'False',
    reason: 'ContainersNotReady',
    message: `containers with unready status: [${unready.join(' ')}]`,
  }
}

/**
 * The readiness gates of a pod: conditions that other components set, in Kubernetes' wording (pkg/kubelet/status/generate.go).
 */
function gatesVerdict({ spec, status }: Pod): Verdict {
  const closed = (spec.readinessGates ?? []).flatMap(({ conditionType }) => {
    const value = status?.conditions?.find(({ type }) => type === conditionType)?.status
    if (value === 'True') return []
    if (value === undefined) return `corresponding condition of pod readiness gate "${conditionType}" does not exist.`
    return `the status of pod readiness gate "${conditionType}" is not "True", but ${value}`
  })
  if (closed.length === 0) return { status: 'True' }
  return { status: 'False', reason: 'ReadinessGatesNotReady', message: closed.join(', ') }
}

function newestStart(statuses: readonly ContainerStatus[]): string | undefined {
  return statuses
    .flatMap(({ state }) => state?.running?.startedAt ?? [])
    .sort()
    .at(-1)
}

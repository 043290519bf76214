/** What the engine has of a pod, and what holds it up → the status that kubectl shows. */

import type {
  Container,
  ContainerState,
  ContainerStatus,
  Pod,
  PodCondition,
  PodPhase,
  PodStatus,
} from '../../api/pod.ts'
import { qosClassOf } from '../../api/qos-class.ts'
import { rfc3339 } from '../../daemon/clock.ts'
import { exitCodeOf, hasEnded, isRunning, isSidecar, type PodContainers, sortContainers } from './pod-containers.ts'
import type { Vital, Vitals, Waiting } from './pod-steps.ts'
import { restartPolicyOf } from './restarts.ts'
import type { RuntimeContainer } from './runtime.ts'
import { withinPod } from './termination-messages.ts'

export type StatusFacts = {
  readonly containers: readonly RuntimeContainer[]
  readonly waiting: ReadonlyMap<string, Waiting>
  readonly vitals: Vitals
  /** By container id: what it left to be read. */
  readonly messages: ReadonlyMap<string, string>
  /** The status last reported, for what only it remembers. */
  readonly last: PodStatus | undefined
  readonly hostIP: string | undefined
  readonly nowWallMs: number
}

/** Succeeded and Failed are never left again. */
export function isFinal(phase: PodPhase | undefined): boolean {
  return phase === 'Succeeded' || phase === 'Failed'
}

export function podStatus(pod: Pod, facts: StatusFacts): PodStatus {
  const found = sortContainers(facts.containers)
  const inits = pod.spec.initContainers ?? []
  const statusOf = (container: Container) =>
    containerStatus(container, inits.length > 0 ? 'PodInitializing' : 'ContainerCreating', found, facts)
  const most = pod.spec.containers.length + inits.length
  const containerStatuses = withinPod(pod.spec.containers.map(statusOf), most)
  const initStatuses = withinPod(
    inits.map((container) => initStatus(container, statusOf(container))),
    most,
  )
  const added = (pod.spec.ephemeralContainers ?? []).map((container) =>
    ephemeralStatus(containerStatus(container, 'ContainerCreating', found, facts)),
  )
  const decided = phaseOf(pod, containerStatuses, initStatuses)
  // Who waits to run again has not ended for good, whatever the restart policy says.
  const goesOn = isFinal(decided) && containerStatuses.some(({ name }) => facts.waiting.has(name))
  const phase = isFinal(facts.last?.phase) ? facts.last?.phase : goesOn ? 'Running' : decided
  const { sandbox } = found
  const sandboxUp = sandbox !== undefined && isRunning(sandbox)
  const ownIP = pod.spec.hostNetwork ? facts.hostIP : sandbox?.ip
  // One that is over keeps telling the address it had.
  const podIP = sandboxUp ? ownIP : isFinal(phase) ? facts.last?.podIP : undefined
  const startTime = facts.last?.startTime ?? startOf(facts)
  return {
    phase: phase ?? 'Pending',
    conditions: conditionsOf({ pod, phase, sandboxUp, containerStatuses, initStatuses, startTime, facts, sandbox }),
    ...(facts.hostIP === undefined ? {} : { hostIP: facts.hostIP, hostIPs: [{ ip: facts.hostIP }] }),
    ...(podIP === undefined ? {} : { podIP, podIPs: [{ ip: podIP }] }),
    startTime,
    ...(inits.length === 0 ? {} : { initContainerStatuses: initStatuses }),
    containerStatuses,
    ...(added.length === 0 ? {} : { ephemeralContainerStatuses: added }),
    qosClass: qosClassOf(pod.spec),
  }
}

/** Never ready, as nothing may rely on it; once it has ended, or is lost, it is not waited for. */
function ephemeralStatus({ started: _, lastState, ...status }: ContainerStatus): ContainerStatus {
  const isLost = lastState?.terminated !== undefined && status.state?.waiting?.reason === 'ContainerCreating'
  const state = isLost ? { state: lastState } : {}
  return { ...status, ...state, ready: false }
}

/**
 * The pod is over by a decision, or was before: in the decision's words, which are kept whatever its containers say.
 * Its phase is final only once nothing of it runs.
 */
export function endedStatus(found: PodStatus, ending: PodStatus): PodStatus {
  const { phase = 'Failed', reason, message } = ending
  const { containerStatuses = [], ephemeralContainerStatuses = [] } = found
  const running = [...containerStatuses, ...ephemeralContainerStatuses].some(
    ({ state }) => state?.running !== undefined,
  )
  const disruption = ending.conditions?.filter(({ type }) => type === 'DisruptionTarget') ?? []
  return {
    ...found,
    phase: running ? 'Running' : phase,
    conditions: [...(found.conditions ?? []), ...disruption],
    ...(reason === undefined ? {} : { reason }),
    ...(message === undefined ? {} : { message }),
  }
}

/** The status as if these containers had never been: what they came to does not count. */
export function begunAgain(status: PodStatus, names: readonly string[]): PodStatus {
  const others = (of: readonly ContainerStatus[] = []) => of.filter(({ name }) => !names.includes(name))
  return {
    ...status,
    containerStatuses: others(status.containerStatuses),
    initContainerStatuses: others(status.initContainerStatuses),
  }
}

/** That it is not the pod's own doing that it ends: its owner may have another in its place. */
export function withDisruption(
  conditions: readonly PodCondition[],
  message: string | undefined,
  nowWallMs: number,
): readonly PodCondition[] {
  if (message === undefined) return conditions
  const others = conditions.filter(({ type }) => type !== 'DisruptionTarget')
  const lastTransitionTime = rfc3339(nowWallMs)
  return [
    ...others,
    { type: 'DisruptionTarget', status: 'True', reason: 'TerminationByKubelet', message, lastTransitionTime },
  ]
}

/** The pod may not run here: as the kubelet says it, without containers. */
export function refusedStatus(
  pod: Pod,
  { reason, message }: { readonly reason: string; readonly message: string },
  nowWallMs: number,
): PodStatus {
  return {
    phase: 'Failed',
    reason,
    message: `Pod was rejected: ${message}`,
    startTime: rfc3339(nowWallMs),
    qosClass: qosClassOf(pod.spec),
  }
}

/** Section by section as the kubelet decides it; see its getPhase. */
function phaseOf(
  pod: Pod,
  statuses: readonly ContainerStatus[],
  initStatuses: readonly ContainerStatus[] = [],
): PodPhase {
  const policy = restartPolicyOf(pod.spec.restartPolicy)
  const plain = plainInits(pod, initStatuses).map(endOf)
  if (policy === 'Never' && plain.some((end) => end !== undefined && end.exitCode !== 0)) return 'Failed'
  if (plain.some((end) => end === undefined) || !isInitialized(pod, statuses, initStatuses)) return 'Pending'
  const running = statuses.filter(({ state }) => state?.running !== undefined).length
  const neverRan = ({ state, lastState }: ContainerStatus) =>
    state?.running === undefined && state?.terminated === undefined && lastState?.terminated === undefined
  if (statuses.some(neverRan)) return 'Pending'
  if (running > 0) return 'Running'
  if (policy === 'Always') return 'Running'
  const ended = statuses.map(endOf)
  if (ended.every((end) => end?.exitCode === 0)) return 'Succeeded'
  return policy === 'Never' ? 'Failed' : 'Running'
}

function endOf({ state, lastState }: ContainerStatus): ContainerState['terminated'] {
  return state?.running === undefined ? (state?.terminated ?? lastState?.terminated) : undefined
}

function plainInits({ spec }: Pod, statuses: readonly ContainerStatus[]): readonly ContainerStatus[] {
  return statuses.filter((_, index) => {
    const container = spec.initContainers?.[index]
    return container !== undefined && !isSidecar(container)
  })
}

/** One that did its work is ready. */
function initStatus(container: Container, status: ContainerStatus): ContainerStatus {
  return isSidecar(container) ? status : { ...status, ready: status.state?.terminated?.exitCode === 0 }
}

/** All that must come first has come, or must have: a regular container was started. */
function isInitialized(
  pod: Pod,
  statuses: readonly ContainerStatus[],
  initStatuses: readonly ContainerStatus[],
): boolean {
  const begun = ({ state }: ContainerStatus) => state?.running !== undefined || state?.terminated !== undefined
  return statuses.some(begun) || incomplete(pod, initStatuses).length === 0
}

function incomplete(pod: Pod, initStatuses: readonly ContainerStatus[]): readonly string[] {
  const plain = plainInits(pod, initStatuses)
  return initStatuses
    .filter((status) => (plain.includes(status) ? !status.ready : status.started !== true))
    .map(({ name }) => name)
}

function containerStatus(
  { name, image = '' }: Container,
  creating: string,
  found: PodContainers,
  facts: StatusFacts,
): ContainerStatus {
  const history = found.histories.get(name) ?? []
  const newest = history.find((container) => isRunning(container) || hasEnded(container))
  const previous = history.find((container) => container !== newest && hasEnded(container))
  const { initContainerStatuses = [], containerStatuses = [], ephemeralContainerStatuses = [] } = facts.last ?? {}
  const known = [...initContainerStatuses, ...containerStatuses, ...ephemeralContainerStatuses]
  const last = known.find((status) => status.name === name)
  const wait = facts.waiting.get(name)
  if (newest === undefined) return goneStatus(name, image, last, creating, wait)
  const vital: Vital = facts.vitals.get(newest.id) ?? { started: true, ready: true }
  const running = isRunning(newest)
  const waits = !running && wait !== undefined && wait.reason !== 'ContainerCreating'
  const told = (one: RuntimeContainer) => stateOf(one, messageOf(one, facts, last))
  const state = waits ? { waiting: waitingOf(wait) } : told(newest)
  const before = waits ? told(newest) : previous === undefined ? lastStateOf(last, newest) : told(previous)
  return {
    name,
    state,
    ...(before === undefined ? {} : { lastState: before }),
    ready: running && vital.ready,
    restartCount: newest.identity.attempt,
    image: newest.image,
    imageID: newest.imageID,
    containerID: containerID(newest),
    started: running && vital.started,
  }
}

/** Nothing of it is here: never started yet, or someone removed it. */
function goneStatus(
  name: string,
  image: string,
  last: ContainerStatus | undefined,
  creating: string,
  wait: Waiting = { reason: 'ContainerCreating', message: '' },
): ContainerStatus {
  const terminated = last?.state?.terminated ?? last?.lastState?.terminated ?? lostWhileRunning(last)
  if (last?.state?.terminated !== undefined && wait.reason === 'ContainerCreating') return { ...last, ready: false }
  return {
    name,
    state: { waiting: waitingOf(wait.reason === 'ContainerCreating' ? { ...wait, reason: creating } : wait) },
    ...(terminated === undefined ? {} : { lastState: { terminated } }),
    ready: false,
    restartCount: last?.restartCount ?? 0,
    image,
    imageID: '',
    started: false,
  }
}

function lostWhileRunning(last: ContainerStatus | undefined): ContainerState['terminated'] {
  if (last?.state?.running === undefined) return undefined
  return {
    exitCode: 137,
    reason: 'ContainerStatusUnknown',
    message: 'The container could not be located when the pod was deleted.  The container used to be Running',
    ...(last.state.running.startedAt === undefined ? {} : { startedAt: last.state.running.startedAt }),
    ...(last.containerID === undefined ? {} : { containerID: last.containerID }),
  }
}

/** What was before this container, when only the last report still knows. */
function lastStateOf(last: ContainerStatus | undefined, newest: RuntimeContainer): ContainerState | undefined {
  if (last === undefined || newest.identity.attempt === 0) return undefined
  if (last.containerID === containerID(newest)) return last.lastState
  return last.state?.terminated === undefined ? last.lastState : { terminated: last.state.terminated }
}

function waitingOf({ reason, message }: Waiting): { readonly reason: string; readonly message?: string } {
  return message === '' ? { reason } : { reason, message }
}

/** Why it could not be started, or what it left; else what was told of it before, when that can be read no longer. */
function messageOf(container: RuntimeContainer, { messages }: StatusFacts, last: ContainerStatus | undefined): string {
  const own = [container.error, messages.get(container.id) ?? ''].filter((text) => text !== '').join(': ')
  if (own !== '') return own
  const id = containerID(container)
  const told = [last?.state?.terminated, last?.lastState?.terminated].find((end) => end?.containerID === id)
  return told?.message ?? ''
}

function stateOf(container: RuntimeContainer, message: string): ContainerState {
  const startedAt = seconds(container.startedAt)
  if (isRunning(container)) return { running: startedAt === undefined ? {} : { startedAt } }
  const exitCode = exitCodeOf(container)
  const finishedAt = seconds(container.finishedAt ?? container.createdAt)
  return {
    terminated: {
      exitCode,
      reason: endReason(container, exitCode),
      ...(message === '' ? {} : { message }),
      ...(startedAt === undefined ? {} : { startedAt }),
      ...(finishedAt === undefined ? {} : { finishedAt }),
      containerID: containerID(container),
    },
  }
}

function endReason(container: RuntimeContainer, exitCode: number): string {
  if (container.state === 'created') return 'StartError'
  if (container.oomKilled) return 'OOMKilled'
  return exitCode === 0 ? 'Completed' : 'Error'
}

function containerID({ id }: RuntimeContainer): string {
  return `docker://${id}`
}

type ConditionFacts = {
  readonly pod: Pod
  readonly initStatuses: readonly ContainerStatus[]
  readonly phase: PodPhase | undefined
  readonly sandbox: RuntimeContainer | undefined
  readonly sandboxUp: boolean
  readonly containerStatuses: readonly ContainerStatus[]
  readonly startTime: string
  readonly facts: StatusFacts
}

function conditionsOf(given: ConditionFacts): readonly PodCondition[] {
  const { sandboxUp, sandbox, startTime, containerStatuses, facts } = given
  const changedAt = (type: string, status: 'True' | 'False', otherwise: string | undefined) => {
    const last = facts.last?.conditions?.find((condition) => condition.type === type)
    if (last !== undefined) return last.status === status ? last.lastTransitionTime : rfc3339(facts.nowWallMs)
    return otherwise ?? startTime
  }
  const condition = (type: string, verdict: Verdict, otherwise: string | undefined): PodCondition => {
    const lastTransitionTime = changedAt(type, verdict.status, otherwise)
    return { type, ...verdict, ...(lastTransitionTime === undefined ? {} : { lastTransitionTime }) }
  }
  const containersReady = readiness(given)
  const ready = containersReady.status === 'True' ? gatesVerdict(given.pod) : containersReady
  const since = (verdict: Verdict) => (verdict.status === 'True' ? newestStart(containerStatuses) : undefined)
  // Since when its gates are open nobody said: since they were seen so.
  const gated = (given.pod.spec.readinessGates ?? []).length > 0 ? rfc3339(facts.nowWallMs) : undefined
  return [
    condition('PodReadyToStartContainers', { status: sandboxUp ? 'True' : 'False' }, seconds(sandbox?.startedAt)),
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

/** Conditions that others write and the pod waits for; as Kubernetes says it. */
function gatesVerdict({ spec, status }: Pod): Verdict {
  const closed = (spec.readinessGates ?? []).flatMap(({ conditionType }) => {
    const said = status?.conditions?.find(({ type }) => type === conditionType)?.status
    if (said === 'True') return []
    if (said === undefined) return `corresponding condition of pod readiness gate "${conditionType}" does not exist.`
    return `the status of pod readiness gate "${conditionType}" is not "True", but ${said}`
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

/** The first thing we made for it, or now: so that an agent that starts again says the same. */
function startOf({ containers, nowWallMs }: StatusFacts): string {
  const [first] = containers.map(({ createdAt }) => createdAt).sort()
  return seconds(first) ?? rfc3339(nowWallMs)
}

/** As objects carry instants: whole seconds. */
function seconds(instant: string | undefined): string | undefined {
  const ms = instant === undefined ? Number.NaN : Date.parse(instant)
  return Number.isNaN(ms) ? undefined : rfc3339(ms)
}

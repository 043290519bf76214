/** The observations of one container → its status. */
import type { Container, ContainerState, ContainerStatus, PodStatus } from '../../../api/pod.ts'
import { wholeSeconds } from '../../../daemon/clock.ts'
import type { RuntimeContainer } from '../../runtime/runtime.ts'
import { exitCodeOf, hasEnded, isRunning, isSidecar, type PodContainers } from '../record/pod-containers.ts'
import type { Vital, Vitals, WaitingReason } from '../record/pod-record.ts'

export type ContainerFacts = {
  /** By container name. */
  readonly waiting: ReadonlyMap<string, WaitingReason>
  readonly vitals: Vitals
  /** By container id: its termination message. */
  readonly messages: ReadonlyMap<string, string>
  /** The status last reported, for values that the engine no longer has. */
  readonly last: PodStatus | undefined
}

/** `creating`: the waiting reason of a container that was not created yet and has no problem. */
export function containerStatus(
  { name, image = '' }: Container,
  creating: string,
  found: PodContainers,
  facts: ContainerFacts,
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
  const stateWithMessage = (one: RuntimeContainer) => stateOf(one, messageOf(one, facts, last))
  const state = waits ? { waiting: waitingOf(wait) } : stateWithMessage(newest)
  const before = waits
    ? stateWithMessage(newest)
    : previous === undefined
      ? lastStateOf(last, newest)
      : stateWithMessage(previous)
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

/** An init container that succeeded is ready. */
export function initStatus(container: Container, status: ContainerStatus): ContainerStatus {
  return isSidecar(container) ? status : { ...status, ready: status.state?.terminated?.exitCode === 0 }
}

/** Reasons of a container that waits for nothing in particular. */
const initial: ReadonlySet<string> = new Set(['ContainerCreating', 'PodInitializing'])

/** An ephemeral container is never ready; it is not waited for once it has ended or is lost. */
export function ephemeralStatus({ started: _, lastState, ...status }: ContainerStatus): ContainerStatus {
  const isLost = lastState?.terminated !== undefined && initial.has(status.state?.waiting?.reason ?? '')
  const state = isLost ? { state: lastState } : {}
  return { ...status, ...state, ready: false }
}

/** The container does not exist: it was never started, or it was removed. */
function goneStatus(
  name: string,
  image: string,
  last: ContainerStatus | undefined,
  creating: string,
  wait: WaitingReason = { reason: 'ContainerCreating', message: '' },
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

/** The container before this one, from the last report if the engine no longer has it. */
function lastStateOf(last: ContainerStatus | undefined, newest: RuntimeContainer): ContainerState | undefined {
  if (last === undefined || newest.identity.attempt === 0) return undefined
  if (last.containerID === containerID(newest)) return last.lastState
  return last.state?.terminated === undefined ? last.lastState : { terminated: last.state.terminated }
}

function waitingOf({ reason, message }: WaitingReason): { readonly reason: string; readonly message?: string } {
  return message === '' ? { reason } : { reason, message }
}

/**
 * The start error and the termination message; else the message of the last report, if the file cannot be read any
 * more.
 */
function messageOf(
  container: RuntimeContainer,
  { messages }: ContainerFacts,
  last: ContainerStatus | undefined,
): string {
  const own = [container.error, messages.get(container.id) ?? ''].filter((text) => text !== '').join(': ')
  if (own !== '') return own
  const id = containerID(container)
  const reported = [last?.state?.terminated, last?.lastState?.terminated].find((end) => end?.containerID === id)
  return reported?.message ?? ''
}

function stateOf(container: RuntimeContainer, message: string): ContainerState {
  const startedAt = wholeSeconds(container.startedAt)
  if (isRunning(container)) return { running: startedAt === undefined ? {} : { startedAt } }
  const exitCode = exitCodeOf(container)
  const finishedAt = wholeSeconds(container.finishedAt ?? container.createdAt)
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

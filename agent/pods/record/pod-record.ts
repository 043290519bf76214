/**
 * All that the agent remembers of one pod: what it observed, tried and reported. Pure data and the reducers over it.
 */
import { comesBack, withoutShutdown } from '../../../api/node/node-shutdown.ts'
import type { Container, Pod, PodStatus } from '../../../api/pod.ts'
import { backoffMs } from '../../../daemon/backoff.ts'
import type { LocalImage, RuntimeContainer } from '../../runtime/runtime.ts'
import type { ContainerEnd } from '../wanted/container-end.ts'
import { type ContainerEnds, endsAfter } from './container-ends.ts'
import { endedWithSandbox } from './ended-with-sandbox.ts'
import { hasEnded, isHalfMade } from './pod-containers.ts'
import { isFinal } from './pod-phase.ts'
import { afterRestart, type CrashBackoff } from './restarts.ts'
import { containerHash } from './spec-hash.ts'

/** Why a container does not run although it should, in Kubernetes' words. */
export type WaitingReason = { readonly reason: string; readonly message: string }

export type PodRecord = {
  /** As last desired. */
  readonly pod?: Pod
  /** Namespace and name of the containers found, for a pod whose specification is not known. */
  readonly path?: string
  /** The containers at the last observation: see `fingerprint`. */
  readonly observed: string
  /** It was admitted, or its containers were here before this agent started. */
  readonly admitted: boolean
  /** As last reported. */
  readonly status?: PodStatus
  /** The last report to the control plane, as text. */
  readonly reported?: string
  /** The final status, set once the pod has ended. */
  readonly ended?: PodStatus
  /** It has ended, none of its containers runs, and its volumes are removed. */
  readonly cleared?: true
  /** Monotonic milliseconds: the start of its activeDeadlineSeconds. */
  readonly activeSinceMs?: number
  /** `activeSinceMs` was set while the date was unknown. */
  readonly dateUnknown?: boolean
  /** Grace period of the decision that ended it, in place of the pod's own. */
  readonly graceSeconds?: number
  /** A shutdown of the machine stopped it at this time (RFC 3339). */
  readonly interruptedAt?: string

  /** By container name and hash (see `backoffKey`): the crash back-off. */
  readonly backoffs: ReadonlyMap<string, CrashBackoff>
  /** By container id: monotonic milliseconds of its end. */
  readonly exits: ReadonlyMap<string, number>
  /** By container name: why it could not be created, and when to try again. */
  readonly startProblems: ReadonlyMap<string, WaitingReason & { readonly retryAtMs: number }>
  /** Failed attempts to start the sandbox since the last success. */
  readonly sandboxFailures: number
  /** The sandbox is not tried again before this time. */
  readonly sandboxRetryAtMs: number | undefined
  /** Why the sandbox could not be started; '' after a success. */
  readonly sandboxProblem: string
  /** By container id: it could not be removed, and is not tried again before this time. */
  readonly removalRetryAtMs: ReadonlyMap<string, number>
  /** By container name: restarts observed, also of containers that the engine no longer has. No number is used twice. */
  readonly restartCounts: ReadonlyMap<string, number>
  /** By container name: the end of each container that does not run again, also of those that the engine no longer has. */
  readonly ends: ContainerEnds

  /** IPv4 address of the sandbox, while it runs. */
  readonly podIP?: string | undefined
  /** IPv6 address of the sandbox, while it runs. */
  readonly podIPv6?: string | undefined
  /** By container id: its postStart hook is running. */
  readonly postStarts: ReadonlySet<string>
  /** By container id: its postStart hook failed. */
  readonly failedPostStarts: ReadonlySet<string>
  /** By container id: a volume that it has mounted was replaced on its server. */
  readonly onReplacedVolumes: ReadonlySet<string>
  /** By container id: its preStop hook was started. */
  readonly preStops: ReadonlySet<string>
  /** By container id: it is being stopped, and is killed at this time at the latest. */
  readonly stopping: ReadonlyMap<string, number>
  /** By container id: it was stopped so that another takes its place, whatever the restart policy is. */
  readonly replacing: ReadonlySet<string>
  /** By container id: it exited with code 0 when its sandbox ended, and has not completed. */
  readonly endedWithSandbox: ReadonlySet<string>
  /** The whole pod is being stopped: its grace period ends at this time. */
  readonly leavingUntilMs: number | undefined

  /** By container id, of containers with probes: their results. */
  readonly probes: Vitals
  /** By name: the images looked for since the current sync of the pod started. */
  readonly images: ReadonlyMap<string, FoundImage>
  /** By image name: monotonic milliseconds of the first pull request since a container of it last ended. */
  readonly pullsRequestedAtMs: ReadonlyMap<string, number>
  /** By container id: its termination message. */
  readonly terminationMessages: ReadonlyMap<string, string>
  /** By container name: the waiting reason last recorded as an Event. */
  readonly waitingRecorded: ReadonlyMap<string, string>
  /** By reason: Events about limits that the kernel does not enforce. */
  readonly unenforcedRecorded: ReadonlySet<string>
  /** The pod, ConfigMaps and Secrets that the files of its volumes were written from. */
  readonly volumesFrom: readonly unknown[]
}

/** `image`: undefined when it is not present. `unfit`: why it does not run on this machine. */
export type FoundImage = { readonly image: LocalImage | undefined; readonly unfit: string | undefined }

/** Results of probes and of the postStart hook of a running container. */
export type Vital = {
  readonly started: boolean
  readonly ready: boolean
  /** It must be killed, and may then be started again; `byProbe`: with `OnFailure` whatever its exit code. */
  readonly failed?: { readonly why: string; readonly graceSeconds?: number; readonly byProbe?: true }
}

/** By container id. A container without an entry has no probes and no hook: it is ready when it runs. */
export type Vitals = ReadonlyMap<string, Vital>

export const newRecord: PodRecord = {
  observed: '',
  admitted: false,
  backoffs: new Map(),
  exits: new Map(),
  startProblems: new Map(),
  sandboxFailures: 0,
  sandboxRetryAtMs: undefined,
  sandboxProblem: '',
  removalRetryAtMs: new Map(),
  restartCounts: new Map(),
  ends: new Map(),
  postStarts: new Set(),
  failedPostStarts: new Set(),
  onReplacedVolumes: new Set(),
  preStops: new Set(),
  stopping: new Map(),
  replacing: new Set(),
  endedWithSandbox: new Set(),
  leavingUntilMs: undefined,
  probes: new Map(),
  images: new Map(),
  pullsRequestedAtMs: new Map(),
  terminationMessages: new Map(),
  waitingRecorded: new Map(),
  unenforcedRecorded: new Set(),
  volumesFrom: [],
}

/** A container that the engine could not remove blocks nothing else meanwhile. */
const removalRetryMs = 30_000
const sandboxRetry = { firstMs: 1_000, maxMs: 30_000 }

/** Monotonic and wall time of one moment, in milliseconds. */
export type Moment = { readonly nowMs: number; readonly nowWallMs: number }

/** The containers as listed now, and the specification if the pod is desired. */
export function onObserved(
  record: PodRecord,
  pod: Pod | undefined,
  containers: readonly RuntimeContainer[],
  moment: Moment,
): PodRecord {
  // A pod without containers and without a status starts now, whatever the date.
  const starts = containers.length === 0 && record.status === undefined && record.ends.size === 0
  const ids = new Set(containers.map(({ id }) => id))
  const sandbox = containers.find(({ identity, ip }) => identity.kind === 'sandbox' && ip !== undefined)
  const ended = containers.filter((one) => hasEnded(one) && !record.exits.has(one.id))
  const exits = ended.map((one): [string, number] => [one.id, exitMs(one, moment)])
  const mayRun = pod !== undefined && !isLeaving(pod) && !isOver(pod, record)
  const together = mayRun ? endedWithSandbox(pod, record.ends, containers) : []
  return {
    ...record,
    observed: fingerprint(containers),
    ...(pod === undefined ? {} : { pod }),
    ...(starts ? { activeSinceMs: moment.nowMs } : {}),
    exits: new Map([...record.exits, ...exits].filter(([id]) => ids.has(id))),
    // The next container of an image is pulled again where its policy is Always.
    pullsRequestedAtMs: ended.reduce((requested, { image }) => withoutKey(requested, image), record.pullsRequestedAtMs),
    terminationMessages: present(record.terminationMessages, ids),
    removalRetryAtMs: present(record.removalRetryAtMs, ids),
    restartCounts: withAttempts(record.restartCounts, containers),
    podIP: sandbox?.ip,
    podIPv6: sandbox?.ipv6,
    failedPostStarts: presentOf(record.failedPostStarts, ids),
    onReplacedVolumes: presentOf(record.onReplacedVolumes, ids),
    preStops: presentOf(record.preStops, ids),
    replacing: presentOf(record.replacing, ids),
    endedWithSandbox: presentOf(new Set([...record.endedWithSandbox, ...together]), ids),
  }
}

/** A container that was created but not started is made again with the same number. */
function withAttempts(
  counts: ReadonlyMap<string, number>,
  containers: readonly RuntimeContainer[],
): ReadonlyMap<string, number> {
  const next = new Map(counts)
  for (const one of containers) {
    const { kind, containerName, attempt } = one.identity
    if (kind === 'sandbox' || isHalfMade(one)) continue
    next.set(containerName, Math.max(attempt, next.get(containerName) ?? 0))
  }
  return next
}

/** On the monotonic clock. The date may have jumped since: it ended now at the latest. */
function exitMs({ finishedAt, createdAt }: RuntimeContainer, { nowMs, nowWallMs }: Moment): number {
  const agoMs = nowWallMs - Date.parse(finishedAt ?? createdAt)
  return nowMs - Math.max(0, Number.isNaN(agoMs) ? 0 : agoMs)
}

function present<Value>(byID: ReadonlyMap<string, Value>, ids: ReadonlySet<string>): ReadonlyMap<string, Value> {
  return byID.size === 0 ? byID : new Map([...byID].filter(([id]) => ids.has(id)))
}

function presentOf(set: ReadonlySet<string>, ids: ReadonlySet<string>): ReadonlySet<string> {
  return set.size === 0 ? set : new Set([...set].filter((id) => ids.has(id)))
}

function withEntry<Value>(map: ReadonlyMap<string, Value>, key: string, value: Value): ReadonlyMap<string, Value> {
  return new Map(map).set(key, value)
}

function withoutKey<Value>(map: ReadonlyMap<string, Value>, key: string): ReadonlyMap<string, Value> {
  if (!map.has(key)) return map
  const rest = new Map(map)
  rest.delete(key)
  return rest
}

/** The container could not be created. It is not tried again for `forMs`. */
export function onNotCreated(
  record: PodRecord,
  containerName: string,
  why: WaitingReason,
  forMs: number,
  nowMs: number,
): PodRecord {
  const problem = { ...why, retryAtMs: nowMs + forMs }
  return { ...record, startProblems: withEntry(record.startProblems, containerName, problem) }
}

/** The container was created; `previous`: the container it replaces, if there was one. */
export function onCreated(
  record: PodRecord,
  container: Container,
  previous: RuntimeContainer | undefined,
  nowMs: number,
): PodRecord {
  const created = {
    ...onWaitingChanged(record, container.name),
    startProblems: withoutKey(record.startProblems, container.name),
  }
  if (previous === undefined) return created
  // doBackOff (pkg/kubelet/kuberuntime/kuberuntime_manager.go) counts from an instance that ended before the stop: the first has none.
  if (record.replacing.has(previous.id) && previous.identity.attempt === 0) return created
  const key = backoffKey(container)
  const backoff = afterRestart(record.backoffs.get(key), record.exits.get(previous.id) ?? nowMs, nowMs)
  return { ...created, backoffs: withEntry(record.backoffs, key, backoff) }
}

export function onSandboxStarted(record: PodRecord): PodRecord {
  return { ...record, sandboxFailures: 0, sandboxProblem: '' }
}

export function onSandboxFailed(record: PodRecord, problem: string, nowMs: number): PodRecord {
  const waitMs = backoffMs(record.sandboxFailures, sandboxRetry, () => 1)
  return {
    ...record,
    sandboxFailures: record.sandboxFailures + 1,
    sandboxRetryAtMs: nowMs + waitMs,
    sandboxProblem: problem,
  }
}

export function onPostStarting(record: PodRecord, id: string): PodRecord {
  return { ...record, postStarts: new Set([...record.postStarts, id]) }
}

export function onPostStartEnded(record: PodRecord, id: string, failed: boolean): PodRecord {
  return {
    ...record,
    postStarts: new Set([...record.postStarts].filter((one) => one !== id)),
    failedPostStarts: failed ? new Set([...record.failedPostStarts, id]) : record.failedPostStarts,
  }
}

/** `untilMs`: the end of its grace period. */
export function onStopping(
  record: PodRecord,
  { target, leaving, replace }: { readonly target: RuntimeContainer; readonly leaving?: true; readonly replace?: true },
  untilMs: number,
): PodRecord {
  return {
    ...record,
    leavingUntilMs: leaving ? Math.min(record.leavingUntilMs ?? untilMs, untilMs) : record.leavingUntilMs,
    stopping: withEntry(record.stopping, target.id, untilMs),
    replacing: replace ? new Set([...record.replacing, target.id]) : record.replacing,
  }
}

/** Its preStop hook starts, and does not run twice. */
export function onPreStop(record: PodRecord, id: string): PodRecord {
  return { ...record, preStops: new Set([...record.preStops, id]) }
}

/** The stop that was to end at `untilMs` has ended or failed; a later one continues. */
export function onStopEnded(record: PodRecord, id: string, untilMs: number): PodRecord {
  return record.stopping.get(id) === untilMs ? { ...record, stopping: withoutKey(record.stopping, id) } : record
}

/** Results of the pod's probes. */
export function onProbed(record: PodRecord, probes: Vitals): PodRecord {
  return { ...record, probes }
}

/** The containers are to start again, with the new folder. */
export function onVolumeReplaced(record: PodRecord, ids: readonly string[]): PodRecord {
  return { ...record, onReplacedVolumes: new Set([...record.onReplacedVolumes, ...ids]) }
}

/** Results of probes and postStart hooks of all containers that have them, and those with a volume that is gone. */
export function vitalsOf({ probes, postStarts, failedPostStarts, onReplacedVolumes }: PodRecord): Vitals {
  if (postStarts.size + failedPostStarts.size + onReplacedVolumes.size === 0) return probes
  const starting: Vital = { started: false, ready: false }
  const failed: Vital = { ...starting, failed: { why: 'FailedPostStartHook' } }
  return new Map([
    ...probes,
    ...[...postStarts].map((id): [string, Vital] => [id, starting]),
    ...[...failedPostStarts].map((id): [string, Vital] => [id, failed]),
    ...[...onReplacedVolumes].map((id): [string, Vital] => [id, { ...starting, failed: replacedVolume }]),
  ])
}

const replacedVolume: Vital['failed'] = {
  why: 'A volume was replaced on its server, container will be restarted',
  byProbe: true,
}

/** The images must be looked for again. */
export function withoutImages(record: PodRecord): PodRecord {
  return { ...record, images: newRecord.images }
}

export function onImageFound(record: PodRecord, name: string, found: FoundImage): PodRecord {
  return { ...record, images: withEntry(record.images, name, found) }
}

export function onPullStarted(record: PodRecord, { spec }: Pod, image: string, nowMs: number): PodRecord {
  const names = spec.containers.filter((one) => one.image === image).map(({ name }) => name)
  const requestedAtMs = record.pullsRequestedAtMs.get(image) ?? nowMs
  return {
    ...record,
    images: withoutKey(record.images, image),
    pullsRequestedAtMs: withEntry(record.pullsRequestedAtMs, image, requestedAtMs),
    waitingRecorded: names.reduce(withoutKey, record.waitingRecorded),
  }
}

export function onTerminationMessage(record: PodRecord, id: string, message: string): PodRecord {
  return { ...record, terminationMessages: withEntry(record.terminationMessages, id, message) }
}

/** `waitingRecorded`: by container name. */
export function onWaitingRecorded(record: PodRecord, waitingRecorded: ReadonlyMap<string, string>): PodRecord {
  return { ...record, waitingRecorded }
}

/** Something was done for this container: the next reason that it waits for is recorded, also if it is the same. */
export function onWaitingChanged(record: PodRecord, containerName: string): PodRecord {
  return { ...record, waitingRecorded: withoutKey(record.waitingRecorded, containerName) }
}

export function onUnenforcedRecorded(record: PodRecord, reason: string): PodRecord {
  return { ...record, unenforcedRecorded: new Set([...record.unenforcedRecorded, reason]) }
}

export function onVolumesWritten(record: PodRecord, volumesFrom: readonly unknown[]): PodRecord {
  return { ...record, volumesFrom }
}

export function onRemoved(record: PodRecord, id: string): PodRecord {
  return { ...record, removalRetryAtMs: withoutKey(record.removalRetryAtMs, id) }
}

export function onNotRemoved(record: PodRecord, id: string, nowMs: number): PodRecord {
  return { ...record, removalRetryAtMs: withEntry(record.removalRetryAtMs, id, nowMs + removalRetryMs) }
}

/** The desired pod, or what it refers to, changed: problems may be solved, so waiting times end. */
export function onDesiredChanged(record: PodRecord): PodRecord {
  return { ...record, startProblems: newRecord.startProblems, sandboxRetryAtMs: undefined }
}

/** Its containers were here when this agent started. */
export function onAdopted(record: PodRecord, path: string): PodRecord {
  return { ...record, admitted: true, path }
}

export function onAdmitted(record: PodRecord): PodRecord {
  return { ...record, admitted: true }
}

/** `text`: the whole report. */
export function onReported(record: PodRecord, status: PodStatus, text: string): PodRecord {
  return { ...record, status, reported: text }
}

/** The pod has ended, by itself or by a decision; `graceSeconds`: of that decision. */
export function onEnded(record: PodRecord, ended: PodStatus, graceSeconds?: number): PodRecord {
  return { ...record, ended, ...(graceSeconds === undefined ? {} : { graceSeconds }) }
}

/** Read from the checkpoint: the pod ended before this agent started. */
export function onEndRestored(record: PodRecord, ended: PodStatus): PodRecord {
  return { ...record, ended, status: ended }
}

export function onCleared(record: PodRecord): PodRecord {
  return { ...record, cleared: true }
}

/** The start of the time that activeDeadlineSeconds limits. */
export function onActiveSince(record: PodRecord, activeSinceMs: number, dateUnknown: boolean): PodRecord {
  return { ...record, activeSinceMs, dateUnknown }
}

/** The results of these containers were removed from the status: they run again. */
export function onStatusReset(record: PodRecord, status: PodStatus, names: readonly string[]): PodRecord {
  return { ...record, status, ends: names.reduce(withoutKey, record.ends) }
}

/** These containers were listed: the ends of those that do not run again are remembered. */
export function onEndsObserved(record: PodRecord, pod: Pod, containers: readonly RuntimeContainer[]): PodRecord {
  const ends = endsAfter(pod, record, containers)
  return ends === record.ends ? record : { ...record, ends }
}

/** Read from the checkpoint: containers that ended before this agent started. */
export function onEndsRestored(record: PodRecord, ends: readonly ContainerEnd[]): PodRecord {
  const counts = ends.map(({ name, attempt }): [string, number] => [name, attempt])
  return {
    ...record,
    ends: new Map(ends.map((end) => [end.name, end])),
    restartCounts: new Map([...record.restartCounts, ...counts]),
  }
}

/** The shutdown that `ended` the pod is over or cancelled: the pod continues. */
export function onResumed(record: PodRecord, ended: PodStatus): PodRecord {
  const { ended: _, cleared, activeSinceMs, dateUnknown, graceSeconds, interruptedAt: __, ...kept } = record
  const interruptedAt = ended.conditions?.find(({ type }) => type === 'DisruptionTarget')?.lastTransitionTime
  return {
    ...kept,
    // A pod rejected during the shutdown was never admitted.
    admitted: record.admitted && interruptedAt !== undefined,
    status: withoutShutdown(ended),
    leavingUntilMs: undefined,
    ...(interruptedAt === undefined ? {} : { interruptedAt }),
  }
}

/** Equal while no container was created, started, stopped or removed. */
export function fingerprint(containers: readonly RuntimeContainer[]): string {
  return containers
    .map(({ id, state, startedAt }) => `${id} ${state} ${startedAt}`)
    .sort()
    .join('\n')
}

/** Its deletion was requested. */
export function isLeaving({ metadata }: Pod): boolean {
  return metadata.deletionTimestamp !== undefined
}

/** The pod has ended, by a decision of this agent or by the status that the control plane stores. */
export function isOver(pod: Pod, { ended }: Pick<PodRecord, 'ended'>): boolean {
  return ended !== undefined || isEnd(pod)
}

/** The node had no room for it. */
export function isEvicted(pod: Pod, { ended }: Pick<PodRecord, 'ended'>): boolean {
  return isOver(pod, { ended }) && (ended ?? pod.status)?.reason === 'Evicted'
}

/** Whether the status is final. One that a shutdown of the machine set is final only until the machine is up again. */
export function isEnd(pod: Pod, status: PodStatus | undefined = pod.status): boolean {
  return isFinal(status?.phase) && !comesBack(pod, status)
}

/** Key of the crash back-off of one container: a changed specification starts a new one. */
export function backoffKey(container: Container): string {
  return `${container.name}/${containerHash(container)}`
}

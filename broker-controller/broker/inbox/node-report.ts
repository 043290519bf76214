/** What a node says → what the store should hold. The controller's clock stamps it; the node's own is not trusted. */
import type { Event } from '../../../api/event.ts'
import { type Lease, nodeLeaseNamespace } from '../../../api/lease.ts'
import type { ObjectReference, OwnerReference, Stored } from '../../../api/meta.ts'
import { comesBack, withoutShutdown } from '../../../api/node/node-shutdown.ts'
import {
  healthConditionTypes,
  type Node,
  type NodeCondition,
  type NodeStatus,
  nodeConditionTypes,
} from '../../../api/node.ts'
import { isFinished, type PodDeletion, planPodDeletion } from '../../../api/pod/pod-deletion.ts'
import { mirroredHash } from '../../../api/pod/static-pod.ts'
import type { Pod, PodStatus } from '../../../api/pod.ts'
import type { ConnectionMessage, PodMessage } from '../../../api/topics.ts'
import { rfc3339, rfc3339Micro } from '../../../daemon/clock.ts'
import { equalJSON } from '../../store/equal-json.ts'
import { nodeReference } from '../../store/references.ts'
import type { Peer } from '../broker.ts'

export type LeaseNews =
  | { readonly news: 'heartbeat' }
  | { readonly news: 'connection'; readonly message: ConnectionMessage }
  /** The connection is gone, and no will or goodbye said so. */
  | { readonly news: 'disconnected' }

const annotation = {
  connection: 'bramble.dev/connection',
  bootID: 'bramble.dev/boot-id',
  reason: 'bramble.dev/connection-reason',
  expectedBack: 'bramble.dev/expected-back-seconds',
  address: 'bramble.dev/address',
  certificateUntil: 'bramble.dev/certificate-until',
  certificateAuthority: 'bramble.dev/certificate-authority',
} as const

/** As Kubernetes: a lease holds for 40 s and is renewed every 10. */
const defaultLeaseDurationSeconds = 40

export type LeaseFacts = Peer & {
  readonly nowMs: number
  /** The uid of the Node that owns the lease. */
  readonly nodeUID?: string | undefined
}

/** The node's lease after this; undefined when it stays as it is. */
export function leaseAfter(
  node: string,
  before: Lease | undefined,
  news: LeaseNews,
  { nowMs, address, certificate, nodeUID }: LeaseFacts,
): Lease | undefined {
  const state = before?.metadata.annotations?.[annotation.connection]
  if (news.news === 'disconnected' && state !== 'online') return undefined
  // A will is spoken also where the connection broke before the end of it that the goodbye announced was read.
  if (news.news === 'connection' && news.message.state === 'lost' && state === 'goodbye') return undefined
  const alive = news.news === 'heartbeat' || (news.news === 'connection' && news.message.state === 'online')
  const holder = { holderIdentity: node, ...before?.spec, leaseDurationSeconds: durationAfter(before, news) }
  return {
    apiVersion: 'coordination.k8s.io/v1',
    kind: 'Lease',
    metadata: {
      ...(before?.metadata ?? { name: node, namespace: nodeLeaseNamespace }),
      annotations: present({
        ...before?.metadata.annotations,
        ...connectionAnnotations(news, state),
        ...(alive && address !== undefined && { [annotation.address]: address }),
        ...(alive &&
          certificate !== undefined && {
            [annotation.certificateUntil]: certificate.until,
            [annotation.certificateAuthority]: certificate.authority,
          }),
      }),
      ...(nodeUID !== undefined &&
        (before === undefined || !isOwnedBy(before, nodeUID)) && { ownerReferences: [ownedBy(node, nodeUID)] }),
    },
    spec: alive ? { ...holder, renewTime: rfc3339Micro(nowMs) } : holder,
  }
}

/** Has an agent ever reported the status of this node? */
export function hasReported({ status }: Node): boolean {
  return status?.conditions?.some(({ type, reason }) => type === 'Ready' && reason !== neverReportedReason) ?? false
}

/** As `controllers/node-health.ts` has it: what the lifecycle controller writes on a node that never reported. */
const neverReportedReason = 'NodeStatusNeverUpdated'

/** The lease of a node after a restart of the controller, which keeps leases in memory: not renewed, and how long it is not known. */
export function restoredLease({ metadata }: Stored<Node>): Lease {
  const { name, uid, creationTimestamp } = metadata
  return {
    apiVersion: 'coordination.k8s.io/v1',
    kind: 'Lease',
    metadata: { name, namespace: nodeLeaseNamespace, creationTimestamp, ownerReferences: [ownedBy(name, uid)] },
    spec: { holderIdentity: name },
  }
}

/** The lease of a node that is known to be online, renewed; undefined where more than its time would change. */
export function renewedLease<L extends Lease>(lease: L, nowMs: number): L | undefined {
  if (lease.metadata.annotations?.[annotation.connection] !== 'online') return undefined
  return { ...lease, spec: { ...lease.spec, renewTime: rfc3339Micro(nowMs) } }
}

/** As the node announced it with its connection, within the agent's own limits for the setting. */
function durationAfter(before: Lease | undefined, news: LeaseNews): number {
  const announced = news.news === 'connection' ? news.message.leaseDurationSeconds : undefined
  const isUsable = announced !== undefined && announced >= 4 && announced <= 3600
  return isUsable ? announced : (before?.spec?.leaseDurationSeconds ?? defaultLeaseDurationSeconds)
}

function ownedBy(name: string, uid: string): OwnerReference {
  return { apiVersion: 'v1', kind: 'Node', name, uid }
}

/** Is this the lease of that very Node, and not of another one of its name? */
export function isOwnedBy({ metadata }: Lease, nodeUID: string): boolean {
  return metadata.ownerReferences?.some(({ uid }) => uid === nodeUID) ?? false
}

function connectionAnnotations(
  news: LeaseNews,
  state: string | undefined,
): { readonly [name: string]: string | undefined } {
  if (news.news === 'disconnected') {
    return { [annotation.connection]: 'lost', [annotation.reason]: 'connection-closed' }
  }
  if (news.news === 'heartbeat') {
    // Who took leave and still beats is on its way out; who was lost and beats is back.
    return state === undefined || state === 'lost'
      ? { [annotation.connection]: 'online', [annotation.reason]: undefined }
      : {}
  }
  const { state: said, bootID, reason, expectedBackSeconds } = news.message
  return {
    [annotation.connection]: said,
    [annotation.bootID]: bootID,
    [annotation.reason]: reason,
    [annotation.expectedBack]: expectedBackSeconds === undefined ? undefined : String(expectedBackSeconds),
  }
}

/** Without what is undefined. */
function present(annotations: { readonly [name: string]: string | undefined }): { readonly [name: string]: string } {
  return Object.fromEntries(
    Object.entries(annotations).flatMap(([name, value]) => (value === undefined ? [] : [[name, value]])),
  )
}

/**
 * The node's status after its report, which replaces the one before. Conditions are stamped here: heard now, and changed
 * now where the status differs. Conditions that others wrote stay, up to `mostForeignConditions`.
 */
export function nodeStatusAfter(before: NodeStatus | undefined, report: NodeStatus, nowMs: number): NodeStatus {
  const now = rfc3339(nowMs)
  const known = before?.conditions ?? []
  const reported = (report.conditions ?? []).map((condition) => {
    const earlier = known.find(({ type }) => type === condition.type)
    const unchanged = earlier?.status === condition.status ? earlier.lastTransitionTime : undefined
    return { ...condition, lastHeartbeatTime: now, lastTransitionTime: unchanged ?? now }
  })
  const types = new Set(reported.map(({ type }) => type))
  const ready = known.find(({ type }) => type === 'Ready')
  const others = known.filter((condition) => !types.has(condition.type) && !isReported(condition, ready))
  return { ...report, conditions: [...others.slice(0, mostForeignConditions), ...reported] }
}

/**
 * Does this status say what the one before said, so that nothing need be written? Heartbeat times count once they are older
 * than `restampMs`: agents refresh them every 5 minutes.
 */
export function isStanding(before: NodeStatus | undefined, after: NodeStatus, nowMs: number): boolean {
  const { conditions: known = [], ...rest } = before ?? {}
  const { conditions = [], ...restAfter } = after
  return (
    known.length === conditions.length &&
    conditions.every((condition, i) => isSameButHeartbeat(condition, known[i], nowMs)) &&
    equalJSON(restAfter, rest)
  )
}

const restampMs = 4 * 60_000

function isSameButHeartbeat(after: NodeCondition, before: NodeCondition | undefined, nowMs: number): boolean {
  if (after === before) return true
  const ageMs = nowMs - Date.parse(before?.lastHeartbeatTime ?? '')
  if (!(ageMs >= 0 && ageMs < restampMs)) return false
  const { lastHeartbeatTime: _, ...rest } = { ...before }
  const { lastHeartbeatTime: __, ...restAfter } = after
  return equalJSON(restAfter, rest)
}

/** Of controllers and node-problem detectors that write through the API. */
const mostForeignConditions = 32

const agentTypes: ReadonlySet<string> = new Set([...nodeConditionTypes, ...healthConditionTypes])

/** Did the node itself report this condition before? All conditions of one report are stamped with one time. */
function isReported({ type, lastHeartbeatTime }: NodeCondition, ready: NodeCondition | undefined): boolean {
  if (agentTypes.has(type)) return true
  return lastHeartbeatTime !== undefined && lastHeartbeatTime === ready?.lastHeartbeatTime
}

/**
 * What the node last reported, from its status: the conditions that were stamped together with Ready. Undefined where Ready is
 * not as a node reports it: the controller made it Unknown, or there is none.
 */
export function standingReport(status: NodeStatus | undefined): NodeStatus | undefined {
  const ready = status?.conditions?.find(({ type }) => type === 'Ready')
  if (ready === undefined || ready.status === 'Unknown') return undefined
  const conditions = status?.conditions?.filter(({ lastHeartbeatTime: at }) => at === ready.lastHeartbeatTime)
  return { ...status, conditions: conditions ?? [] }
}

export type PodReport =
  | { readonly take: true; readonly status: PodStatus }
  | { readonly take: false; readonly because: 'NoSuchPod' | 'AnotherPod' | 'AnotherNode' }

/** The pod's status after its node's report, if it is that node's to report. */
export function podStatusAfter(node: string, uid: string, message: PodMessage, pod: Pod | undefined): PodReport {
  if (pod === undefined) return { take: false, because: 'NoSuchPod' }
  if (message.uid !== uid || pod.metadata.uid !== uid) return { take: false, because: 'AnotherPod' }
  if (pod.spec.nodeName !== node) return { take: false, because: 'AnotherNode' }
  const isBack = comesBack(pod) && !comesBack(pod, message.status)
  const before = isBack && pod.status !== undefined ? withoutShutdown(pod.status) : (pod.status ?? {})
  const { conditions: reported = [], ...report } = message.status
  const conditions = reported.filter(({ type }) => nodesPodConditions.has(type) || sharedPodConditions.has(type))
  const types = new Set(conditions.map(({ type }) => type))
  const others = (before.conditions ?? []).filter(({ type }) => !types.has(type) && !nodesPodConditions.has(type))
  return {
    take: true,
    status: {
      ...(before.qosClass !== undefined && { qosClass: before.qosClass }),
      ...report,
      ...endedAs(pod, report.phase),
      conditions: [...others, ...conditions],
    },
  }
}

/** The conditions of a pod that are its node's to report (PodConditionByKubelet of the kubelet); all others stay as they are. */
const nodesPodConditions: ReadonlySet<string> = new Set([
  'PodReadyToStartContainers',
  'Initialized',
  'Ready',
  'ContainersReady',
  'PodResizePending',
  'PodResizeInProgress',
])
/** Those that both the node and the control plane write: one that the node leaves out stays. */
const sharedPodConditions: ReadonlySet<string> = new Set(['PodScheduled', 'DisruptionTarget'])

/** A pod that has ended stays ended, however its node remembers it; but for the end that a boot undoes. */
function endedAs(pod: Pod, reported: PodStatus['phase']): Pick<PodStatus, 'phase' | 'reason' | 'message'> {
  if (!isFinished(pod) || comesBack(pod) || pod.status === undefined || reported === pod.status.phase) return {}
  const { phase, reason, message } = pod.status
  return { phase, ...(reason !== undefined && { reason }), ...(message !== undefined && { message }) }
}

/**
 * A pod of which nothing is left on its node: it goes, or what else holds it is all that it waits for from now on.
 * Undefined: it is still wanted.
 */
export function emptiedPod<P extends Pod>(pod: P, nowMs: number): PodDeletion<P> | undefined {
  if (pod.metadata.deletionTimestamp === undefined) return undefined
  return planPodDeletion(pod, { gracePeriodSeconds: 0, nowMs })
}

/** What the event is about, if it is this node's to speak of: itself, or one of its pods. */
export function subjectOf(node: string, event: Event, pods: readonly Pod[]): ObjectReference | undefined {
  const { involvedObject } = event
  if (involvedObject.kind === 'Node') return involvedObject.name === node ? nodeReference(node) : undefined
  if (involvedObject.kind !== 'Pod') return undefined
  // As the kubelet does, and kubectl looks for: of a static pod by the UID that it has on its machine.
  const pod = pods.find((one) => one.metadata.uid === involvedObject.uid || mirroredHash(one) === involvedObject.uid)
  const { name, namespace } = pod?.metadata ?? {}
  if (pod === undefined || name !== involvedObject.name || namespace !== involvedObject.namespace) return undefined
  return involvedObject
}

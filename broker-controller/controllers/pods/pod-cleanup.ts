/** Finds pods that no node or other controller will remove. */
import { hasEndedForGood } from '../../../api/node/node-shutdown.ts'
import type { Node } from '../../../api/node.ts'
import { withPodCondition } from '../../../api/pod/pod-conditions.ts'
import { isFinished } from '../../../api/pod/pod-deletion.ts'
import type { Pod } from '../../../api/pod.ts'
import { type Steps, sortedInSteps } from '../../../daemon/watchdog/steps.ts'
import type { StoredPod } from '../../store/store.ts'
import { isOutOfService } from '../node-lifecycle/node-taints.ts'
import { isReady } from '../node-lifecycle/zones.ts'

/** As Kubernetes' `--terminated-pod-gc-threshold`. */
export const defaultTerminatedPodGCThreshold = 12_500
export const cleanupPeriodMs = 20_000
/** So long a node must be missing before its pods are orphans: its object may be on its way. */
export const quarantineMs = 40_000

export type CleanupReason =
  /** Its node is declared out of service: it will not confirm. */
  | 'out-of-service'
  /** More finished pods are kept than anyone reads. */
  | 'too-many-finished'
  /** Its node does not exist. */
  | 'orphan'
  /** It was deleted before it was placed. */
  | 'never-placed'
export type Cleanup = { readonly pod: StoredPod; readonly reason: CleanupReason }

export type CleanupFacts = {
  readonly pods: Iterable<StoredPod>
  readonly node: (name: string) => Node | undefined
  /** Nodes that have been missing for the whole quarantine, and still are. */
  readonly missing: ReadonlySet<string>
  /** Finished pods to keep; 0 or less: all. */
  readonly terminatedPodGCThreshold: number
}

/** Each pod once. In steps: there may be very many. */
export function* planCleanup({
  pods,
  node,
  missing,
  terminatedPodGCThreshold,
}: CleanupFacts): Steps<readonly Cleanup[]> {
  const cleanups: Cleanup[] = []
  const finished: RankedPod[] = []
  for (const pod of pods) {
    yield
    const reason = reasonToRemove(pod, node, missing)
    if (reason !== undefined) cleanups.push({ pod, reason })
    else if (hasEndedForGood(pod)) finished.push(ranked(pod))
  }
  if (terminatedPodGCThreshold <= 0 || finished.length <= terminatedPodGCThreshold) return cleanups
  const ordered = yield* sortedInSteps(finished, (a, b) => a.rank - b.rank || a.createdMs - b.createdMs)
  const surplus = ordered.slice(0, finished.length - terminatedPodGCThreshold)
  return [...cleanups, ...surplus.map(({ pod }): Cleanup => ({ pod, reason: 'too-many-finished' }))]
}

type RankedPod = { readonly pod: StoredPod; readonly rank: number; readonly createdMs: number }

function ranked(pod: StoredPod): RankedPod {
  return { pod, rank: isEvicted(pod) ? 0 : 1, createdMs: Date.parse(pod.metadata.creationTimestamp) }
}

/** A pod that has not ended is Failed before it goes, so that watchers see how it ended. Undefined: it has. */
export function endedPod<P extends Pod>(pod: P, reason: CleanupReason, now: string): P | undefined {
  if (isFinished(pod)) return undefined
  const failed: P = { ...pod, status: { ...pod.status, phase: 'Failed' } }
  if (reason !== 'orphan') return failed
  const message = 'PodGC: node no longer exists'
  const condition = { type: 'DisruptionTarget', status: 'True', reason: 'DeletionByPodGC', message } as const
  return withPodCondition(failed, condition, now) ?? failed
}

function reasonToRemove(
  pod: StoredPod,
  node: CleanupFacts['node'],
  missing: ReadonlySet<string>,
): CleanupReason | undefined {
  const isLeaving = pod.metadata.deletionTimestamp !== undefined
  const name = pod.spec.nodeName ?? ''
  if (name === '') return isLeaving ? 'never-placed' : undefined
  if (missing.has(name)) return 'orphan'
  const host = node(name)
  return isLeaving && host !== undefined && !isReady(host) && isOutOfService(host) ? 'out-of-service' : undefined
}

function isEvicted({ status }: StoredPod): boolean {
  return status?.phase === 'Failed' && status.reason === 'Evicted'
}

/** How many pods a ReplicaSet or a ReplicationController creates or deletes, and its status (pkg/controller/replicaset). Pure. */
import type { Pod } from '../../../../api/pod.ts'
import type { Labels } from '../../../../api/selectors.ts'
import type { ReplicaSetStatus } from '../../../../api/workloads/replica-set.ts'
import { inDeletionOrder } from '../deletion-order.ts'
import { isAvailablePod, isReadyPod } from '../pod-readiness.ts'

/** What is written in one visit at most (BurstReplicas). */
const mostAtOnce = 500

export type ReplicaPlan<P> =
  | { readonly step: 'none' }
  | { readonly step: 'create'; readonly count: number }
  | { readonly step: 'delete'; readonly pods: readonly P[] }

/**
 * `pods`: its own, those that end or leave excluded. `related`: the pods of the ReplicaSets of the same Deployment, its own among
 * them; undefined: it has none, and the pods of a node do not count.
 */
export function planReplicas<P extends Pod>(
  wanted: number,
  pods: readonly P[],
  related: readonly Pod[] | undefined,
  nowMs: number,
): ReplicaPlan<P> {
  const surplus = pods.length - wanted
  if (surplus === 0) return { step: 'none' }
  if (surplus < 0) return { step: 'create', count: Math.min(-surplus, mostAtOnce) }
  const count = Math.min(surplus, mostAtOnce)
  return { step: 'delete', pods: inDeletionOrder(pods, related ?? [], nowMs).slice(0, count) }
}

export type ReplicaFacts = {
  readonly pods: readonly Pod[]
  readonly wanted: number
  readonly templateLabels: Labels | undefined
  readonly minReadySeconds: number
  readonly generation: number | undefined
  /** What went wrong while replicas were created or deleted; undefined: nothing. */
  readonly failure: string | undefined
  readonly nowMs: number
  /** The same, RFC 3339. */
  readonly now: string
}

/** calculateStatus in pkg/controller/replicaset/replica_set_utils.go. */
export function replicaStatus(before: ReplicaSetStatus | undefined, facts: ReplicaFacts): ReplicaSetStatus {
  const { pods, templateLabels = {}, minReadySeconds, generation, nowMs } = facts
  const labels = Object.entries(templateLabels)
  const isLabelled = ({ metadata }: Pod) => labels.every(([key, value]) => metadata.labels?.[key] === value)
  const conditions = conditionsAfter(before?.conditions ?? [], facts)
  const counts = {
    fullyLabeledReplicas: pods.filter(isLabelled).length,
    readyReplicas: pods.filter(isReadyPod).length,
    availableReplicas: pods.filter((pod) => isAvailablePod(pod, minReadySeconds, nowMs)).length,
    observedGeneration: generation ?? 0,
  }
  const counted = Object.fromEntries(Object.entries(counts).filter(([, count]) => count !== 0))
  return { replicas: pods.length, ...counted, ...(conditions.length > 0 && { conditions }) }
}

type Conditions = NonNullable<ReplicaSetStatus['conditions']>

/** The condition of a failure stays as it was first until the failure is over. */
function conditionsAfter(present: Conditions, { failure, pods, wanted, now }: ReplicaFacts): Conditions {
  const type = 'ReplicaFailure'
  if (failure === undefined) return present.filter((condition) => condition.type !== type)
  if (present.some((condition) => condition.type === type)) return present
  const reason = pods.length < wanted ? 'FailedCreate' : 'FailedDelete'
  return [...present, { type, status: 'True', lastTransitionTime: now, reason, message: failure }]
}

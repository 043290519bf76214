/** How many pods a ReplicaSet or a ReplicationController creates or deletes, and its status (pkg/controller/replicaset). Pure. */
import type { Pod } from '../../../../api/pod.ts'
import type { Labels } from '../../../../api/selectors.ts'
import type { ReplicaSetStatus } from '../../../../api/workloads/replica-set.ts'
import { eachInTurns } from '../../../../daemon/limits/turn-limit.ts'
import { isAvailablePod, isReadyPod } from '../pod-readiness.ts'

/** What is written in one visit at most (BurstReplicas). */
const mostAtOnce = 500

/** `isPartial`: more follows in the next visit. */
export type ReplicaPlan =
  | { readonly step: 'none' }
  | { readonly step: 'create' | 'delete'; readonly count: number; readonly isPartial: boolean }

/** `present`: its pods, those that end or leave excluded. */
export function planReplicas(wanted: number, present: number): ReplicaPlan {
  if (present === wanted) return { step: 'none' }
  const difference = Math.abs(present - wanted)
  const [count, isPartial] = [Math.min(difference, mostAtOnce), difference > mostAtOnce]
  return { step: present < wanted ? 'create' : 'delete', count, isPartial }
}

export type ReplicaCounts = {
  readonly replicas: number
  readonly fullyLabeled: number
  readonly ready: number
  readonly available: number
}

export type CountingFacts = {
  readonly templateLabels: Labels | undefined
  readonly minReadySeconds: number
  readonly nowMs: number
}

/** Many pods take several turns of the event loop. */
export async function countReplicas(
  pods: readonly Pod[],
  { templateLabels = {}, minReadySeconds, nowMs }: CountingFacts,
): Promise<ReplicaCounts> {
  const labels = Object.entries(templateLabels)
  let [fullyLabeled, ready, available] = [0, 0, 0]
  await eachInTurns(pods, (pod) => {
    if (labels.every(([key, value]) => pod.metadata.labels?.[key] === value)) fullyLabeled += 1
    if (isReadyPod(pod)) ready += 1
    if (isAvailablePod(pod, minReadySeconds, nowMs)) available += 1
  })
  return { replicas: pods.length, fullyLabeled, ready, available }
}

export type ReplicaFacts = {
  readonly counts: ReplicaCounts
  readonly wanted: number
  readonly generation: number | undefined
  /** What went wrong while replicas were created or deleted; undefined: nothing. */
  readonly failure: string | undefined
  /** RFC 3339. */
  readonly now: string
}

/** calculateStatus in pkg/controller/replicaset/replica_set_utils.go. */
export function replicaStatus(before: ReplicaSetStatus | undefined, facts: ReplicaFacts): ReplicaSetStatus {
  const { counts, generation } = facts
  const conditions = conditionsAfter(before?.conditions ?? [], facts)
  const all = {
    fullyLabeledReplicas: counts.fullyLabeled,
    readyReplicas: counts.ready,
    availableReplicas: counts.available,
    observedGeneration: generation ?? 0,
  }
  const counted = Object.fromEntries(Object.entries(all).filter(([, count]) => count !== 0))
  return { replicas: counts.replicas, ...counted, ...(conditions.length > 0 && { conditions }) }
}

type Conditions = NonNullable<ReplicaSetStatus['conditions']>

/** The condition of a failure stays as it was first until the failure is over. */
function conditionsAfter(present: Conditions, { failure, counts, wanted, now }: ReplicaFacts): Conditions {
  const type = 'ReplicaFailure'
  if (failure === undefined) return present.filter((condition) => condition.type !== type)
  if (present.some((condition) => condition.type === type)) return present
  const reason = counts.replicas < wanted ? 'FailedCreate' : 'FailedDelete'
  return [...present, { type, status: 'True', lastTransitionTime: now, reason, message: failure }]
}

/** How many replicas the ReplicaSets of a Deployment may have (pkg/controller/deployment/util/deployment_util.go). Pure. */
import { scaledShare } from '../../../../api/validation/share-validation.ts'
import type { Deployment } from '../../../../api/workloads/deployment.ts'
import type { ReplicaSet } from '../../../../api/workloads/replica-set.ts'

export const desiredReplicasAnnotation = 'deployment.kubernetes.io/desired-replicas'
export const maxReplicasAnnotation = 'deployment.kubernetes.io/max-replicas'

export function sizeOf({ spec }: { readonly spec: { readonly replicas?: number } }): number {
  return spec.replicas ?? 1
}

export function isRollingUpdate({ spec }: Deployment): boolean {
  return spec.strategy?.type === 'RollingUpdate'
}

/** Pods above the wanted number, and pods of it that may be missing: never both 0 (ResolveFenceposts). */
export function rollingLimits(deployment: Deployment): { readonly maxSurge: number; readonly maxUnavailable: number } {
  if (!isRollingUpdate(deployment)) return { maxSurge: 0, maxUnavailable: 0 }
  const { maxSurge: surge = 0, maxUnavailable: unavailable = 0 } = deployment.spec.strategy?.rollingUpdate ?? {}
  const wanted = sizeOf(deployment)
  const maxSurge = scaledShare(surge, wanted, 'up')
  const missing = scaledShare(unavailable, wanted, 'down')
  return { maxSurge, maxUnavailable: Math.min(maxSurge === 0 && missing === 0 ? 1 : missing, wanted) }
}

/** The size of the new ReplicaSet, which grows by what the limits leave (NewRSNewReplicas). `sets`: all, the new one among them. */
export function sizeOfNewSet(deployment: Deployment, sets: readonly ReplicaSet[], newSet: ReplicaSet): number {
  const wanted = sizeOf(deployment)
  if (!isRollingUpdate(deployment)) return wanted
  const room = wanted + rollingLimits(deployment).maxSurge - sumOfSizes(sets)
  const size = sizeOf(newSet)
  return size + Math.max(0, Math.min(room, wanted - size))
}

export function sumOfSizes(sets: readonly ReplicaSet[]): number {
  return sets.reduce((sum, set) => sum + sizeOf(set), 0)
}

type Count = 'replicas' | 'readyReplicas' | 'availableReplicas'

export function sumOf(count: Count, sets: readonly ReplicaSet[]): number {
  return sets.reduce((sum, { status }) => sum + (status?.[count] ?? 0), 0)
}

/** The number in an annotation; undefined: it is missing or not a 32-bit number. */
export function countIn({ metadata }: ReplicaSet, annotation: string): number | undefined {
  const text = metadata.annotations?.[annotation] ?? ''
  const count = /^\d{1,10}$/.test(text) ? Number(text) : Number.NaN
  return count < 2 ** 31 ? count : undefined
}

/** The annotations that a scaled ReplicaSet has: by them a later visit finds whether the Deployment was scaled. */
export function sizeAnnotations(deployment: Deployment): { readonly [annotation: string]: string } {
  const wanted = sizeOf(deployment)
  return {
    [desiredReplicasAnnotation]: String(wanted),
    [maxReplicasAnnotation]: String(wanted + rollingLimits(deployment).maxSurge),
  }
}

/**
 * New sizes when a Deployment is scaled in the middle of a rollout: each ReplicaSet keeps its share, and what rounding leaves goes to
 * the largest one (scale in pkg/controller/deployment/sync.go). `active`: those with replicas.
 */
export function proportionalSizes<S extends ReplicaSet>(
  deployment: Deployment,
  active: readonly S[],
): readonly { readonly set: S; readonly size: number }[] {
  const wanted = sizeOf(deployment)
  const allowed = wanted > 0 ? wanted + rollingLimits(deployment).maxSurge : 0
  const toAdd = allowed - sumOfSizes(active)
  const sorted = active.toSorted(toAdd > 0 ? byLargestThenNewest : byLargestThenOldest)
  let added = 0
  const sizes = sorted.map((set) => {
    const proportion = proportionOf(deployment, set, toAdd, added)
    added += proportion
    return { set, size: sizeOf(set) + proportion }
  })
  return sizes.map(({ set, size }, index) => ({ set, size: index === 0 ? Math.max(0, size + toAdd - added) : size }))
}

function proportionOf(deployment: Deployment, set: ReplicaSet, toAdd: number, added: number): number {
  if (toAdd === added) return 0
  const fraction = fractionOf(deployment, set)
  return toAdd > 0 ? Math.min(fraction, toAdd - added) : Math.max(fraction, toAdd - added)
}

function fractionOf(deployment: Deployment, set: ReplicaSet): number {
  const [wanted, size] = [sizeOf(deployment), sizeOf(set)]
  if (wanted === 0) return -size
  const before = countIn(set, maxReplicasAnnotation) || deployment.status?.replicas || 0
  if (before === 0) return 0
  return Math.round((size * (wanted + rollingLimits(deployment).maxSurge)) / before) - size
}

export function byAge(a: ReplicaSet, b: ReplicaSet): number {
  const [created, other] = [a.metadata.creationTimestamp ?? '', b.metadata.creationTimestamp ?? '']
  if (created !== other) return created < other ? -1 : 1
  return (a.metadata.name ?? '') < (b.metadata.name ?? '') ? -1 : 1
}

function byLargestThenOldest(a: ReplicaSet, b: ReplicaSet): number {
  return sizeOf(b) - sizeOf(a) || byAge(a, b)
}

function byLargestThenNewest(a: ReplicaSet, b: ReplicaSet): number {
  return sizeOf(b) - sizeOf(a) || byAge(b, a)
}

/** Which pods of a workload are deleted first (ActivePodsWithRanks in pkg/controller/controller_utils.go). */
import { podCondition } from '../../../api/pod/pod-conditions.ts'
import type { Pod } from '../../../api/pod.ts'
import { isActivePod, isReadyPod } from './pod-readiness.ts'

export const deletionCostAnnotation = 'controller.kubernetes.io/pod-deletion-cost'

const phaseOrder: { readonly [phase: string]: number } = { Pending: 0, Unknown: 1, Running: 2 }

type Ranked = {
  readonly isBound: boolean
  readonly phase: number
  readonly isReady: boolean
  readonly cost: number
  readonly onNode: number
  /** NaN: unknown. */
  readonly readyMs: number
  readonly createdMs: number
  readonly restarts: number
  readonly sidecarRestarts: number
  readonly uid: string
}

/**
 * The pods, those to be deleted first at the front: unbound, then pending, not ready, with a low deletion cost, with many related
 * pods on their node, ready for a short time, with many restarts, young. Times count by their magnitude (KEP-2185). `related`: all
 * pods of the same purpose, as those of the other ReplicaSets of a Deployment.
 */
export function inDeletionOrder<P extends Pod>(pods: readonly P[], related: readonly Pod[], nowMs: number): P[] {
  const onNode = new Map<string, number>()
  for (const pod of related) {
    if (!isActivePod(pod)) continue
    const node = pod.spec.nodeName ?? ''
    onNode.set(node, (onNode.get(node) ?? 0) + 1)
  }
  return pods
    .map((pod) => ({ pod, rank: rankOf(pod, onNode.get(pod.spec.nodeName ?? '') ?? 0) }))
    .sort((a, b) => compareRanks(a.rank, b.rank, nowMs))
    .map(({ pod }) => pod)
}

function rankOf(pod: Pod, onNode: number): Ranked {
  const isReady = isReadyPod(pod)
  const { initContainers = [] } = pod.spec
  const sidecars = new Set(initContainers.filter((one) => one.restartPolicy === 'Always').map(({ name }) => name))
  const { containerStatuses = [], initContainerStatuses = [] } = pod.status ?? {}
  const most = (counts: readonly number[]) => counts.reduce((a, b) => Math.max(a, b), 0)
  return {
    isBound: (pod.spec.nodeName ?? '') !== '',
    phase: phaseOrder[pod.status?.phase ?? ''] ?? 0,
    isReady,
    cost: deletionCostOf(pod),
    onNode,
    readyMs: isReady ? Date.parse(podCondition(pod, 'Ready')?.lastTransitionTime ?? '') : Number.NaN,
    createdMs: Date.parse(pod.metadata.creationTimestamp ?? ''),
    restarts: most(containerStatuses.map(({ restartCount = 0 }) => restartCount)),
    sidecarRestarts: most(
      initContainerStatuses.filter(({ name }) => sidecars.has(name)).map(({ restartCount = 0 }) => restartCount),
    ),
    uid: pod.metadata.uid ?? '',
  }
}

/** Negative: `a` is deleted before `b`. */
function compareRanks(a: Ranked, b: Ranked, nowMs: number): number {
  if (a.isBound !== b.isBound) return a.isBound ? 1 : -1
  if (a.phase !== b.phase) return a.phase - b.phase
  if (a.isReady !== b.isReady) return a.isReady ? 1 : -1
  if (a.cost !== b.cost) return a.cost - b.cost
  if (a.onNode !== b.onNode) return b.onNode - a.onNode
  if (a.isReady && !isSameTime(a.readyMs, b.readyMs)) return compareAges(a, b, a.readyMs, b.readyMs, nowMs)
  if (a.restarts !== b.restarts) return b.restarts - a.restarts
  if (a.sidecarRestarts !== b.sidecarRestarts) return b.sidecarRestarts - a.sidecarRestarts
  if (!isSameTime(a.createdMs, b.createdMs)) return compareAges(a, b, a.createdMs, b.createdMs, nowMs)
  return 0
}

function isSameTime(a: number, b: number): boolean {
  return a === b || (Number.isNaN(a) && Number.isNaN(b))
}

/** Ages of one magnitude are equal, and then the uid decides: which of them goes is as good as random. */
function compareAges(a: Ranked, b: Ranked, aMs: number, bMs: number, nowMs: number): number {
  if (Number.isNaN(aMs) || Number.isNaN(bMs)) return Number.isNaN(aMs) ? -1 : 1
  const difference = magnitude(nowMs - aMs) - magnitude(nowMs - bMs)
  if (difference !== 0) return difference
  return a.uid < b.uid ? -1 : 1
}

/** Of an age, by powers of two of its nanoseconds as Kubernetes counts; times in the future are the youngest. */
function magnitude(ageMs: number): number {
  return ageMs > 0 ? Math.trunc(Math.log2(ageMs * 1e6)) : -1
}

/** 0 for what is no 32-bit integer (GetDeletionCostFromPodAnnotations in pkg/apis/core/helper/helpers.go). */
function deletionCostOf({ metadata }: Pod): number {
  const text = metadata.annotations?.[deletionCostAnnotation] ?? ''
  const cost = /^(-?[1-9]\d*|0)$/.test(text) ? Number(text) : 0
  return cost >= -(2 ** 31) && cost < 2 ** 31 ? cost : 0
}

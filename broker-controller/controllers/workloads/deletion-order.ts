/**
 * Which pods of a workload are deleted first (ActivePodsWithRanks and ActivePods in
 * pkg/controller/controller_utils.go).
 */
import { podCondition } from '../../../api/pod/pod-conditions.ts'
import type { Pod } from '../../../api/pod.ts'
import type { Steps } from '../../../daemon/watchdog/steps.ts'
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
 * The first `count` of the pods in the order of their deletion: unbound, then pending, not ready, with a low deletion cost, with many
 * related pods on their node, ready for a short time, with many restarts, young. Times count by their magnitude (KEP-2185). `related`:
 * all pods of the same purpose, as those of the other ReplicaSets of a Deployment. In steps: there may be very many.
 */
export function* firstToDelete<P extends Pod>(
  pods: readonly P[],
  related: Iterable<Pod>,
  { count, nowMs }: { readonly count: number; readonly nowMs: number },
): Steps<readonly P[]> {
  if (count <= 0) return []
  const onNode: Counts = new Map()
  for (const pod of related) {
    yield
    countOnNode(onNode, pod)
  }
  return yield* firstInOrder(pods, onNode, { count, nowMs })
}

/**
 * The first `count` of the pods of a Job: in the same order, but without deletion costs, and by their exact ages. A pod
 * that has worked for longer stays.
 */
export function* firstOfJobToDelete<P extends Pod>(pods: readonly P[], count: number): Steps<readonly P[]> {
  return count <= 0 ? [] : yield* firstInOrder(pods, new Map(), { count, nowMs: undefined })
}

/** `nowMs`: undefined: the order of Jobs. */
type Order = { readonly count: number; readonly nowMs: number | undefined }

function* firstInOrder<P extends Pod>(
  pods: readonly P[],
  onNode: Counts,
  { count, nowMs }: Order,
): Steps<readonly P[]> {
  let first: readonly RankedPod<P>[] = []
  for (let at = 0; at < pods.length; at += rankedAtOnce) {
    yield
    const more = ranked(pods.slice(at, at + rankedAtOnce), onNode)
    first = [...first, ...more].sort((a, b) => compareRanks(a.rank, b.rank, nowMs)).slice(0, count)
  }
  return first.map(({ pod }) => pod)
}

type Counts = Map<string, number>
type RankedPod<P> = { readonly pod: P; readonly rank: Ranked }
const rankedAtOnce = 500

function countOnNode(counts: Counts, pod: Pod): void {
  if (!isActivePod(pod)) return
  const node = pod.spec.nodeName ?? ''
  counts.set(node, (counts.get(node) ?? 0) + 1)
}

function ranked<P extends Pod>(pods: readonly P[], onNode: Counts): RankedPod<P>[] {
  return pods.map((pod) => ({ pod, rank: rankOf(pod, onNode.get(pod.spec.nodeName ?? '') ?? 0) }))
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
function compareRanks(a: Ranked, b: Ranked, nowMs: number | undefined): number {
  if (a.isBound !== b.isBound) return a.isBound ? 1 : -1
  if (a.phase !== b.phase) return a.phase - b.phase
  if (a.isReady !== b.isReady) return a.isReady ? 1 : -1
  if (nowMs !== undefined && a.cost !== b.cost) return a.cost - b.cost
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
function compareAges(a: Ranked, b: Ranked, aMs: number, bMs: number, nowMs: number | undefined): number {
  if (Number.isNaN(aMs) || Number.isNaN(bMs)) return Number.isNaN(aMs) ? -1 : 1
  if (nowMs === undefined) return bMs - aMs
  const difference = magnitude(nowMs - aMs) - magnitude(nowMs - bMs)
  if (difference !== 0) return difference
  return a.uid < b.uid ? -1 : 1
}

/** Logarithm of an age in nanoseconds to base 2, as in Kubernetes; times in the future are the youngest. */
function magnitude(ageMs: number): number {
  return ageMs > 0 ? Math.trunc(Math.log2(ageMs * 1e6)) : -1
}

/** 0 for what is not a 32-bit integer (GetDeletionCostFromPodAnnotations in pkg/apis/core/helper/helpers.go). */
function deletionCostOf({ metadata }: Pod): number {
  const text = metadata.annotations?.[deletionCostAnnotation] ?? ''
  const cost = /^(-?[1-9]\d*|0)$/.test(text) ? Number(text) : 0
  return cost >= -(2 ** 31) && cost < 2 ** 31 ? cost : 0
}

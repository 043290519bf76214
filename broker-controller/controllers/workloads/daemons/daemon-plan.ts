/** Which pods of a DaemonSet are created and deleted, and its status (pkg/controller/daemon/daemon_controller.go). Pure. */
import { hasEndedForGood } from '../../../../api/node/node-shutdown.ts'
import type { Pod } from '../../../../api/pod.ts'
import type { DaemonSetStatus } from '../../../../api/workloads/daemon-set.ts'
import { isAvailablePod, isReadyPod } from '../pod-readiness.ts'
import type { DaemonPlacement } from './daemon-placement.ts'

/** A node, or the name of one that does not exist, with the pods of the set that are on it or meant for it. */
export type DaemonNode<P extends Pod> = {
  readonly name: string
  readonly exists: boolean
  readonly placement: DaemonPlacement
  /** Those that have ended and are leaving excluded: others remove them. */
  readonly pods: readonly P[]
}

export type DaemonFacts = {
  /** Whether a pod is of the present template. */
  readonly isUpdated: (pod: Pod) => boolean
  readonly minReadySeconds: number
  /** More than one pod may be on a node during an update. */
  readonly allowsSurge: boolean
  readonly nowMs: number
}

export type EndedDaemon<P> = { readonly pod: P; readonly node: string; readonly phase: 'Failed' | 'Succeeded' }

export type DaemonPlan<P> = {
  /** Nodes that need a pod. */
  readonly create: readonly string[]
  readonly delete: readonly P[]
  /** Pods that ended: they are deleted, the failed ones no faster than their node's backoff allows. */
  readonly ended: readonly EndedDaemon<P>[]
}

const none = { create: [], delete: [], ended: [] } as const

/** Apart from updates: each node as it should be (podsShouldBeOnNode, getUnscheduledPodsWithoutNode). */
export function planDaemons<P extends Pod>(nodes: readonly DaemonNode<P>[], facts: DaemonFacts): DaemonPlan<P> {
  const plans = nodes.map((node) => planNode(node, facts))
  return {
    create: plans.flatMap((plan) => plan.create),
    delete: plans.flatMap((plan) => plan.delete),
    ended: plans.flatMap((plan) => plan.ended),
  }
}

function planNode<P extends Pod>({ name, exists, placement, pods }: DaemonNode<P>, facts: DaemonFacts): DaemonPlan<P> {
  const present = pods.filter(({ metadata }) => metadata.deletionTimestamp === undefined)
  // What is bound to a node that does not exist is removed by the cleanup of pods.
  if (!exists) return { ...none, delete: present.filter(({ spec }) => !spec.nodeName) }
  const { shouldRun, shouldContinue } = placement
  if (shouldRun && pods.length === 0) return { ...none, create: [name] }
  if (!shouldContinue) return { ...none, delete: present }
  const ended: EndedDaemon<P>[] = []
  const running: P[] = []
  for (const pod of present) {
    const phase = pod.status?.phase
    if ((phase === 'Failed' || phase === 'Succeeded') && hasEndedForGood(pod)) ended.push({ pod, node: name, phase })
    else running.push(pod)
  }
  const ordered = running.toSorted(byPlaceAndAge)
  if (!facts.allowsSurge) return { create: [], delete: ordered.slice(1), ended }
  if (ordered.length > 1) return { create: [], delete: surplusOf(ordered, facts), ended }
  return { create: ordered.length === 0 && shouldRun ? [name] : [], delete: [], ended }
}

/**
 * With surge a node has two pods only while the old one is ready and the new one is not available yet: the oldest of each template
 * are kept, and the old one goes once it is not ready or the new one is available.
 */
function surplusOf<P extends Pod>(pods: readonly P[], { isUpdated, minReadySeconds, nowMs }: DaemonFacts): P[] {
  const [updated] = pods.filter(isUpdated)
  const [outdated] = pods.filter((pod) => !isUpdated(pod))
  const surplus = pods.filter((pod) => pod !== updated && pod !== outdated)
  if (updated === undefined || outdated === undefined) return surplus
  const isReplaced = !isReadyPod(outdated) || isAvailablePod(updated, minReadySeconds, nowMs)
  return isReplaced ? [...surplus, outdated] : surplus
}

/** Bound ones first, then the oldest (podByCreationTimestampAndPhase). */
function byPlaceAndAge(a: Pod, b: Pod): number {
  const [boundA, boundB] = [(a.spec.nodeName ?? '') !== '', (b.spec.nodeName ?? '') !== '']
  if (boundA !== boundB) return boundA ? -1 : 1
  const keyOf = ({ metadata }: Pod) => `${metadata.creationTimestamp} ${metadata.name}`
  return keyOf(a) < keyOf(b) ? -1 : 1
}

/** updateDaemonSetStatus. `before`: what is not counted stays. */
export function daemonStatus(
  nodes: readonly DaemonNode<Pod>[],
  facts: DaemonFacts,
  before: { readonly status: DaemonSetStatus | undefined; readonly generation: number | undefined },
  collisionCount: number,
): DaemonSetStatus {
  const { isUpdated, minReadySeconds, nowMs } = facts
  const known = nodes.filter(({ exists }) => exists)
  const wanted = known.filter(({ placement }) => placement.shouldRun)
  const firsts = wanted.flatMap(({ pods }) => pods.toSorted(byPlaceAndAge).slice(0, 1))
  const numberAvailable = firsts.filter((pod) => isAvailablePod(pod, minReadySeconds, nowMs)).length
  const counts = {
    observedGeneration: before.generation ?? 0,
    updatedNumberScheduled: firsts.filter(isUpdated).length,
    numberAvailable,
    numberUnavailable: wanted.length - numberAvailable,
  }
  const conditions = before.status?.conditions
  return {
    currentNumberScheduled: firsts.length,
    numberMisscheduled: known.filter(({ placement, pods }) => !placement.shouldRun && pods.length > 0).length,
    desiredNumberScheduled: wanted.length,
    numberReady: firsts.filter(isReadyPod).length,
    ...Object.fromEntries(Object.entries(counts).filter(([, count]) => count !== 0)),
    ...((collisionCount > 0 || before.status?.collisionCount !== undefined) && { collisionCount }),
    ...(conditions && { conditions }),
  }
}

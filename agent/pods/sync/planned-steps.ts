/** The plan of a pod, with what holds it up: the gate of starts, and the rules of its address. */
import type { Pod } from '../../../api/pod.ts'
import type { RuntimeContainer } from '../../runtime/runtime.ts'
import type { StartDelay } from '../admission/start-gate.ts'
import type { ImageFacts } from '../images/image-decision.ts'
import { planEnding, planPod, planRemoval } from '../plan/pod-plan.ts'
import type { PodPlan } from '../plan/pod-steps.ts'
import { containersOf } from '../record/pod-containers.ts'
import { isEvicted, isLeaving, isOver, type PodRecord } from '../record/pod-record.ts'
import { earliest } from './next-action.ts'
import type { SyncPodNeeds } from './sync-needs.ts'

export type PlannedPod = {
  readonly uid: string
  readonly pod: Pod | undefined
  readonly containers: readonly RuntimeContainer[]
  readonly runs: boolean
}

/** Records an Event when a pod that would start is held for the first time. */
export async function plannedSteps({ uid, pod, containers, runs }: PlannedPod, needs: SyncPodNeeds): Promise<PodPlan> {
  const record = needs.records.of(uid)
  if (pod !== undefined && !runs && !isLeaving(pod) && !isOver(pod, record)) {
    const hold = needs.gate.hold(pod)
    if (hold?.isNew) needs.recordEvent(pod, { type: 'Warning', reason: hold.reason, message: hold.message })
    if (hold !== undefined) return heldPlan(pod, hold)
  }
  return await isolatedPlan(uid, planFor({ uid, pod, containers }, record, needs), needs)
}

function planFor(
  { uid, pod, containers }: Pick<PlannedPod, 'uid' | 'pod' | 'containers'>,
  known: PodRecord,
  needs: Pick<SyncPodNeeds, 'images' | 'clock' | 'keptDead' | 'wanted'>,
): PodPlan {
  const { graceSeconds } = known
  const images = pod === undefined ? new Map<string, ImageFacts>() : needs.images.factsOf(uid, pod, known)
  const facts = {
    mayBeOld: !needs.wanted.isWhole,
    containers,
    images,
    record: known,
    nowMs: needs.clock.monotonicMs(),
    keptDead: needs.keptDead,
  }
  // The node had no room for an evicted pod: its data on the disk is removed too.
  if (pod === undefined || isLeaving(pod) || isEvicted(pod, known))
    return planRemoval(pod ?? known.pod, facts, graceSeconds)
  return isOver(pod, known) ? planEnding(pod, facts, graceSeconds) : planPod(pod, facts)
}

function heldPlan(pod: Pod, { reason, message, againInMs }: StartDelay): PodPlan {
  return { steps: [], waiting: new Map(containersOf(pod).map(({ name }) => [name, { reason, message }])), againInMs }
}

/** No container starts before the rules of the pod's address are there. */
async function isolatedPlan(uid: string, plan: PodPlan, { isolation, sources }: SyncPodNeeds): Promise<PodPlan> {
  const starting = plan.steps.flatMap((step) => (step.step === 'startContainer' ? [step.container.name] : []))
  if (starting.length === 0) return plan
  const hold = await isolation.hold(uid, { isRouted: sources().clusterDomain !== undefined })
  if (hold === undefined) return plan
  const { reason, message, againInMs } = hold
  return {
    steps: plan.steps.filter(({ step }) => step !== 'startContainer'),
    waiting: new Map([...plan.waiting, ...starting.map((name) => [name, { reason, message }] as const)]),
    againInMs: earliest(plan.againInMs, againInMs),
  }
}

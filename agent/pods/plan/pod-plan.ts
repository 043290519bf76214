/**
 * A desired pod, its containers in the engine, and the time → ordered steps. Pure. Each plan starts from a new observation, so an
 * interrupted plan is continued by the next one. The plan of a pod in its desired state is empty.
 */
import type { Pod } from '../../../api/pod.ts'
import type { RuntimeContainer } from '../../runtime/runtime.ts'
import { withEnds } from '../record/container-ends.ts'
import {
  containersOf,
  hasEnded,
  isHalfMade,
  isRunning,
  isSidecar,
  leastGraceSeconds,
  type PodContainers,
  sortContainers,
  stopGraceSeconds,
} from '../record/pod-containers.ts'
import type { PodRecord, WaitingReason } from '../record/pod-record.ts'
import { type Choice, stopOf } from './container-choice.ts'
import { chooseInOrder } from './container-order.ts'
import { chooseEphemeral } from './ephemeral-containers.ts'
import type { PodFacts, PodPlan, PodStep } from './pod-steps.ts'

const nothing: PodPlan = { steps: [], waiting: new Map(), againInMs: undefined }

/** The pod is to run, by its restart policy. */
export function planPod(pod: Pod, facts: PodFacts): PodPlan {
  return withoutStuck(planRun(pod, facts), facts)
}

/** Removes everything of the pod: containers first, each with its grace period (`graceSeconds` at most), then the sandbox. */
export function planRemoval(pod: Pod | undefined, facts: PodFacts, graceSeconds?: number): PodPlan {
  return withoutStuck(planGone(pod, facts, graceSeconds), facts)
}

/** The pod has ended: running containers are stopped, and dead ones are kept for inspection. */
export function planEnding(pod: Pod, facts: PodFacts, graceSeconds: number | undefined): PodPlan {
  return withoutStuck(planOver(pod, facts, graceSeconds), facts)
}

/** A container that the engine could not remove is retried later, and blocks no other step. */
function withoutStuck(plan: PodPlan, { record, nowMs }: PodFacts): PodPlan {
  const waits = plan.steps.map((step) => removalWaitMs(step, { record, nowMs })).filter((ms) => ms > 0)
  if (waits.length === 0) return plan
  const againInMs = Math.min(plan.againInMs ?? Number.POSITIVE_INFINITY, ...waits)
  return { ...plan, steps: plan.steps.filter((step) => removalWaitMs(step, { record, nowMs }) <= 0), againInMs }
}

function removalWaitMs(step: PodStep, { record, nowMs }: Pick<PodFacts, 'record' | 'nowMs'>): number {
  return step.step === 'remove' ? (record.removalRetryAtMs.get(step.target.id) ?? nowMs) - nowMs : 0
}

function planRun(pod: Pod, facts: PodFacts): PodPlan {
  const found = sortContainers(withEnds(pod, facts.record.ends, facts.containers))
  const halfMade = facts.containers.filter((one) => isHalfMade(one) && !facts.record.removalRetryAtMs.has(one.id))
  if (halfMade.length > 0) return { ...nothing, steps: halfMade.map((target) => ({ step: 'remove', target })) }

  const inOrder = chooseInOrder(pod, found, facts)
  const added = chooseEphemeral(pod, found, facts)
  const unnamed = strangers(pod, found, facts)
  const isStuck = (step: PodStep) => removalWaitMs(step, facts) > 0
  const choices: readonly Choice[] = [...inOrder, ...added, { tidy: unnamed.filter(isStuck) }]
  const stops = [
    ...choices.flatMap(({ stop }) => stop ?? []),
    ...unnamed.filter((step) => !isStuck(step)),
    ...twins(pod, found, facts),
  ]
  const starting = inOrder.flatMap(({ start }) => start ?? [])
  const { sandbox } = found
  const up = sandbox !== undefined && isRunning(sandbox) ? sandbox : undefined
  const beside = up === undefined ? [] : added.flatMap(({ start }) => start?.(up) ?? [])
  if (stops.length > 0) return merge(choices, [...stops, ...outdated(found)])
  if (starting.length === 0) {
    const leave = leaveSandbox(found, facts)
    return merge(choices, [...(leave.length > 0 ? leave : beside), ...outdated(found)])
  }
  if (up === undefined) {
    return withTrouble(merge(choices, [], sandboxPlan(found, facts)), facts.record.sandboxProblem)
  }
  // Ephemeral containers are started first (pkg/kubelet/kuberuntime/kuberuntime_manager.go, SyncPod): they may debug why the
  // others do not start.
  return merge(choices, [...beside, ...starting.flatMap((start) => start(up)), ...outdated(found)])
}

/** Containers that wait for no reason of their own show the problem of the sandbox. */
function withTrouble(plan: PodPlan, message: string): PodPlan {
  const waiting = [...plan.waiting].map(([name, wait]): [string, WaitingReason] => [
    name,
    wait.message === '' ? { ...wait, message } : wait,
  ])
  return { ...plan, waiting: new Map(waiting) }
}

/** Creates a sandbox when no container runs in the last one. */
function sandboxPlan({ sandbox, histories }: PodContainers, { record, nowMs }: PodFacts): Partial<PodPlan> {
  if ([...histories.values()].flat().some(isRunning)) return {}
  const againInMs = (record.sandboxRetryAtMs ?? 0) - nowMs
  if (againInMs > 0) return { againInMs }
  const attempt = (sandbox?.identity.attempt ?? -1) + 1
  return { steps: [{ step: 'runSandbox', attempt, lost: attempt > 0 }] }
}

/** Older sandboxes without running containers. */
function outdated({ olderSandboxes, histories }: PodContainers): readonly PodStep[] {
  const used = new Set(
    [...histories.values()]
      .flat()
      .filter(isRunning)
      .map(({ sandboxID }) => sandboxID),
  )
  return olderSandboxes.filter(({ id }) => !used.has(id)).map((target) => ({ step: 'remove', target }))
}

function planGone(pod: Pod | undefined, { containers, record, nowMs }: PodFacts, graceSeconds?: number): PodPlan {
  const own = pod && stopGraceSeconds(pod)
  const shorter = graceSeconds !== undefined && graceSeconds < (own ?? 0) ? graceSeconds : undefined
  const { stops, running } = stopAll(pod, containers, record, nowMs, shorter)
  if (running) return { ...nothing, steps: stops }
  const last = (container: RuntimeContainer) => (container.identity.kind === 'sandbox' ? 1 : 0)
  const inOrder = [...containers].sort((a, b) => last(a) - last(b))
  return { ...nothing, steps: inOrder.map((target) => ({ step: 'remove', target })) }
}

function planOver(pod: Pod, facts: PodFacts, graceSeconds: number | undefined): PodPlan {
  const { containers, record, nowMs } = facts
  const halfMade = containers.filter(isHalfMade).map((target): PodStep => ({ step: 'remove', target }))
  const { stops, running } = stopAll(pod, containers, record, nowMs, graceSeconds)
  if (running || halfMade.length > 0) return { ...nothing, steps: [...halfMade, ...stops] }
  return { ...nothing, steps: leaveSandbox(sortContainers(containers), facts) }
}

/** Containers that are not, or no longer, in the specification. */
function strangers(pod: Pod, found: PodContainers, facts: PodFacts): readonly PodStep[] {
  if (facts.mayBeOld) return []
  const names = new Set(containersOf(pod).map(({ name }) => name))
  return [...found.histories]
    .filter(([name]) => !names.has(name))
    .flatMap(([name, containers]) =>
      containers.map((target): PodStep | undefined =>
        isRunning(target)
          ? stopOf(target, stopGraceSeconds(pod), facts, `Stopping container ${name}`)
          : { step: 'remove', target },
      ),
    )
    .flatMap((step) => step ?? [])
}

/** Older instances of a container that has a newer one: two instances never run at once. */
function twins(pod: Pod, found: PodContainers, facts: PodFacts): readonly PodStep[] {
  return [...found.histories].flatMap(([name, [, ...older]]) =>
    older
      .filter(isRunning)
      .flatMap((target) => stopOf(target, stopGraceSeconds(pod), facts, `Stopping container ${name}`) ?? []),
  )
}

/** No container is to run: the sandbox is stopped and its address is released. */
function leaveSandbox(found: PodContainers, { record }: PodFacts): readonly PodStep[] {
  if ([...found.histories.values()].flat().some((container) => !hasEnded(container))) return []
  return [found.sandbox, ...found.olderSandboxes]
    .flatMap((sandbox) => sandbox ?? [])
    .filter((sandbox) => isRunning(sandbox) && !record.stopping.has(sandbox.id))
    .map((target) => ({ step: 'stop', target, graceSeconds: 0, why: '' }))
}

/**
 * Stops all containers at once within the pod's grace period; sidecars after the others, in reverse order of their start. Their preStop
 * hooks begin with those of the others (killContainer in pkg/kubelet/kuberuntime/kuberuntime_container.go).
 */
function stopAll(
  pod: Pod | undefined,
  containers: readonly RuntimeContainer[],
  record: PodRecord,
  nowMs: number,
  graceSeconds?: number,
): { readonly stops: readonly PodStep[]; readonly running: boolean } {
  const running = containers.filter((container) => container.identity.kind === 'container' && isRunning(container))
  const leftSeconds = ((record.leavingUntilMs ?? Number.POSITIVE_INFINITY) - nowMs) / 1000
  const graceOf = ({ identity }: RuntimeContainer) => {
    const wanted = graceSeconds ?? (pod === undefined ? identity.gracePeriodSeconds : stopGraceSeconds(pod))
    const least =
      graceSeconds === undefined ? leastGraceSeconds : Math.min(leastGraceSeconds, Math.max(1, graceSeconds))
    return Math.max(least, Math.min(wanted, Math.ceil(leftSeconds)))
  }
  const first = firstToStop(pod, running)
  const stops = first.flatMap((target): readonly PodStep[] => {
    const stop = stopOf(
      target,
      graceOf(target),
      { record, nowMs },
      `Stopping container ${target.identity.containerName}`,
    )
    return stop === undefined ? [] : [{ ...stop, leaving: true }]
  })
  const hooks = running
    .filter((target) => !first.includes(target) && hasPreStop(pod, target) && !record.preStops.has(target.id))
    .map((target): PodStep => ({ step: 'preStop', target, graceSeconds: graceOf(target) }))
  return { stops: [...hooks, ...stops], running: running.length > 0 }
}

function hasPreStop(pod: Pod | undefined, { identity }: RuntimeContainer): boolean {
  const containers = pod === undefined ? [] : containersOf(pod)
  return containers.find(({ name }) => name === identity.containerName)?.lifecycle?.preStop !== undefined
}

function firstToStop(pod: Pod | undefined, running: readonly RuntimeContainer[]): readonly RuntimeContainer[] {
  const sidecars = (pod?.spec.initContainers ?? []).filter(isSidecar).map(({ name }) => name)
  const rank = ({ identity }: RuntimeContainer) => sidecars.indexOf(identity.containerName)
  const [first] = running.map(rank).sort((a, b) => (a < 0 || b < 0 ? a - b : b - a))
  return running.filter((container) => rank(container) === first)
}

function merge(choices: readonly Choice[], steps: readonly PodStep[], more: Partial<PodPlan> = {}): PodPlan {
  const waits = [...choices, more].flatMap(({ againInMs }) => againInMs ?? [])
  const looks = new Map(choices.flatMap(({ first }) => (first === undefined ? [] : [[JSON.stringify(first), first]])))
  return {
    steps: [...choices.flatMap(({ tidy }) => tidy ?? []), ...looks.values(), ...steps, ...(more.steps ?? [])],
    waiting: new Map(choices.flatMap(({ waiting }) => (waiting === undefined ? [] : [waiting]))),
    againInMs: waits.length === 0 ? undefined : Math.min(...waits),
  }
}

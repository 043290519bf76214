/**
 * A wanted pod, what the engine has of it, and now → ordered steps. Pure: after the steps were done and the world was
 * looked at again, the next plan goes on from there, and in the end is empty. Whatever interrupts it, the next plan
 * starts from what is there.
 */
import type { Container, Pod } from '../../api/pod.ts'
import { answerImage, type ImageFacts, parseImageName, pullPolicyOf } from './images.ts'
import {
  exitCodeOf,
  hasEnded,
  isHalfMade,
  isRunning,
  leastGraceSeconds,
  type PodContainers,
  sortContainers,
  stopGraceSeconds,
} from './pod-containers.ts'
import { type CrashBackoff, crashWaitMs, durationText, restartPolicyOf, shouldRestart } from './restarts.ts'
import type { RuntimeContainer } from './runtime.ts'
import { containerHash } from './spec-hash.ts'

export type PodStep =
  | { readonly step: 'lookForImage'; readonly image: string }
  | { readonly step: 'pullImage'; readonly image: string; readonly container: Container }
  | { readonly step: 'runSandbox'; readonly attempt: number; readonly lost: boolean }
  | {
      readonly step: 'startContainer'
      readonly container: Container
      readonly attempt: number
      readonly sandbox: RuntimeContainer
      readonly imagePulled: boolean
      /** What this one comes after. */
      readonly previous: RuntimeContainer | undefined
    }
  /** Begins to stop it; the world changes later. */
  | { readonly step: 'stop'; readonly target: RuntimeContainer; readonly graceSeconds: number; readonly why: string }
  | { readonly step: 'remove'; readonly target: RuntimeContainer }

/** Why a container does not run although it should, in Kubernetes' words. */
export type Waiting = { readonly reason: string; readonly message: string }

export type PodPlan = {
  readonly steps: readonly PodStep[]
  /** By container name. */
  readonly waiting: ReadonlyMap<string, Waiting>
  /** When time alone changes the plan. */
  readonly againInMs: number | undefined
}

/** What is remembered of a pod between two looks. Times are on the monotonic clock. */
export type PodMemory = {
  /** By container name and hash: see `backoffKey`. */
  readonly backoffs: ReadonlyMap<string, CrashBackoff>
  /** By container id: when it ended. */
  readonly exits: ReadonlyMap<string, number>
  /** By container name: it could not be made. */
  readonly troubles: ReadonlyMap<string, Waiting & { readonly retryAtMs: number }>
  /** By container id: being stopped, at the latest at this time. */
  readonly stopping: ReadonlyMap<string, number>
  /** By container name: restarts known although the engine has no such container any more. */
  readonly restartCounts: ReadonlyMap<string, number>
}

export const nothingRemembered: PodMemory = {
  backoffs: new Map(),
  exits: new Map(),
  troubles: new Map(),
  stopping: new Map(),
  restartCounts: new Map(),
}

export type PodFacts = {
  readonly containers: readonly RuntimeContainer[]
  /** By container name, of those images that were looked for. */
  readonly images: ReadonlyMap<string, ImageFacts>
  readonly memory: PodMemory
  readonly nowMs: number
}

const nothing: PodPlan = { steps: [], waiting: new Map(), againInMs: undefined }

export function backoffKey(container: Container): string {
  return `${container.name}/${containerHash(container)}`
}

/** The pod shall run, as its restart policy says. */
export function planPod(pod: Pod, facts: PodFacts): PodPlan {
  const found = sortContainers(facts.containers)
  const halfMade = facts.containers.filter(isHalfMade)
  if (halfMade.length > 0) return { ...nothing, steps: halfMade.map((target) => ({ step: 'remove', target })) }

  const choices = pod.spec.containers.map((container) => choose(pod, container, found, facts))
  const stops = [
    ...choices.flatMap(({ stop }) => stop ?? []),
    ...strangers(pod, found, facts),
    ...twins(pod, found, facts),
  ]
  const starting = choices.flatMap(({ start }) => start ?? [])
  if (stops.length > 0) return merge(choices, stops)
  if (starting.length === 0) return merge(choices, leaveSandbox(found, facts))
  if (found.sandbox === undefined || !isRunning(found.sandbox)) {
    const attempt = (found.sandbox?.identity.attempt ?? -1) + 1
    const running = [...found.histories.values()].flat().filter(isRunning)
    if (running.length > 0) return merge(choices, [])
    return merge(choices, [{ step: 'runSandbox', attempt, lost: attempt > 0 }])
  }
  const { sandbox } = found
  return merge(choices, [
    ...found.olderSandboxes.map((target): PodStep => ({ step: 'remove', target })),
    ...starting.flatMap((start) => start(sandbox)),
  ])
}

/** Nothing of the pod shall be left: containers first, each with its grace, then the sandbox. */
export function planRemoval(pod: Pod | undefined, { containers, memory, nowMs }: PodFacts): PodPlan {
  const { stops, running } = stopAll(pod, containers, memory, nowMs, 'Stopping container')
  if (running) return { ...nothing, steps: stops }
  const last = (container: RuntimeContainer) => (container.identity.kind === 'sandbox' ? 1 : 0)
  const inOrder = [...containers].sort((a, b) => last(a) - last(b))
  return { ...nothing, steps: inOrder.map((target) => ({ step: 'remove', target })) }
}

/** The pod is over: nothing of it runs any more, and what is left is kept to be looked at. */
export function planEnding(pod: Pod, facts: PodFacts, graceSeconds: number | undefined): PodPlan {
  const { containers, memory, nowMs } = facts
  const halfMade = containers.filter(isHalfMade).map((target): PodStep => ({ step: 'remove', target }))
  const { stops, running } = stopAll(pod, containers, memory, nowMs, 'Stopping container', graceSeconds)
  if (running || halfMade.length > 0) return { ...nothing, steps: [...halfMade, ...stops] }
  return { ...nothing, steps: leaveSandbox(sortContainers(containers), facts) }
}

type Choice = {
  readonly waiting?: readonly [string, Waiting]
  readonly againInMs?: number
  /** What is to be known or fetched first. */
  readonly first?: PodStep
  readonly stop?: PodStep
  /** It is to run; what to do for it now, given a sandbox. Nothing while it waits. */
  readonly start?: (sandbox: RuntimeContainer) => readonly PodStep[]
  readonly tidy?: readonly PodStep[]
}

function choose(pod: Pod, container: Container, found: PodContainers, facts: PodFacts): Choice {
  const [newest, ...older] = found.histories.get(container.name) ?? []
  const tidy = older
    .slice(1)
    .filter(hasEnded)
    .map((target): PodStep => ({ step: 'remove', target }))
  if (newest === undefined) return { tidy, ...chooseStart(container, newest, facts) }
  if (!isRunning(newest) && older.some(isRunning)) return { tidy, start: () => [] }
  const changed = newest.identity.specHash !== containerHash(container)
  if (isRunning(newest)) {
    const stray = found.sandbox === undefined || !isRunning(found.sandbox) || newest.sandboxID !== found.sandbox.id
    if (!changed && !stray) return { tidy }
    const why = changed
      ? `Container ${container.name} definition changed, will be restarted`
      : `Stopping container ${container.name}`
    const stop = stopOf(newest, stopGraceSeconds(pod), facts, why)
    return { tidy, ...(stop ? { stop } : {}), start: () => [] }
  }
  if (!changed && !shouldRestart(restartPolicyOf(pod.spec.restartPolicy), exitCodeOf(newest))) return { tidy }
  const exitedAtMs = facts.memory.exits.get(newest.id) ?? facts.nowMs
  const waitMs = changed ? 0 : crashWaitMs(facts.memory.backoffs.get(backoffKey(container)), exitedAtMs)
  const leftMs = exitedAtMs + waitMs - facts.nowMs
  if (leftMs <= 0) return { tidy, ...chooseStart(container, newest, facts) }
  const { name, namespace = 'default', uid } = pod.metadata
  const message = `back-off ${durationText(waitMs)} restarting failed container=${container.name} pod=${name}_${namespace}(${uid})`
  return {
    tidy,
    againInMs: leftMs,
    waiting: [container.name, { reason: 'CrashLoopBackOff', message }],
    start: () => [],
  }
}

function chooseStart(
  container: Container,
  previous: RuntimeContainer | undefined,
  { images, memory, nowMs }: PodFacts,
): Choice {
  const creating: Waiting = { reason: 'ContainerCreating', message: '' }
  const trouble = memory.troubles.get(container.name)
  if (trouble !== undefined && trouble.retryAtMs > nowMs) {
    const { reason, message } = trouble
    return { waiting: [container.name, { reason, message }], againInMs: trouble.retryAtMs - nowMs, start: () => [] }
  }
  const image = container.image ?? ''
  const policy = pullPolicyOf(container.imagePullPolicy, image)
  const known = memory.restartCounts.get(container.name)
  const ranBefore = previous !== undefined || known !== undefined
  const facts = images.get(container.name)
  const look = facts === undefined && parseImageName(image) !== undefined
  const answer = look
    ? { answer: 'look' as const }
    : answerImage({ image, policy, ranBefore }, facts ?? { present: false, pull: { state: 'none' } })
  const waiting: readonly [string, Waiting] = [container.name, creating]
  switch (answer.answer) {
    case 'look':
      return { waiting, first: { step: 'lookForImage', image }, start: () => [] }
    case 'pull':
      return { waiting, first: { step: 'pullImage', image, container }, start: () => [] }
    case 'wait': {
      const { reason, message, retryInMs } = answer
      return {
        waiting: [container.name, { reason, message }],
        ...(retryInMs === undefined ? {} : { againInMs: retryInMs }),
        start: () => [],
      }
    }
    case 'ready': {
      const attempt = Math.max(previous?.identity.attempt ?? -1, known ?? -1) + 1
      const imagePulled = answer.pulled
      return {
        waiting,
        start: (sandbox) => [{ step: 'startContainer', container, attempt, sandbox, imagePulled, previous }],
      }
    }
  }
}

/** Containers the pod does not name (any more). */
function strangers(pod: Pod, found: PodContainers, facts: PodFacts): readonly PodStep[] {
  const names = new Set(pod.spec.containers.map(({ name }) => name))
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

/** Older ones of a container that exists anew: two never run side by side. */
function twins(pod: Pod, found: PodContainers, facts: PodFacts): readonly PodStep[] {
  return [...found.histories].flatMap(([name, [, ...older]]) =>
    older
      .filter(isRunning)
      .flatMap((target) => stopOf(target, stopGraceSeconds(pod), facts, `Stopping container ${name}`) ?? []),
  )
}

/** No container is left to run: the sandbox need not wait for one. Its address is free again. */
function leaveSandbox(found: PodContainers, { memory }: PodFacts): readonly PodStep[] {
  if ([...found.histories.values()].flat().some((container) => !hasEnded(container))) return []
  return [found.sandbox, ...found.olderSandboxes]
    .flatMap((sandbox) => sandbox ?? [])
    .filter((sandbox) => isRunning(sandbox) && !memory.stopping.has(sandbox.id))
    .map((target) => ({ step: 'stop', target, graceSeconds: 0, why: '' }))
}

function stopAll(
  pod: Pod | undefined,
  containers: readonly RuntimeContainer[],
  memory: PodMemory,
  nowMs: number,
  why: string,
  graceSeconds?: number,
): { readonly stops: readonly PodStep[]; readonly running: boolean } {
  const running = containers.filter((container) => container.identity.kind === 'container' && isRunning(container))
  const graceOf = ({ identity }: RuntimeContainer) =>
    graceSeconds ?? (pod === undefined ? identity.gracePeriodSeconds : stopGraceSeconds(pod))
  const stops = running.flatMap(
    (target) => stopOf(target, graceOf(target), { memory, nowMs }, `${why} ${target.identity.containerName}`) ?? [],
  )
  return { stops, running: running.length > 0 }
}

/** undefined when it is being stopped already, and no later than this. */
function stopOf(
  target: RuntimeContainer,
  graceSeconds: number,
  { memory, nowMs }: Pick<PodFacts, 'memory' | 'nowMs'>,
  why: string,
): PodStep | undefined {
  const grace = Math.max(leastGraceSeconds, graceSeconds)
  const until = memory.stopping.get(target.id)
  if (until !== undefined && until <= nowMs + grace * 1000) return undefined
  return { step: 'stop', target, graceSeconds: grace, why }
}

function merge(choices: readonly Choice[], steps: readonly PodStep[]): PodPlan {
  const waits = choices.flatMap(({ againInMs }) => againInMs ?? [])
  const looks = new Map(choices.flatMap(({ first }) => (first === undefined ? [] : [[JSON.stringify(first), first]])))
  return {
    steps: [...choices.flatMap(({ tidy }) => tidy ?? []), ...looks.values(), ...steps],
    waiting: new Map(choices.flatMap(({ waiting }) => (waiting === undefined ? [] : [waiting]))),
    againInMs: waits.length === 0 ? undefined : Math.min(...waits),
  }
}

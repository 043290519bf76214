/**
 * The order of containers: init containers one after the other, then all others together, with sidecars beside them (KEP-753).
 */
import type { Container, Pod } from '../../../api/pod.ts'
import type { RuntimeContainer } from '../../runtime/runtime.ts'
import {
  exitCodeOf,
  hasEnded,
  isHalfMade,
  isRunning,
  isSidecar,
  type PodContainers,
  restartPolicyFor,
  stopGraceSeconds,
} from '../record/pod-containers.ts'
import { vitalsOf } from '../record/pod-record.ts'
import { type Choice, choose, stopOf } from './container-choice.ts'
import type { PodFacts } from './pod-steps.ts'

/** The steps for the containers of a pod that is to run. */
export function chooseInOrder(pod: Pod, found: PodContainers, facts: PodFacts): readonly Choice[] {
  const regular = afterHooks(pod, found, facts)
  const inits = pod.spec.initContainers ?? []
  const newest = (container: Container) => found.histories.get(container.name)?.[0]
  const wanted = regular.some(({ start }) => start !== undefined)
  const alive = pod.spec.containers.some((container) => running(newest(container)))
  const sidecars = inits.filter(isSidecar)
  if (!wanted && !alive) return [...regular, ...lastSidecar(pod, sidecars, found, facts)]
  if (isInitialized(pod, found)) return [...sidecars.map((one) => choose(pod, one, found, facts)), ...regular]
  if (inits.some((container) => failedForGood(pod, container, found))) return lastSidecar(pod, sidecars, found, facts)
  const turn = initialize(pod, inits, found, facts)
  if (turn.done) return [...turn.choices, ...regular]
  return [...turn.choices, ...regular.map((choice, index) => waitForInit(choice, pod.spec.containers[index]))]
}

/** A regular container was started in the present sandbox, so all init containers are done. */
function isInitialized(pod: Pod, { sandbox, histories }: PodContainers): boolean {
  if (sandbox === undefined || !isRunning(sandbox)) return false
  return pod.spec.containers
    .flatMap(({ name }) => histories.get(name) ?? [])
    .some((container) => container.sandboxID === sandbox.id && !isHalfMade(container))
}

type Turn = { readonly choices: readonly Choice[]; readonly done: boolean }

function initialize(pod: Pod, inits: readonly Container[], found: PodContainers, facts: PodFacts): Turn {
  const { sandbox } = found
  const choices: Choice[] = []
  for (const container of inits) {
    const newest = found.histories.get(container.name)?.[0]
    const here = sandbox !== undefined && isRunning(sandbox) && newest?.sandboxID === sandbox.id ? newest : undefined
    if (isSidecar(container)) {
      const choice = choose(pod, container, found, facts)
      choices.push(choice)
      const isKept = choice.start === undefined
      if (isKept && running(here) && isStarted(here, facts)) continue
      return { choices, done: false }
    }
    if (succeeded(here)) continue
    // It has not failed for good, and one that succeeded in a lost sandbox runs again.
    choices.push(choose(pod, container, found, facts, 'Always'))
    return { choices, done: false }
  }
  return { choices, done: true }
}

function failedForGood(pod: Pod, container: Container, { histories }: PodContainers): boolean {
  const newest = histories.get(container.name)?.[0]
  if (newest === undefined || restartPolicyFor(pod, container) !== 'Never') return false
  return hasEnded(newest) && exitCodeOf(newest) !== 0
}

function waitForInit(choice: Choice, container: Container | undefined): Choice {
  const tidy = choice.tidy ?? []
  if (choice.stop !== undefined) return { tidy, stop: choice.stop, start: () => [] }
  if (choice.start === undefined || container === undefined) return { tidy }
  return { tidy, waiting: [container.name, { reason: 'ContainerCreating', message: '' }], start: () => [] }
}

/** Containers wait for the postStart hook of the one before them. */
function afterHooks(pod: Pod, found: PodContainers, facts: PodFacts): readonly Choice[] {
  let waits = false
  return pod.spec.containers.map((container) => {
    const choice = choose(pod, container, found, facts)
    const newest = found.histories.get(container.name)?.[0]
    const held = waits && choice.start !== undefined ? { ...choice, start: () => [] } : choice
    const comes = choice.waiting?.[1].reason === 'ContainerCreating' && container.lifecycle?.postStart !== undefined
    if (comes || (newest !== undefined && facts.record.postStarts.has(newest.id))) waits = true
    return held
  })
}

/** All regular containers have terminated: sidecars are stopped too, in reverse order of their start. */
function lastSidecar(
  pod: Pod,
  sidecars: readonly Container[],
  { histories }: PodContainers,
  facts: PodFacts,
): readonly Choice[] {
  const last = sidecars.map(({ name }) => histories.get(name)?.[0]).findLast(running)
  if (last === undefined) return []
  const stop = stopOf(last, stopGraceSeconds(pod), facts, `Stopping container ${last.identity.containerName}`)
  return stop === undefined ? [] : [{ stop }]
}

function running(container: RuntimeContainer | undefined): container is RuntimeContainer {
  return container !== undefined && isRunning(container)
}

function succeeded(container: RuntimeContainer | undefined): boolean {
  return container !== undefined && hasEnded(container) && exitCodeOf(container) === 0
}

function isStarted({ id }: RuntimeContainer, { record }: PodFacts): boolean {
  return vitalsOf(record).get(id)?.started ?? true
}

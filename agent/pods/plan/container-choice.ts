/** The plan for one container of a pod that is to run: keep it, stop it, start it, or wait, and for what. */
import type { Container, Pod } from '../../../api/pod.ts'
import type { RuntimeContainer } from '../../runtime/runtime.ts'
import { answerImage, parseImageName, pullPolicyOf } from '../images/image-decision.ts'
import {
  exitCodeOf,
  hasEnded,
  isRunning,
  isSidecar,
  leastGraceSeconds,
  type PodContainers,
  restartPolicyFor,
  stopGraceSeconds,
} from '../record/pod-containers.ts'
import { backoffKey, vitalsOf, type WaitingReason } from '../record/pod-record.ts'
import { crashWaitMs, durationText, type RestartPolicy, shouldRestart, stoppedWaitMs } from '../record/restarts.ts'
import { containerHash } from '../record/spec-hash.ts'
import type { PodFacts, PodStep, StepOf } from './pod-steps.ts'

export type Choice = {
  readonly waiting?: readonly [string, WaitingReason]
  readonly againInMs?: number
  /** A step that must come before, such as an image pull. */
  readonly first?: PodStep
  readonly stop?: PodStep
  /** The steps that start the container in a sandbox. Empty while it waits. */
  readonly start?: (sandbox: RuntimeContainer) => readonly PodStep[]
  readonly tidy?: readonly PodStep[]
}

/** The plan for one container of a pod that is to run, independent of the others. */
export function choose(
  pod: Pod,
  container: Container,
  found: PodContainers,
  facts: PodFacts,
  policy: RestartPolicy = restartPolicyFor(pod, container),
): Choice {
  const [newest, ...older] = found.histories.get(container.name) ?? []
  const tidy = older
    .slice(facts.keptDead ?? 1)
    .filter(hasEnded)
    .map((target): PodStep => ({ step: 'remove', target }))
  if (newest === undefined) return { tidy, ...chooseStart(container, newest, facts) }
  if (!isRunning(newest) && older.some(isRunning)) return { tidy, start: () => [] }
  const goesOn = isAtWork(pod, newest) || (facts.mayBeOld && isRunning(newest))
  const changed = newest.identity.specHash !== containerHash(container) && !goesOn
  const known = { pod, container, newest, before: older.find(hasEnded), changed, policy }
  return { tidy, ...(isRunning(newest) ? chooseStop(known, found, facts) : chooseRestart(known, facts)) }
}

type KnownContainer = {
  readonly pod: Pod
  readonly container: Container
  readonly newest: RuntimeContainer
  /** The last instance before it that has ended. */
  readonly before: RuntimeContainer | undefined
  /** It is to be replaced by one of the present specification. */
  readonly changed: boolean
  readonly policy: RestartPolicy
}

function chooseStop(
  { pod, container, newest, changed, policy }: KnownContainer,
  found: PodContainers,
  facts: PodFacts,
) {
  const stray = found.sandbox === undefined || !isRunning(found.sandbox) || newest.sandboxID !== found.sandbox.id
  const failed = vitalsOf(facts.record).get(newest.id)?.failed
  if (!changed && !stray && failed === undefined) return {}
  const why = changed ? changedText(container) : (failed?.why ?? `Stopping container ${container.name}`)
  const stop = stopOf(newest, Math.max(leastGraceSeconds, failed?.graceSeconds ?? stopGraceSeconds(pod)), facts, why)
  // After a failed probe it starts again unless the policy is Never (pkg/kubelet/kuberuntime, computePodActions).
  const replace = changed || (failed?.byProbe === true && policy !== 'Never')
  return { ...(stop && { stop: replace ? { ...stop, replace } : stop }), start: () => [] }
}

function changedText(container: Container): string {
  return isSidecar(container)
    ? `Init container ${container.name} definition changed`
    : `Container ${container.name} definition changed, will be restarted`
}

function chooseRestart({ pod, container, newest, before, changed, policy }: KnownContainer, facts: PodFacts) {
  // A container that ended by itself has succeeded or failed, even if its specification has changed since.
  const isReplaced = facts.record.replacing.has(newest.id)
  if (!isReplaced && !shouldRestart(policy, exitCodeOf(newest))) return {}
  const exitedAtMs = facts.record.exits.get(newest.id) ?? facts.nowMs
  const backoff = facts.record.backoffs.get(backoffKey(container))
  const stoppedMs = () => stoppedWaitMs(backoff, exitedAtMs, before && facts.record.exits.get(before.id))
  const waitMs = changed ? 0 : isReplaced ? stoppedMs() : crashWaitMs(backoff, exitedAtMs)
  const leftMs = exitedAtMs + waitMs - facts.nowMs
  if (leftMs <= 0) return chooseStart(container, newest, facts)
  const { name, namespace = 'default', uid } = pod.metadata
  const message = `back-off ${durationText(waitMs)} restarting failed container=${container.name} pod=${name}_${namespace}(${uid})`
  // For a container that never started, the error is more useful than the back-off.
  const refused = newest.state === 'created'
  const waiting: WaitingReason = refused
    ? { reason: 'RunContainerError', message: newest.error }
    : { reason: 'CrashLoopBackOff', message }
  return { againInMs: leftMs, waiting: [container.name, waiting] as const, start: () => [] }
}

/** A running init container is not restarted for a changed specification. */
function isAtWork({ spec }: Pod, container: RuntimeContainer): boolean {
  const init = spec.initContainers?.find(({ name }) => name === container.identity.containerName)
  return init !== undefined && !isSidecar(init) && isRunning(container)
}

function chooseStart(
  container: Container,
  previous: RuntimeContainer | undefined,
  { images, record, nowMs }: PodFacts,
): Choice {
  const creating: WaitingReason = { reason: 'ContainerCreating', message: '' }
  const trouble = record.startProblems.get(container.name)
  if (trouble !== undefined && trouble.retryAtMs > nowMs) {
    const { reason, message } = trouble
    return { waiting: [container.name, { reason, message }], againInMs: trouble.retryAtMs - nowMs, start: () => [] }
  }
  const image = container.image ?? ''
  const policy = pullPolicyOf(container.imagePullPolicy, image)
  const known = record.restartCounts.get(container.name)
  const ranBefore = previous !== undefined || known !== undefined
  const facts = images.get(container.name)
  const look = facts === undefined && parseImageName(image) !== undefined
  const answer = look
    ? { answer: 'look' as const }
    : answerImage({ image, policy, ranBefore }, facts ?? { present: false, pull: { state: 'none' } })
  const waiting: readonly [string, WaitingReason] = [container.name, creating]
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

/** undefined when it is being stopped already, with a deadline that is not later. */
export function stopOf(
  target: RuntimeContainer,
  graceSeconds: number,
  { record, nowMs }: Pick<PodFacts, 'record' | 'nowMs'>,
  why: string,
): StepOf<'stop'> | undefined {
  const until = record.stopping.get(target.id)
  if (until !== undefined && until <= nowMs + graceSeconds * 1000) return undefined
  return { step: 'stop', target, graceSeconds, why }
}

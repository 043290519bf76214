/** What comes after a container's start and before its end: its hooks, and the signal that stops it. Nothing here is waited for. */
import type { Container, Pod } from '../../api/pod.ts'
import type { Clock } from '../../daemon/clock.ts'
import type { Log } from '../../daemon/log.ts'
import { pathOf } from './desired-pods.ts'
import { containerNamed, runHook } from './hooks.ts'
import { leastGraceSeconds } from './pod-containers.ts'
import type { PodNews } from './pod-events.ts'
import type { PodMemory, StepOf, Vital } from './pod-steps.ts'
import type { NetworkProbes } from './probes/targets.ts'
import type { ContainerRuntime, RuntimeContainer } from './runtime.ts'

export type LifecycleNeeds = {
  readonly runtime: Pick<ContainerRuntime, 'stopContainer' | 'exec'>
  readonly network: NetworkProbes
  readonly hostIP: () => string | undefined
  readonly clock: Clock
  readonly log: Log
  readonly event: (pod: Pod, news: PodNews) => void
  /** Something begun here has ended: visit the pod again, at once or after this long. */
  readonly again: (uid: string, afterMs?: number) => void
}

export interface Lifecycle {
  memory(): Pick<PodMemory, 'postStarts' | 'stopping' | 'replacing' | 'leavingUntilMs'>
  /** Of those with a hook that goes on, or has failed. */
  vitals(): ReadonlyMap<string, Vital>
  /** The container was started: its hook begins beside its entrypoint. */
  started(pod: Pod, container: Container, id: string): void
  /** Begins to stop it. */
  stop(uid: string, pod: Pod | undefined, step: StepOf<'stop'>): void
  /** The end that its time ran for is called off. */
  stays(): void
  observe(containers: readonly RuntimeContainer[]): void
}

/** A hook after the start may take this long; Kubernetes sets no end. */
const longestHookMs = 600_000
const tryAgainMs = 1_000

export function lifecycle(needs: LifecycleNeeds): Lifecycle {
  const { runtime, clock, log } = needs
  const postStarts = new Set<string>()
  const failedPostStarts = new Set<string>()
  /** By container id: its preStop hook was begun. */
  const preStops = new Map<string, AbortController>()
  /** By container id: at the latest at this time. */
  const stopping = new Map<string, number>()
  const replacing = new Set<string>()
  let leavingUntilMs: number | undefined
  let podIP: string | undefined

  const ownIP = ({ spec }: Pod) => (spec.hostNetwork ? needs.hostIP() : podIP)

  const tellHook = (pod: Pod, { name }: Container, hook: 'PostStartHook' | 'PreStopHook', message: string) => {
    const news = { reason: `Failed${hook}`, message: `${hook} failed: ${message}`, containerName: name }
    needs.event(pod, { type: 'Warning', ...news })
    log.warn('Hook failed', { pod: pathOf(pod), container: name, hook, message })
  }

  /** The hook first, on the container's time; then the signal, with what is left of it. */
  const endContainer = async (pod: Pod | undefined, { target, graceSeconds }: StepOf<'stop'>, untilMs: number) => {
    const container = pod && containerNamed(pod, target.identity.containerName)
    const hook = container?.lifecycle?.preStop
    const begun = preStops.get(target.id)
    begun?.abort()
    if (
      pod === undefined ||
      container === undefined ||
      hook === undefined ||
      begun !== undefined ||
      graceSeconds === 0
    ) {
      return await runtime.stopContainer(target.id, graceSeconds)
    }
    const calledOff = new AbortController()
    preStops.set(target.id, calledOff)
    const timeoutMs = graceSeconds * 1000
    const call = { hook, container, id: target.id, podIP: ownIP(pod), timeoutMs, signal: calledOff.signal }
    const { result, message } = await runHook(needs, call)
    if (calledOff.signal.aborted) return
    if (result !== 'success') tellHook(pod, container, 'PreStopHook', message)
    const leftSeconds = Math.max(leastGraceSeconds, Math.ceil((untilMs - clock.monotonicMs()) / 1000))
    await runtime.stopContainer(target.id, leftSeconds)
  }

  return {
    memory: () => ({ postStarts, stopping, replacing, leavingUntilMs }),
    vitals() {
      const vitals = new Map<string, Vital>()
      for (const id of postStarts) vitals.set(id, { started: false, ready: false })
      for (const id of failedPostStarts) {
        vitals.set(id, { started: false, ready: false, failed: { why: 'FailedPostStartHook' } })
      }
      return vitals
    },
    started(pod, container, id) {
      const hook = container.lifecycle?.postStart
      if (hook === undefined) return
      postStarts.add(id)
      const { signal } = new AbortController() // nothing calls it off; one for all hooks would collect their listeners
      const call = { hook, container, id, podIP: ownIP(pod), timeoutMs: longestHookMs, signal }
      void runHook(needs, call).then(({ result, message }) => {
        postStarts.delete(id)
        if (result !== 'success') {
          failedPostStarts.add(id)
          tellHook(pod, container, 'PostStartHook', message)
        }
        needs.again(pod.metadata.uid ?? '')
      })
    },
    stop(uid, pod, step) {
      const { target, graceSeconds, why } = step
      const untilMs = clock.monotonicMs() + graceSeconds * 1000
      if (step.leaving) leavingUntilMs = Math.min(leavingUntilMs ?? untilMs, untilMs)
      const { containerName } = target.identity
      stopping.set(target.id, untilMs)
      if (step.replace) replacing.add(target.id)
      if (pod !== undefined && why !== '') {
        needs.event(pod, { type: 'Normal', reason: 'Killing', message: why, containerName })
      }
      if (containerName !== '') log.info('Container stopping', { podUID: uid, container: containerName, graceSeconds })
      const ended = (afterMs?: number) => {
        if (stopping.get(target.id) === untilMs) stopping.delete(target.id)
        needs.again(uid, afterMs)
      }
      endContainer(pod, step, untilMs).then(
        () => ended(),
        (error) => {
          log.warn('Container not stopped', { podUID: uid, container: containerName, error })
          ended(tryAgainMs)
        },
      )
    },
    stays() {
      leavingUntilMs = undefined
    },
    observe(containers) {
      const ids = new Set(containers.map(({ id }) => id))
      podIP = containers.find(({ identity, ip }) => identity.kind === 'sandbox' && ip !== undefined)?.ip
      for (const known of [preStops, failedPostStarts, replacing])
        for (const id of [...known.keys()]) if (!ids.has(id)) known.delete(id)
    },
  }
}

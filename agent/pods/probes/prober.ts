/**
 * Probes every container that has probes, each at its own period, and reports changed results
 * (pkg/kubelet/prober/prober_manager.go).
 */
import { setMaxListeners } from 'node:events'
import type { Pod } from '../../../api/pod.ts'
import { rung } from '../../../daemon/alarm.ts'
import type { Clock } from '../../../daemon/clock.ts'
import { dueTimes, waitMs } from '../../../daemon/due-times.ts'
import type { Log } from '../../../daemon/log.ts'
import { isRunning } from '../record/pod-containers.ts'
import type { PodEvent } from '../record/pod-events.ts'
import type { Vitals } from '../record/pod-record.ts'
import { systemTime, type TrustedTime } from '../record/trusted-time.ts'
import type { ContainerRuntime, RuntimeContainer } from '../runtime/runtime.ts'
import { type CountedProbe, countProbe } from './probe-counts.ts'
import { afterAnswer, type ProbeState, probeTurn, rulesOf } from './probe-worker.ts'
import { type ProbedPod, probedPods, type Worker } from './probed-pods.ts'
import { type NetworkProbes, type ProbeAnswer, type Target, targetOf } from './targets.ts'

export type ProberNeeds = {
  readonly runtime: Pick<ContainerRuntime, 'exec'>
  readonly network: NetworkProbes
  readonly clock: Clock
  /** Left out: the clock is right. */
  readonly date?: TrustedTime
  readonly random: () => number
  readonly log: Log
  readonly recordEvent: (pod: Pod, event: PodEvent) => void
  /** A result of a container of this pod changed: ready, started or healthy. */
  readonly changed: (podUID: string) => void
}

export interface Prober {
  /** The pod as just observed. */
  observe(podUID: string, probed: ProbedPod): void
  /** The pod has ended, or is gone. */
  forget(podUID: string): void
  vitals(podUID: string): Vitals
  /** How often each probe of the pods gave which result. */
  counts(): readonly CountedProbe[]
  /**
   * How long to wait before the pod's status is reported, 0 in general: containers that ran before this agent started have
   * no result until they are probed, and their last reported status still holds.
   */
  unknownForMs(podUID: string): number
  run(signal: AbortSignal): Promise<void>
}

export function prober(needs: ProberNeeds): Prober {
  const { clock, date = systemTime(clock), random, changed } = needs
  const pods = probedPods(clock, date)
  const due = dueTimes()
  const running = new Set<Promise<void>>()
  const stopped = new AbortController()
  setMaxListeners(0, stopped.signal) // every probe under way adds a listener until it has a result: many of them are no leak
  let wake: () => void = () => undefined

  const schedule = (worker: Worker, dueMs: number) => {
    due.set(worker.key, dueMs)
    wake()
  }

  /** Startup and readiness are probed at once; liveness within its first period. */
  const firstDueMs = (worker: Worker, container: RuntimeContainer): number => {
    const nowMs = clock.monotonicMs()
    const { initialDelayMs, periodMs } = rulesOf(worker.probe)
    const since = pods.startedAtMs(container.id) ?? nowMs
    const spread = worker.kind === 'liveness' ? random() * periodMs : 0
    return Math.max(nowMs + spread, since + initialDelayMs)
  }

  const change = (worker: Worker, state: ProbeState) => {
    const before = worker.state
    worker.state = state
    if (before.result === state.result && before.containerID === state.containerID) return
    if (worker.kind === 'startup' && state.result === 'success') probeReadiness(worker.podUID, worker.container.name)
    changed(worker.podUID)
  }

  /** The container has started: its readiness is probed now, not at the next period. */
  const probeReadiness = (podUID: string, name: string) => {
    const waiting = pods.get(podUID)?.workers.filter((one) => one.container.name === name && one.kind === 'readiness')
    for (const worker of waiting ?? []) schedule(worker, clock.monotonicMs())
  }

  const tick = (worker: Worker) => {
    const watched = pods.get(worker.podUID)
    if (watched === undefined || worker.asking) return
    const rules = rulesOf(worker.probe)
    const found = watched.newest.get(worker.container.name)
    if (found === undefined || !isRunning(found)) return // scheduled again when its next start is observed
    const { turn, state } = probeTurn(worker.state, pods.factsOf(worker, found, watched), rules)
    change(worker, state)
    if (turn === 'end' || state.onHold) return
    schedule(worker, clock.monotonicMs() + rules.periodMs)
    if (turn !== 'ask') return
    const target = targetOf(worker.probe, worker.container, watched.podIP)
    if (target === undefined) return
    worker.asking = true
    const beganMs = clock.monotonicMs()
    const one: Promise<void> = runProbe(needs, target, found.id, rules.timeoutMs, stopped.signal).then((answer) => {
      running.delete(one)
      worker.asking = false
      worker.counts = countProbe(worker.counts, answer.result, clock.monotonicMs() - beganMs)
      recordFailure(needs, worker, watched.pod, answer)
      change(worker, afterAnswer(worker.state, found.id, answer.result, rules))
    })
    running.add(one)
  }

  const forget = (podUID: string) => {
    for (const key of pods.forget(podUID)) due.delete(key)
  }

  return {
    observe(podUID, probed) {
      const started = pods.observe(podUID, probed)
      if (started === undefined) forget(podUID)
      for (const [worker, found] of started ?? []) schedule(worker, firstDueMs(worker, found))
    },
    forget,
    vitals: pods.vitals,
    counts: pods.counts,
    unknownForMs: pods.unknownForMs,
    async run(signal) {
      signal.addEventListener('abort', () => wake(), { once: true })
      while (!signal.aborted) {
        for (const key of due.take(clock.monotonicMs())) {
          const worker = pods.worker(key)
          if (worker !== undefined) tick(worker)
        }
        const woken = new AbortController()
        wake = () => woken.abort(rung)
        await clock.sleep(waitMs(due.nextMs(), clock.monotonicMs()), woken.signal)
      }
      stopped.abort()
      await Promise.race([Promise.all(running), clock.sleep(1_000)])
    },
  }
}

async function runProbe(
  { runtime, network, log }: ProberNeeds,
  target: Target,
  id: string,
  timeoutMs: number,
  signal: AbortSignal,
): Promise<ProbeAnswer> {
  if (target.kind !== 'exec') return network.ask(target, timeoutMs, signal)
  try {
    const { exitCode, output } = await runtime.exec(id, target.command, timeoutMs)
    if (exitCode === undefined) {
      const command = target.command.join(' ')
      return { result: 'failure', message: `command timed out: "${command}" timed out after ${timeoutMs / 1000}s` }
    }
    return { result: exitCode === 0 ? 'success' : 'failure', message: output }
  } catch (error) {
    log.debug('Probe not run', { container: id.slice(0, 12), error })
    return { result: 'unknown', message: '' }
  }
}

/** Once for consecutive failures, and again for another message: each Event is a message to the controller. */
function recordFailure({ recordEvent }: ProberNeeds, worker: Worker, pod: Pod, { result, message }: ProbeAnswer): void {
  const text = result === 'failure' ? `failure ${message}` : ''
  if (result === 'unknown' || worker.lastFailure === text) return
  worker.lastFailure = text
  if (result === 'success') return
  const name = `${worker.kind[0]?.toUpperCase()}${worker.kind.slice(1)}`
  recordEvent(pod, {
    type: 'Warning',
    reason: 'Unhealthy',
    message: `${name} probe failed: ${message}`,
    containerName: worker.container.name,
  })
}

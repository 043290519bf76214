/**
 * Probes every container that has probes, each at its own period, and reports changed results
 * (pkg/kubelet/prober/prober_manager.go).
 */
import { setMaxListeners } from 'node:events'
import type { Pod, Probe } from '../../../api/pod.ts'
import { alarm } from '../../../daemon/alarm.ts'
import type { Clock } from '../../../daemon/clock.ts'
import { type DueTimes, dueTimes, waitMs } from '../../../daemon/due-times.ts'
import type { Log } from '../../../daemon/log.ts'
import type { ContainerRuntime } from '../../runtime/runtime.ts'
import { isRunning } from '../record/pod-containers.ts'
import type { PodEvent } from '../record/pod-events.ts'
import type { Vitals } from '../record/pod-record.ts'
import { systemTime, type TrustedTime } from '../record/trusted-time.ts'
import { type CountedProbe, countProbe } from './probe-counts.ts'
import { afterAnswer, type ProbeState, probeTurn, rulesOf } from './probe-worker.ts'
import { type ProbedPod, type ProbedPods, probedPods, type WatchedPod, type Worker } from './probed-pods.ts'
import { type NetworkProbes, type ProbeAnswer, portProblem, probeTargetOf, type Target } from './targets.ts'

export type ProberNeeds = {
  readonly runtime: Pick<ContainerRuntime, 'exec'>
  readonly network: NetworkProbes
  readonly clock: Clock
  /** Default: the clock is right. */
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

/**
 * A probe is run together with another one that is due, up to this part of its period early: the agent then wakes up less often, and a
 * probe that follows another takes a third of its CPU time (docs/figures.md, "Pods"). Afterwards their times are the same. A command is not
 * run early: it starts processes, and several at once on a small machine take longer than the second that a probe has by default.
 */
const earlyShare = 0.1
const mostEarlyMs = 1_000
/** Probes that begin in one turn of the event loop, unless more are due. */
const mostTogether = 8

export function prober(needs: ProberNeeds): Prober {
  const { clock, date = systemTime(clock), random, changed } = needs
  const pods = probedPods(clock, date)
  const due = dueTimes()
  const running = new Set<Promise<void>>()
  const stopped = new AbortController()
  setMaxListeners(0, stopped.signal) // a probe under way may add a listener until it has a result: many of them are not a leak
  const wake = alarm(clock)
  /** The loop sleeps until then; while it is at work it needs no notification. */
  let sleepsUntilMs = Number.NEGATIVE_INFINITY

  const schedule = (worker: Worker, dueMs: number) => {
    due.set(worker.key, dueMs)
    if (dueMs < sleepsUntilMs) wake.ring()
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

  const tick = (worker: Worker, dueMs: number) => {
    const watched = pods.get(worker.podUID)
    if (watched === undefined) return
    if (worker.asking) {
      worker.isOverdue = true
      return
    }
    const rules = rulesOf(worker.probe)
    const found = watched.newest.get(worker.container.name)
    if (found === undefined || !isRunning(found)) return // scheduled again when its next start is observed
    const { turn, state } = probeTurn(worker.state, pods.factsOf(worker, found, watched), rules)
    change(worker, state)
    if (turn === 'end' || state.onHold) return
    const nowMs = clock.monotonicMs()
    const isTooEarly = turn === 'wait' && dueMs > nowMs
    schedule(worker, isTooEarly ? dueMs : nowMs + rules.periodMs)
    if (turn === 'ask') probe(worker, watched, found.id)
  }

  const probe = (worker: Worker, { pod, podIP }: WatchedPod, containerID: string) => {
    const target = targetFor(worker, podIP)
    if (target === undefined) return recordProblem(needs, worker, pod)
    const rules = rulesOf(worker.probe)
    const begunMs = clock.monotonicMs()
    worker.asking = true
    worker.isOverdue = false
    const one: Promise<void> = runProbe(needs, target, containerID, rules.timeoutMs, stopped.signal).then((answer) => {
      running.delete(one)
      worker.asking = false
      // It took longer than its period. The next one begins at once, as with the kubelet's ticker (prober/worker.go, run).
      if (worker.isOverdue) schedule(worker, clock.monotonicMs())
      worker.counts = countProbe(worker.counts, answer.result, clock.monotonicMs() - begunMs)
      recordFailure(needs, worker, pod, answer)
      change(worker, afterAnswer(worker.state, containerID, answer.result, rules))
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
      for (const [worker, found] of started ?? [])
        schedule(worker, firstDueMs(worker, pods.startedAtMs(found.id), clock.monotonicMs(), random()))
    },
    forget,
    vitals: pods.vitals,
    counts: pods.counts,
    unknownForMs: pods.unknownForMs,
    async run(signal) {
      while (!signal.aborted) {
        for (const { key, dueMs } of takeDue(due, pods, clock.monotonicMs())) {
          const worker = pods.worker(key)
          if (worker !== undefined) tick(worker, dueMs)
        }
        const nowMs = clock.monotonicMs()
        const restMs = waitMs(due.nextMs(), nowMs)
        sleepsUntilMs = nowMs + restMs
        await wake.sleep(restMs, signal)
        sleepsUntilMs = Number.NEGATIVE_INFINITY
      }
      stopped.abort()
      await Promise.race([Promise.all(running), clock.sleep(1_000)])
    },
  }
}

/** Startup and readiness are probed at once; liveness within its first period. `startedMs`: of the container, if it is known. */
function firstDueMs({ probe, kind }: Worker, startedMs: number | undefined, nowMs: number, random: number): number {
  const { initialDelayMs, periodMs } = rulesOf(probe)
  const spread = kind === 'liveness' ? random * periodMs : 0
  return Math.max(nowMs + spread, (startedMs ?? nowMs) + initialDelayMs)
}

type Due = { readonly key: string; readonly dueMs: number }

/** Those that are due, and the next ones if they are due soon. */
function takeDue(due: DueTimes, pods: ProbedPods, nowMs: number): readonly Due[] {
  const taken = due.take(nowMs).map((key): Due => ({ key, dueMs: nowMs }))
  if (taken.length === 0) return taken
  for (let next = due.next(); next !== undefined && taken.length < mostTogether; next = due.next()) {
    const worker = pods.worker(next.key)
    if (worker === undefined || next.dueMs - nowMs > earlyMs(worker.probe)) break
    due.delete(next.key)
    taken.push(next)
  }
  return taken
}

/** The same object until something of it changes: what is prepared for it is used again. */
function targetFor(worker: Worker, podIP: string | undefined): Target | undefined {
  const { probe, container, last } = worker
  if (last?.probe === probe && last.container === container && last.podIP === podIP) return last.target
  const target = probeTargetOf(probe, container, podIP)
  worker.last = { probe, container, podIP, target }
  return target
}

function earlyMs(probe: Probe): number {
  if (probe.exec !== undefined) return 0
  return Math.min(mostEarlyMs, rulesOf(probe).periodMs * earlyShare)
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

/** The probe cannot be tried: its port has no number. Once, as the pod does not change by itself. */
function recordProblem({ recordEvent }: ProberNeeds, worker: Worker, pod: Pod): void {
  const problem = portProblem(worker.probe, worker.container)
  if (problem === undefined || worker.lastFailure === problem) return
  worker.lastFailure = problem
  recordEvent(pod, unhealthy(worker, `errored: ${problem}`))
}

/** Once for consecutive failures or warnings, and again for another message: each Event is a message to the controller. */
function recordFailure({ recordEvent }: ProberNeeds, worker: Worker, pod: Pod, answer: ProbeAnswer): void {
  const { result, message, isWarning } = answer
  const text = result === 'failure' || isWarning ? `${result} ${message}` : ''
  if (result === 'unknown' || worker.lastFailure === text) return
  worker.lastFailure = text
  if (isWarning) recordEvent(pod, { ...unhealthy(worker, `warning: ${message}`), reason: 'ProbeWarning' })
  else if (result === 'failure') recordEvent(pod, unhealthy(worker, `failed: ${message}`))
}

function unhealthy({ kind, container }: Worker, what: string): PodEvent {
  const name = `${kind[0]?.toUpperCase()}${kind.slice(1)}`
  return { type: 'Warning', reason: 'Unhealthy', message: `${name} probe ${what}`, containerName: container.name }
}

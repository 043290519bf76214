/**
 * Probes every container that has probes, each at its own period, and reports changed results
 * (pkg/kubelet/prober/prober_manager.go).
 */
import { setMaxListeners } from 'node:events'
import type { Container, Pod, Probe } from '../../../api/pod.ts'
import { rung } from '../../../daemon/alarm.ts'
import type { Clock } from '../../../daemon/clock.ts'
import { dueTimes, waitMs } from '../../../daemon/due-times.ts'
import type { Log } from '../../../daemon/log.ts'
import { containersOf, isRunning, restartPolicyFor, sortContainers } from '../record/pod-containers.ts'
import type { PodEvent } from '../record/pod-events.ts'
import type { Vital, Vitals } from '../record/pod-record.ts'
import { elapsedMs, systemTime, type TrustedTime } from '../record/trusted-time.ts'
import type { ContainerRuntime, RuntimeContainer } from '../runtime/runtime.ts'
import {
  adoptContainer,
  afterAnswer,
  newProbe,
  type ProbedContainer,
  type ProbeKind,
  type ProbeState,
  probeKinds,
  probeTurn,
  rulesOf,
} from './probe-worker.ts'
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
  /** A container of this pod is ready, started or ill, and was not before; or the other way round. */
  readonly changed: (podUID: string) => void
}

export type ProbedPod = {
  readonly pod: Pod
  readonly containers: readonly RuntimeContainer[]
  readonly podIP: string | undefined
  readonly leaving: boolean
}

export interface Prober {
  /** The pod as it was just found. */
  observe(podUID: string, probed: ProbedPod): void
  /** The pod is over, or gone. */
  forget(podUID: string): void
  vitals(podUID: string): Vitals
  /**
   * How long to wait before the pod's status is reported, 0 in general: containers that ran before this agent started have
   * no result until they are probed, and their last reported status still holds.
   */
  unknownForMs(podUID: string): number
  run(signal: AbortSignal): Promise<void>
}

type Worker = {
  readonly key: string
  readonly podUID: string
  readonly container: Container
  readonly kind: ProbeKind
  readonly probe: Probe
  state: ProbeState
  asking: boolean
  lastFailure: string
}

type Watched = ProbedPod & {
  readonly workers: readonly Worker[]
  /** By container name. */
  readonly newest: ReadonlyMap<string, RuntimeContainer>
}

/** A new agent has probed every container once by then. */
const firstAnswersMs = 5_000

export function prober(needs: ProberNeeds): Prober {
  const { runtime, network, clock, date = systemTime(clock), random, log, recordEvent, changed } = needs
  const pods = new Map<string, Watched>()
  const due = dueTimes()
  /** By container id, on the monotonic clock: dates may jump. */
  const startedAtMs = new Map<string, number>()
  const bornMs = clock.monotonicMs()
  const asked = new Set<Promise<void>>()
  const stopped = new AbortController()
  setMaxListeners(0, stopped.signal) // every probe under way listens until it is answered: many is no leak
  let wake: () => void = () => undefined

  const schedule = (worker: Worker, dueMs: number) => {
    due.set(worker.key, dueMs)
    wake()
  }

  /** A start and readiness are looked for at once; for life a container is asked within its first period. */
  const firstDueMs = (worker: Worker, container: RuntimeContainer): number => {
    const nowMs = clock.monotonicMs()
    const { initialDelayMs, periodMs } = rulesOf(worker.probe)
    const since = startedAtMs.get(container.id) ?? nowMs
    const spread = worker.kind === 'liveness' ? random() * periodMs : 0
    return Math.max(nowMs + spread, since + initialDelayMs)
  }

  const change = (worker: Worker, state: ProbeState) => {
    const before = worker.state
    worker.state = state
    if (before.result === state.result && before.containerID === state.containerID) return
    if (worker.kind === 'startup' && state.result === 'success') askAtOnce(worker.podUID, worker.container.name)
    changed(worker.podUID)
  }

  /** It has started: its readiness is probed now, not at the next period. */
  const askAtOnce = (podUID: string, name: string) => {
    const waiting = pods.get(podUID)?.workers.filter((one) => one.container.name === name && one.kind === 'readiness')
    for (const worker of waiting ?? []) schedule(worker, clock.monotonicMs())
  }

  const isStarted = (podUID: string, container: Container, id: string) => {
    const startup = pods
      .get(podUID)
      ?.workers.find((one) => one.kind === 'startup' && one.container.name === container.name)
    return startup === undefined || (startup.state.containerID === id && startup.state.result === 'success')
  }

  const factsOf = ({ podUID, container }: Worker, found: RuntimeContainer, watched: Watched): ProbedContainer => ({
    id: found.id,
    running: isRunning(found),
    runsForMs: clock.monotonicMs() - (startedAtMs.get(found.id) ?? clock.monotonicMs()),
    started: isStarted(podUID, container, found.id),
    mayRestart: restartPolicyFor(watched.pod, container) !== 'Never',
    podLeaving: watched.leaving,
  })

  const tick = (worker: Worker) => {
    const watched = pods.get(worker.podUID)
    if (watched === undefined || worker.asking) return
    const rules = rulesOf(worker.probe)
    const found = watched.newest.get(worker.container.name)
    if (found === undefined || !isRunning(found)) return // its next start is seen, and looked at then
    const { turn, state } = probeTurn(worker.state, factsOf(worker, found, watched), rules)
    change(worker, state)
    if (turn === 'end' || state.onHold) return
    schedule(worker, clock.monotonicMs() + rules.periodMs)
    if (turn !== 'ask') return
    const target = targetOf(worker.probe, worker.container, watched.podIP)
    if (target === undefined) return
    worker.asking = true
    const one: Promise<void> = ask(target, found.id, rules.timeoutMs).then((answer) => {
      asked.delete(one)
      worker.asking = false
      recordFailure(worker, watched.pod, answer)
      change(worker, afterAnswer(worker.state, found.id, answer.result, rules))
    })
    asked.add(one)
  }

  const ask = async (target: Target, id: string, timeoutMs: number): Promise<ProbeAnswer> => {
    if (target.kind !== 'exec') return network.ask(target, timeoutMs, stopped.signal)
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

  /** Once a run of failures, and again when it fails in other words: each is a message to the controller. */
  const recordFailure = (worker: Worker, pod: Pod, { result, message }: ProbeAnswer) => {
    const word = result === 'failure' ? `failure ${message}` : ''
    if (result === 'unknown' || worker.lastFailure === word) return
    worker.lastFailure = word
    if (result === 'success') return
    const name = `${worker.kind[0]?.toUpperCase()}${worker.kind.slice(1)}`
    recordEvent(pod, {
      type: 'Warning',
      reason: 'Unhealthy',
      message: `${name} probe failed: ${message}`,
      containerName: worker.container.name,
    })
  }

  const workersOf = (podUID: string, pod: Pod, before: readonly Worker[]): readonly Worker[] =>
    containersOf(pod).flatMap((container) =>
      probeKinds.flatMap((kind) => {
        const probe = container[`${kind}Probe`]
        if (probe === undefined) return []
        const key = `${podUID}/${container.name}/${kind}`
        const known = before.find((one) => one.key === key)
        if (known !== undefined) return Object.assign(known, { container, probe })
        return { key, podUID, container, kind, probe, state: newProbe(kind), asking: false, lastFailure: '' }
      }),
    )

  const forget = (podUID: string) => {
    const watched = pods.get(podUID)
    if (watched === undefined) return
    pods.delete(podUID)
    for (const { key } of watched.workers) due.delete(key)
    for (const { id } of watched.containers) startedAtMs.delete(id)
  }

  return {
    observe(podUID, probed) {
      const before = pods.get(podUID)
      const workers = workersOf(podUID, probed.pod, before?.workers ?? [])
      if (workers.length === 0) return forget(podUID)
      const { histories } = sortContainers(probed.containers)
      const newest = new Map([...histories].flatMap(([name, [first]]) => (first === undefined ? [] : [[name, first]])))
      for (const { id } of before?.containers ?? []) {
        if (!probed.containers.some((one) => one.id === id)) startedAtMs.delete(id)
      }
      for (const one of newest.values()) {
        if (startedAtMs.has(one.id) || !isRunning(one) || one.startedAt === undefined) continue
        // While the date is unknown it counts as started now.
        startedAtMs.set(one.id, clock.monotonicMs() - (elapsedMs(one.startedAt, date, true) ?? 0))
      }
      pods.set(podUID, { ...probed, workers, newest })
      for (const worker of workers) {
        const found = newest.get(worker.container.name)
        if (found === undefined || !isRunning(found) || worker.state.containerID === found.id) continue
        worker.state = adoptContainer(worker.state, found.id)
        schedule(worker, firstDueMs(worker, found))
      }
    },
    forget,
    vitals(podUID) {
      const { workers = [], newest } = pods.get(podUID) ?? {}
      const vitals = new Map<string, Vital>()
      for (const [name, { id }] of newest ?? []) {
        const own = workers.filter(({ container }) => container.name === name)
        if (own.length > 0) vitals.set(id, vitalOf(id, own))
      }
      return vitals
    },
    unknownForMs(podUID) {
      const { workers = [], newest } = pods.get(podUID) ?? {}
      const leftMs = bornMs + firstAnswersMs - clock.monotonicMs()
      if (leftMs <= 0) return 0
      const isUnknown = ({ kind, state, container }: Worker) => {
        const found = newest?.get(container.name)
        const older = found !== undefined && isRunning(found) && (startedAtMs.get(found.id) ?? bornMs) < bornMs
        return older && kind !== 'liveness' && state.answer === undefined
      }
      return workers.some(isUnknown) ? leftMs : 0
    },
    async run(signal) {
      const keys = (key: string) => {
        const podUID = key.slice(0, key.indexOf('/'))
        return pods.get(podUID)?.workers.find((worker) => worker.key === key)
      }
      signal.addEventListener('abort', () => wake(), { once: true })
      while (!signal.aborted) {
        for (const key of due.take(clock.monotonicMs())) {
          const worker = keys(key)
          if (worker !== undefined) tick(worker)
        }
        const woken = new AbortController()
        wake = () => woken.abort(rung)
        await clock.sleep(waitMs(due.nextMs(), clock.monotonicMs()), woken.signal)
      }
      stopped.abort()
      await Promise.race([Promise.all(asked), clock.sleep(1_000)])
    },
  }
}

function vitalOf(id: string, workers: readonly Worker[]): Vital {
  const of = (wanted: ProbeKind) => workers.find(({ kind }) => kind === wanted)
  const resultOf = (worker: Worker) => adoptContainer(worker.state, id).result
  const [startup, liveness, readiness] = [of('startup'), of('liveness'), of('readiness')]
  const started = startup === undefined || resultOf(startup) === 'success'
  const ill = [startup, liveness].find((worker) => worker !== undefined && resultOf(worker) === 'failure')
  return {
    started,
    ready: started && (readiness === undefined || resultOf(readiness) === 'success'),
    ...(ill === undefined ? {} : { failed: failureOf(ill) }),
  }
}

function failureOf({ container, kind, probe }: Worker): NonNullable<Vital['failed']> {
  const graceSeconds = probe.terminationGracePeriodSeconds
  const why = `Container ${container.name} failed ${kind} probe, will be restarted`
  return graceSeconds === undefined ? { why } : { why, graceSeconds }
}

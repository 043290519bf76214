/** The pods that the prober watches: their probes, and the containers these apply to. */
import type { Container, Pod, Probe } from '../../../api/pod.ts'
import type { Clock } from '../../../daemon/clock.ts'
import type { RuntimeContainer } from '../../runtime/runtime.ts'
import { containersOf, isRunning, isSidecar, restartPolicyFor, sortContainers } from '../record/pod-containers.ts'
import type { Vital, Vitals } from '../record/pod-record.ts'
import { elapsedMs, type TrustedTime } from '../record/trusted-time.ts'
import { type CountedProbe, nothingProbed, type ProbeCounts } from './probe-counts.ts'
import {
  adoptContainer,
  newProbe,
  type ProbedContainer,
  type ProbeKind,
  type ProbeState,
  probeKinds,
} from './probe-worker.ts'
import type { Target } from './targets.ts'

export type ProbedPod = {
  readonly pod: Pod
  readonly containers: readonly RuntimeContainer[]
  readonly podIP: string | undefined
  readonly leaving: boolean
}

/** One probe of one container, with its results. */
export type Worker = {
  readonly key: string
  readonly podUID: string
  readonly container: Container
  readonly kind: ProbeKind
  readonly probe: Probe
  state: ProbeState
  asking: boolean
  /** It came due while it was asked. */
  isOverdue: boolean
  /** What was asked last, and what it was made of. */
  last: WorkerTarget | undefined
  lastFailure: string
  counts: ProbeCounts
}

type WorkerTarget = {
  readonly probe: Probe
  readonly container: Container
  readonly podIP: string | undefined
  readonly target: Target | undefined
}

/** With its probes, as last observed. */
export type WatchedPod = ProbedPod & {
  readonly workers: readonly Worker[]
  /** By container name. */
  readonly newest: ReadonlyMap<string, RuntimeContainer>
}

export interface ProbedPods {
  get(podUID: string): WatchedPod | undefined
  /** By its key. */
  worker(key: string): Worker | undefined
  /** Returns the probes of the pod whose container was started, or found running, since the last call; undefined: it has no probes. */
  observe(podUID: string, probed: ProbedPod): readonly (readonly [Worker, RuntimeContainer])[] | undefined
  /** Returns the keys of its probes. */
  forget(podUID: string): readonly string[]
  /** Monotonic milliseconds; undefined for a container that was never found running. */
  startedAtMs(containerID: string): number | undefined
  factsOf(worker: Worker, found: RuntimeContainer, watched: WatchedPod): ProbedContainer
  vitals(podUID: string): Vitals
  counts(): readonly CountedProbe[]
  /** See `Prober`. */
  unknownForMs(podUID: string): number
}

/** A new agent has probed every container once by then. */
const firstResultsMs = 5_000

export function probedPods(clock: Clock, date: TrustedTime): ProbedPods {
  const pods = new Map<string, WatchedPod>()
  /** By container id, on the monotonic clock: dates may jump. */
  const startedAtMs = new Map<string, number>()
  const bornMs = clock.monotonicMs()

  const rememberStart = (found: RuntimeContainer) => {
    const { id, startedAt } = found
    if (startedAtMs.has(id) || !isRunning(found) || startedAt === undefined) return
    // While the date is unknown it counts as started now.
    startedAtMs.set(id, clock.monotonicMs() - (elapsedMs(startedAt, date, true) ?? 0))
  }

  const isStarted = (podUID: string, container: Container, id: string) => {
    const startup = pods
      .get(podUID)
      ?.workers.find((one) => one.kind === 'startup' && one.container.name === container.name)
    return startup === undefined || (startup.state.containerID === id && startup.state.result === 'success')
  }

  return {
    get: (podUID) => pods.get(podUID),
    worker(key) {
      const podUID = key.slice(0, key.indexOf('/'))
      return pods.get(podUID)?.workers.find((worker) => worker.key === key)
    },
    observe(podUID, probed) {
      const before = pods.get(podUID)
      const workers = workersOf(podUID, probed.pod, before?.workers ?? [])
      if (workers.length === 0) return undefined
      const { histories } = sortContainers(probed.containers)
      const newest = new Map([...histories].flatMap(([name, [first]]) => (first === undefined ? [] : [[name, first]])))
      const ids = new Set(probed.containers.map(({ id }) => id))
      for (const { id } of before?.containers ?? []) if (!ids.has(id)) startedAtMs.delete(id)
      for (const one of newest.values()) rememberStart(one)
      pods.set(podUID, { ...probed, workers, newest })
      return workers.flatMap((worker): [Worker, RuntimeContainer][] => {
        const found = newest.get(worker.container.name)
        if (found === undefined || !isRunning(found) || worker.state.containerID === found.id) return []
        worker.state = adoptContainer(worker.state, found.id)
        return [[worker, found]]
      })
    },
    forget(podUID) {
      const watched = pods.get(podUID)
      pods.delete(podUID)
      for (const { id } of watched?.containers ?? []) startedAtMs.delete(id)
      return (watched?.workers ?? []).map(({ key }) => key)
    },
    startedAtMs: (containerID) => startedAtMs.get(containerID),
    factsOf: ({ podUID, container }, found, watched) => ({
      id: found.id,
      running: isRunning(found),
      runsForMs: clock.monotonicMs() - (startedAtMs.get(found.id) ?? clock.monotonicMs()),
      started: isStarted(podUID, container, found.id),
      mayRestart: restartPolicyFor(watched.pod, container) !== 'Never',
      podLeaving: watched.leaving,
    }),
    vitals(podUID) {
      const { workers = [], newest, pod } = pods.get(podUID) ?? {}
      const vitals = new Map<string, Vital>()
      for (const [name, { id }] of newest ?? []) {
        const own = workers.filter(({ container }) => container.name === name)
        if (pod !== undefined && own.length > 0) vitals.set(id, vitalOf(id, own, pod))
      }
      return vitals
    },
    counts: () =>
      [...pods.values()].flatMap(({ pod: { metadata }, workers }) =>
        workers.map(({ kind, podUID, container, counts }) => {
          const { name: pod = '', namespace = '' } = metadata
          return { kind, container: container.name, pod, namespace, podUID, ...counts }
        }),
      ),
    unknownForMs(podUID) {
      const { workers = [], newest } = pods.get(podUID) ?? {}
      const leftMs = bornMs + firstResultsMs - clock.monotonicMs()
      if (leftMs <= 0) return 0
      const isUnknown = ({ kind, state, container }: Worker) => {
        const found = newest?.get(container.name)
        const older = found !== undefined && isRunning(found) && (startedAtMs.get(found.id) ?? bornMs) < bornMs
        return older && kind !== 'liveness' && state.answer === undefined
      }
      return workers.some(isUnknown) ? leftMs : 0
    },
  }
}

function workersOf(podUID: string, pod: Pod, before: readonly Worker[]): readonly Worker[] {
  return containersOf(pod).flatMap((container) =>
    probeKinds.flatMap((kind) => {
      const probe = container[`${kind}Probe`]
      if (probe === undefined) return []
      const key = `${podUID}/${container.name}/${kind}`
      const known = before.find((one) => one.key === key)
      if (known !== undefined) return Object.assign(known, { container, probe })
      return {
        key,
        podUID,
        container,
        kind,
        probe,
        state: newProbe(kind),
        asking: false,
        isOverdue: false,
        last: undefined,
        lastFailure: '',
        counts: nothingProbed,
      }
    }),
  )
}

function vitalOf(id: string, workers: readonly Worker[], pod: Pod): Vital {
  const of = (wanted: ProbeKind) => workers.find(({ kind }) => kind === wanted)
  const resultOf = (worker: Worker) => adoptContainer(worker.state, id).result
  const [startup, liveness, readiness] = [of('startup'), of('liveness'), of('readiness')]
  const started = startup === undefined || resultOf(startup) === 'success'
  const ill = [startup, liveness].find((worker) => worker !== undefined && resultOf(worker) === 'failure')
  return {
    started,
    ready: started && (readiness === undefined || resultOf(readiness) === 'success'),
    ...(ill === undefined ? {} : { failed: failureOf(ill, pod) }),
  }
}

/** In the words of computePodActions and computeInitContainerActions (pkg/kubelet/kuberuntime). */
function failureOf({ container, kind, probe }: Worker, pod: Pod): NonNullable<Vital['failed']> {
  const graceSeconds = probe.terminationGracePeriodSeconds
  const failed = `ontainer ${container.name} failed ${kind} probe`
  const isRestarted = restartPolicyFor(pod, container) !== 'Never'
  const why = isSidecar(container) ? `Init c${failed}` : `C${failed}${isRestarted ? ', will be restarted' : ''}`
  return { why, byProbe: true, ...(graceSeconds !== undefined && { graceSeconds }) }
}

/** Loop: a pending pod → a binding, room made for it, or the reason why there is none. */
import type { PodDisruptionBudget } from '../../api/pod-disruption-budget.ts'
import { alarm } from '../../daemon/alarm.ts'
import { waitMs } from '../../daemon/due-times.ts'
import { messageOf } from '../../daemon/errors.ts'
import { inParallel } from '../../daemon/in-parallel.ts'
import type { MetricsRegistry } from '../../daemon/metrics-registry.ts'
import { type Loop, runLoops } from '../../daemon/run.ts'
import { type Steps, slices } from '../../daemon/watchdog/steps.ts'
import type { RestoreHold } from '../store/checkpoints/restore-hold.ts'
import { type InformerNeeds, informer, keyText } from '../store/informer.ts'
import type { StoredPod } from '../store/store.ts'
import { type Cluster, cluster } from './cluster.ts'
import { type Binding, type Decision, decide } from './decision.ts'
import { type ClusterChange, mayFitAfter } from './hints.ts'
import type { KeyedPod } from './nominations.ts'
import { type DisruptionBudget, readBudget } from './preemption.ts'
import { type ObservationGate, observationGate, type SchedulerCache, schedulerCache } from './scheduler-cache.ts'
import { type AttemptResult, type SchedulerMetrics, schedulerMetrics } from './scheduler-metrics.ts'
import { type SchedulerWriteNeeds, type SchedulerWrites, schedulerWrites } from './scheduler-writes.ts'
import { type SchedulingQueue, schedulingQueue } from './scheduling-queue.ts'
import type { CsiObservers } from './volumes/csi-observers.ts'
import { directedPods, givenVolumes } from './volumes/directed-pods.ts'
import { reservationState } from './volumes/reservation-state.ts'
import { longestWaitForVolumesMs, type Reservations, reservations } from './volumes/reservations.ts'
import { type KnownVolume, usesClaims, type VolumeChoice } from './volumes/volume-cache.ts'

export type SchedulerNeeds = SchedulerWriteNeeds & {
  readonly random: () => number
  /** The pods that wait after a restore; undefined: the store was not restored. */
  readonly hold?: RestoreHold
  /** undefined: nothing is counted. */
  readonly registry?: MetricsRegistry
}

/** Decisions are quick and writing is slow: this many are written at a time. */
const writesAtOnce = 128
/** Decisions are written after this time; in a large fleet one decision takes milliseconds. */
const decidesForMs = 20
/** Everything else in the process waits while we decide. One step takes up to some milliseconds more. */
const sliceMs = 8
const never = Number.POSITIVE_INFINITY

export function scheduler(needs: SchedulerNeeds): Loop {
  const metrics = needs.registry && schedulerMetrics(needs.registry)
  return { name: 'scheduler', run: (signal) => runScheduler(needs, metrics, signal) }
}

/** The volumes that were chosen for a pod were not bound in time, or not there: it is decided on again. */
type Reopening = KeyedPod & { readonly decided: 'again'; readonly message: string }
type Attempt = { readonly decision: Decision | Reopening; readonly beganMs: number }

async function runScheduler(
  needs: SchedulerNeeds,
  metrics: SchedulerMetrics | undefined,
  signal: AbortSignal,
): Promise<void> {
  const { clock, log, random, hold } = needs
  const write = schedulerWrites(needs)
  const known = cluster()
  const queue = schedulingQueue()
  metrics?.watch(queue.counts)
  const bell = alarm(clock)
  const [reserved, directed] = [reservations(), directedPods()]
  const isHeld = (pod: StoredPod) => hold?.holdsPod(pod) === true
  const cache = schedulerCache(known, queue, {
    wake: () => bell.ring(),
    isHeld,
    ...{ reserved, directed },
  })

  const gate = observationGate()
  const work = slices(sliceMs, clock)
  /** What is decided holds for the cluster as it was at the beginning: changes are observed afterwards. */
  const undisturbed = <T>(steps: Steps<T>) => gate.closedDuring(() => work.run(steps))

  const observePod = gate.through(cache.observePod)
  const observeVolume = gate.through<KnownVolume>((present, previous) =>
    cache.observeVolume(present && unlessHeld(present, hold), previous),
  )
  const budgets = informer(needs, 'poddisruptionbudgets', () => undefined)
  const followed = {
    nodes: informer(needs, 'nodes', gate.through(cache.observeNode)),
    namespaces: informer(needs, 'namespaces', gate.through(cache.observeNamespace)),
    pods: informer(needs, 'pods', observePod),
    claims: informer(needs, 'persistentvolumeclaims', gate.through(cache.observeClaim)),
    volumes: informer(needs, 'persistentvolumes', observeVolume),
    classes: informer(needs, 'storageclasses', gate.through(cache.observeStorageClass)),
    ...csiInformers(needs, cache, gate),
    budgets,
  }
  hold?.onRelease(() => {
    for (const volume of followed.volumes.all()) if (!volume.spec?.claimRef) observeVolume(volume, undefined)
    for (const pod of followed.pods.all()) {
      if (!pod.spec.nodeName) observePod(pod, undefined)
      else if (usesClaims(pod)) directed.add(keyText(pod.metadata))
    }
  })

  const direct = givenVolumes({ known, directed, isHeld, write, clock, log })
  const carryOut = carryingOut({ write, cache, queue, reserved, clock, log })
  const decideAndWrite = async () => {
    await Promise.all(Object.values(followed).map(({ listed }) => listed))
    while (!signal.aborted) {
      work.begin()
      await undisturbed(wakeWhatMayFit(cache.takeChanges(), queue, known, clock.monotonicMs()))
      const attempts = [...concluded(known, reserved, clock.monotonicMs()), ...(await decideSome())]
      const orders = await undisturbed(direct.decide())
      await Promise.all([
        inParallel(attempts, writesAtOnce, async (attempt) => {
          const result = await carryOut(attempt)
          if (result !== 'reserved') metrics?.attempted(result, clock.monotonicMs() - attempt.beganMs)
        }),
        inParallel(orders, writesAtOnce, direct.carryOut),
      ])
      if (attempts.length + orders.length > 0) continue
      const nowMs = clock.monotonicMs()
      const nextMs = Math.min(queue.nextMs() ?? never, reserved.nextMs(nowMs) ?? never, directed.nextMs() ?? never)
      await bell.sleep(waitMs(nextMs, nowMs), signal)
    }
  }

  /** Each decision reckons with those before it, though none is written yet. */
  const decideSome = async (): Promise<readonly Attempt[]> => {
    const attempts: Attempt[] = []
    const untilMs = clock.monotonicMs() + decidesForMs
    while (attempts.length < writesAtOnce && clock.monotonicMs() <= untilMs) {
      const beganMs = clock.monotonicMs()
      const next = queue.next(beganMs)
      if (next === undefined) break
      try {
        attempts.push({ decision: await undisturbed(attemptOn(next)), beganMs })
      } catch (error) {
        // One pod, or one object that matters to it, must not end the scheduling of all others.
        log.error('Cannot schedule the pod', { pod: next.key, error })
        queue.retry(next.key, clock.monotonicMs())
      }
    }
    return attempts
  }

  function* attemptOn(next: KeyedPod): Steps<Decision> {
    const decision = yield* decide(next, known, { budgets: () => readAll(budgets.all()), random })
    if (decision.decided === 'bind') cache.assume(next.key)
    else queue.failed(next.key, decision.refusedBy, clock.monotonicMs())
    if (decision.decided === 'wait' && decision.withdraws) cache.dropNomination(next.key, next.pod)
    return decision
  }

  const loops = Object.entries(followed).map(([name, { run }]) => ({ name, run }))
  await runLoops([...loops, { name: 'work', run: decideAndWrite }], signal, log)
}

type CarryOutNeeds = Pick<SchedulerWriteNeeds, 'clock' | 'log'> & {
  readonly write: SchedulerWrites
  readonly cache: SchedulerCache
  readonly queue: SchedulingQueue
  readonly reserved: Reservations
}

type Outcome = AttemptResult | 'reserved'

/** Writes what was decided. 'error': it was not written, because the pod has changed or the store failed. */
function carryingOut({ write, cache, queue, reserved, clock, log }: CarryOutNeeds) {
  const reopen = async ({ key, pod }: KeyedPod, message: string): Promise<Outcome> => {
    cache.undo({ key })
    queue.retry(key, clock.monotonicMs())
    await write.explainFailure(pod, `running PreBind plugin "VolumeBinding": ${message}`)
    return 'error'
  }

  /** The pod is not bound before its volumes are, which may take minutes. */
  const reserve = async ({ key, pod, nodeName }: Binding, volumes: VolumeChoice, beganMs: number): Promise<Outcome> => {
    let versions: ReadonlyMap<string, number>
    try {
      versions = await write.prepareVolumes(volumes, nodeName)
    } catch (error) {
      return reopen({ key, pod }, messageOf(error))
    }
    const untilMs = clock.monotonicMs() + longestWaitForVolumesMs
    // The pod may have been deleted meanwhile.
    if (cache.isAssumed(key)) reserved.add({ key, pod, nodeName, volumes, versions, beganMs, untilMs })
    return 'reserved'
  }

  return async ({ decision, beganMs }: Attempt): Promise<Outcome> => {
    const { key, pod } = decision
    try {
      switch (decision.decided) {
        case 'bind':
          if (decision.volumes !== undefined) return await reserve(decision, decision.volumes, beganMs)
          if (!(await write.bind(pod, decision.nodeName))) {
            cache.undo(decision)
            return 'error'
          }
          queue.remove(key)
          return 'scheduled'
        case 'preempt':
          await makeRoom(decision, write)
          await write.explain(pod, decision.message, decision.nodeName)
          return 'unschedulable'
        case 'wait':
          await write.explain(pod, decision.message, decision.withdraws ? '' : undefined)
          return 'unschedulable'
        case 'again':
          return await reopen(decision, decision.message)
      }
    } catch (error) {
      log.warn('Pod not scheduled', { pod: key, error })
      cache.undo(decision)
      queue.retry(key, clock.monotonicMs())
      return 'error'
    }
  }
}

function csiInformers(needs: InformerNeeds, observers: CsiObservers, { through }: ObservationGate) {
  return {
    drivers: informer(needs, 'csidrivers', through(observers.observeCsiDriver)),
    csiNodes: informer(needs, 'csinodes', through(observers.observeCsiNode)),
    capacities: informer(needs, 'csistoragecapacities', through(observers.observeCapacity)),
  }
}

/** Pods whose wait for their volumes is over. */
function concluded(known: Cluster, reserved: Reservations, nowMs: number): readonly Attempt[] {
  return reserved.take(nowMs, writesAtOnce).flatMap((reservation): readonly Attempt[] => {
    const { key, pod, nodeName, beganMs } = reservation
    const result = reservationState(reservation, known.volumes.stored, known.node(nodeName), nowMs)
    if (result.state === 'waiting') return []
    reserved.remove(key)
    const decision: Decision | Reopening =
      result.state === 'ready'
        ? { decided: 'bind', key, pod, nodeName, volumes: undefined }
        : { decided: 'again', key, pod, message: result.message }
    return [{ decision, beganMs }]
  })
}

function* wakeWhatMayFit(
  changes: readonly ClusterChange[],
  queue: SchedulingQueue,
  known: Cluster,
  nowMs: number,
): Steps<void> {
  if (changes.length > 0) yield* queue.wake((waiting) => mayFitAfter(waiting, changes, known), nowMs)
}

function* readAll(budgets: Iterable<PodDisruptionBudget>): Steps<readonly DisruptionBudget[]> {
  const read: DisruptionBudget[] = []
  for (const budget of budgets) {
    read.push(readBudget(budget))
    yield
  }
  return read
}

async function makeRoom(
  { pod, nodeName, victims, displaced }: Decision & { readonly decided: 'preempt' },
  write: SchedulerWrites,
): Promise<void> {
  await Promise.all([
    ...victims.map((victim) => write.evict(victim.pod, pod, nodeName)),
    ...displaced.map((other) => write.withdraw(other.pod)),
  ])
}

/** A free volume of a backup may have a claim that its node returns: until then no other claim gets it. */
function unlessHeld(volume: KnownVolume, hold: RestoreHold | undefined): KnownVolume {
  const isHeld = volume.spec?.claimRef === undefined && hold?.holdsUnbound(volume) === true
  return isHeld ? { ...volume, status: { ...volume.status, phase: 'Pending' } } : volume
}

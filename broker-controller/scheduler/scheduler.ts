/** Loop: a pending pod → a binding, room made for it, or the reason why there is none. */
import type { PodDisruptionBudget } from '../../api/pod-disruption-budget.ts'
import { alarm } from '../../daemon/alarm.ts'
import { waitMs } from '../../daemon/due-times.ts'
import { inParallel } from '../../daemon/in-parallel.ts'
import type { MetricsRegistry } from '../../daemon/metrics-registry.ts'
import { type Loop, runLoops } from '../../daemon/run.ts'
import { type Steps, slices } from '../../daemon/watchdog/steps.ts'
import type { RestoreHold } from '../store/checkpoints/restore-hold.ts'
import { informer } from '../store/informer.ts'
import { type Cluster, cluster } from './cluster.ts'
import { type Decision, decide } from './decision.ts'
import { type ClusterChange, mayFitAfter } from './hints.ts'
import type { KeyedPod } from './nominations.ts'
import { type DisruptionBudget, readBudget } from './preemption.ts'
import { observationGate, schedulerCache } from './scheduler-cache.ts'
import { type SchedulerMetrics, schedulerMetrics } from './scheduler-metrics.ts'
import { type SchedulerWriteNeeds, type SchedulerWrites, schedulerWrites } from './scheduler-writes.ts'
import { type SchedulingQueue, schedulingQueue } from './scheduling-queue.ts'

export type SchedulerNeeds = SchedulerWriteNeeds & {
  readonly random: () => number
  /** The pods that wait after a restore; undefined: the store was not restored. */
  readonly hold?: RestoreHold
  /** undefined: nothing is counted. */
  readonly registry?: MetricsRegistry
}

/** Decisions are quick and writing is slow: so many are written at a time. */
const writesAtOnce = 128
/** Decisions are written after this time; in a large fleet one decision takes milliseconds. */
const decidesForMs = 20
/** Everything else in the process waits while we decide. One step takes up to some milliseconds more. */
const sliceMs = 8

export function scheduler(needs: SchedulerNeeds): Loop {
  const metrics = needs.registry && schedulerMetrics(needs.registry)
  return { name: 'scheduler', run: (signal) => runScheduler(needs, metrics, signal) }
}

type Attempt = { readonly decision: Decision; readonly beganMs: number }

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
  const cache = schedulerCache(known, queue, { wake: () => bell.ring(), isHeld: (pod) => hold?.holdsPod(pod) === true })

  const gate = observationGate()
  const work = slices(sliceMs, clock)
  /** What is decided holds for the cluster as it was at the beginning: changes are observed afterwards. */
  const undisturbed = <T>(steps: Steps<T>) => gate.closedDuring(() => work.run(steps))

  const observePod = gate.through(cache.observePod)
  const nodes = informer(needs, 'nodes', gate.through(cache.observeNode))
  const namespaces = informer(needs, 'namespaces', gate.through(cache.observeNamespace))
  const pods = informer(needs, 'pods', observePod)
  const budgets = informer(needs, 'poddisruptionbudgets', () => undefined)
  hold?.onRelease(() => {
    for (const pod of pods.all()) if (!pod.spec.nodeName) observePod(pod, undefined)
  })

  const decideAndWrite = async () => {
    await Promise.all([nodes.listed, namespaces.listed, pods.listed, budgets.listed])
    while (!signal.aborted) {
      work.begin()
      await undisturbed(wakeWhatMayFit(cache.takeChanges(), queue, known, clock.monotonicMs()))
      const attempts = await decideSome()
      await inParallel(attempts, writesAtOnce, async ({ decision, beganMs }) => {
        const isDone = await carryOut(decision)
        const result = !isDone ? 'error' : decision.decided === 'bind' ? 'scheduled' : 'unschedulable'
        metrics?.attempted(result, clock.monotonicMs() - beganMs)
      })
      if (attempts.length === 0) await bell.sleep(waitMs(queue.nextMs(), clock.monotonicMs()), signal)
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
        log.error('Pod not decided on', { pod: next.key, error })
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

  /** False: it was not written, because the pod has changed or the store failed. */
  const carryOut = async (decision: Decision): Promise<boolean> => {
    const { key, pod } = decision
    try {
      switch (decision.decided) {
        case 'bind':
          if (!(await write.bind(pod, decision.nodeName))) {
            cache.undo(decision)
            return false
          }
          queue.remove(key)
          return true
        case 'preempt':
          await makeRoom(decision, write)
          await write.explain(pod, decision.message, decision.nodeName)
          return true
        case 'wait':
          await write.explain(pod, decision.message, decision.withdraws ? '' : undefined)
          return true
      }
    } catch (error) {
      log.warn('Pod not scheduled', { pod: key, error })
      cache.undo(decision)
      queue.retry(key, clock.monotonicMs())
      return false
    }
  }

  const followed = Object.entries({ nodes, namespaces, pods, budgets }).map(([name, { run }]) => ({ name, run }))
  await runLoops([...followed, { name: 'work', run: decideAndWrite }], signal, log)
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

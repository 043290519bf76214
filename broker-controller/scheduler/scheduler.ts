/** Loop: a pending pod → a binding, room made for it, or the reason why there is none. */
import { alarm } from '../../daemon/alarm.ts'
import { waitMs } from '../../daemon/due-times.ts'
import { inParallel } from '../../daemon/in-parallel.ts'
import { type Loop, runLoops } from '../../daemon/run.ts'
import type { RestoreHold } from '../store/checkpoints/restore-hold.ts'
import { informer } from '../store/informer.ts'
import { cluster } from './cluster.ts'
import { type Decision, decide } from './decision.ts'
import { mayFit } from './hints.ts'
import type { KeyedPod } from './nominations.ts'
import { readBudget } from './preemption.ts'
import { schedulerCache } from './scheduler-cache.ts'
import { type SchedulerWriteNeeds, schedulerWrites } from './scheduler-writes.ts'
import { schedulingQueue } from './scheduling-queue.ts'

export type SchedulerNeeds = SchedulerWriteNeeds & {
  readonly random: () => number
  /** The pods that wait after a restore; undefined: the store was not restored. */
  readonly hold?: RestoreHold
}

/** Decisions are quick and writing is slow: so many are written at a time. */
const writesAtOnce = 128
/** Everything else in the process waits while we decide; in a large fleet one decision takes milliseconds. */
const decidesForMs = 20

export function scheduler(needs: SchedulerNeeds): Loop {
  return { name: 'scheduler', run: (signal) => runScheduler(needs, signal) }
}

async function runScheduler(needs: SchedulerNeeds, signal: AbortSignal): Promise<void> {
  const { clock, log, random, hold } = needs
  const write = schedulerWrites(needs)
  const known = cluster()
  const queue = schedulingQueue()
  const bell = alarm(clock)
  const cache = schedulerCache(known, queue, { wake: () => bell.ring(), isHeld: (pod) => hold?.holdsPod(pod) === true })

  const nodes = informer(needs, 'nodes', cache.observeNode)
  const namespaces = informer(needs, 'namespaces', cache.observeNamespace)
  const pods = informer(needs, 'pods', cache.observePod)
  const budgets = informer(needs, 'poddisruptionbudgets', () => undefined)
  hold?.onRelease(() => {
    for (const pod of pods.all()) if (!pod.spec.nodeName) cache.observePod(pod, undefined)
  })

  const work = async () => {
    await Promise.all([nodes.listed, namespaces.listed, pods.listed, budgets.listed])
    while (!signal.aborted) {
      wakeWhatMayFit()
      const decisions = decideSome()
      await inParallel(decisions, writesAtOnce, carryOut)
      if (decisions.length === 0) await bell.sleep(waitMs(queue.nextMs(), clock.monotonicMs()), signal)
    }
  }

  const wakeWhatMayFit = () => {
    const changes = cache.takeChanges()
    if (changes.length === 0) return
    queue.wake((waiting) => changes.some((change) => mayFit(waiting, change, known)), clock.monotonicMs())
  }

  /** Each decision reckons with those before it, though none is written yet. */
  const decideSome = (): readonly Decision[] => {
    const decisions: Decision[] = []
    const untilMs = clock.monotonicMs() + decidesForMs
    while (decisions.length < writesAtOnce && clock.monotonicMs() <= untilMs) {
      const next = queue.next(clock.monotonicMs())
      if (next === undefined) break
      decisions.push(decideOn(next))
    }
    return decisions
  }

  const decideOn = (next: KeyedPod): Decision => {
    const decision = decide(next, known, { budgets: () => [...budgets.all()].map(readBudget), random })
    if (decision.decided === 'bind') cache.assume(next.key)
    else queue.failed(next.key, decision.refusedBy, clock.monotonicMs())
    if (decision.decided === 'wait' && decision.withdraws) cache.dropNomination(next.key, next.pod)
    return decision
  }

  const carryOut = async (decision: Decision) => {
    const { key, pod } = decision
    try {
      switch (decision.decided) {
        case 'bind':
          if (await write.bind(pod, decision.nodeName)) queue.remove(key)
          else cache.undo(decision)
          return
        case 'preempt':
          await makeRoom(decision)
          return await write.explain(pod, decision.message, decision.nodeName)
        case 'wait':
          return await write.explain(pod, decision.message, decision.withdraws ? '' : undefined)
      }
    } catch (error) {
      log.warn('Pod not scheduled', { pod: key, error })
      cache.undo(decision)
      queue.retry(key, clock.monotonicMs())
    }
  }

  const makeRoom = async ({ pod, nodeName, victims, displaced }: Decision & { readonly decided: 'preempt' }) => {
    await Promise.all([
      ...victims.map((victim) => write.evict(victim.pod, pod, nodeName)),
      ...displaced.map((other) => write.withdraw(other.pod)),
    ])
  }

  const loops = [
    { name: 'nodes', run: nodes.run },
    { name: 'namespaces', run: namespaces.run },
    { name: 'pods', run: pods.run },
    { name: 'budgets', run: budgets.run },
    { name: 'work', run: work },
  ]
  await runLoops(loops, signal, log)
}

/** Loop: a pending pod → a binding, room made for it, or the reason why there is none. */
import { isDeepStrictEqual } from 'node:util'
import { comesBack } from '../../api/node-shutdown.ts'
import { isFinished } from '../../api/pod-deletion.ts'
import { alarm } from '../../daemon/alarm.ts'
import { waitMs } from '../../daemon/due-times.ts'
import { inParallel } from '../../daemon/in-parallel.ts'
import { type Loop, runLoops } from '../../daemon/run.ts'
import { follow, keyText } from '../store/follow.ts'
import type { StoredObject } from '../store/store.ts'
import { cluster, type KeyedPod, type StoredPod } from './cluster.ts'
import { type Decision, decide } from './decision.ts'
import { type Change, mayFit } from './hints.ts'
import { readBudget } from './preemption.ts'
import { isOurs, type SchedulerWriteNeeds, schedulerWrites } from './scheduler-writes.ts'
import { schedulingQueue } from './scheduling-queue.ts'

export type SchedulerNeeds = SchedulerWriteNeeds & {
  readonly random: () => number
}

/** Decisions are quick and writing is slow: so many are written at a time. */
const writesAtOnce = 128
/** Everything else in the process waits while we decide; in a large fleet one decision takes milliseconds. */
const decidesForMs = 20

export function scheduler(needs: SchedulerNeeds): Loop {
  return { name: 'scheduler', run: (signal) => runScheduler(needs, signal) }
}

async function runScheduler(needs: SchedulerNeeds, signal: AbortSignal): Promise<void> {
  const { clock, log, random } = needs
  const write = schedulerWrites(needs)
  const known = cluster()
  const queue = schedulingQueue()
  const bell = alarm(clock)
  /** What may let pods fit that did not: nodes once each, the rest as it came. */
  const betterNodes = new Set<string>()
  const changes: Change[] = []
  /** Decided, and not yet told by the store. */
  const assumed = new Set<string>()

  const tell = (change: Change) => {
    if (!queue.isWaiting) return
    if (change.change === 'node') betterNodes.add(change.nodeName)
    else changes.push(change)
    bell.ring()
  }

  const nodes = follow(needs, 'nodes', (present, previous) => {
    if (present === undefined) {
      if (previous === undefined) return
      known.forgetNode(previous.metadata.name)
      return tell({ change: 'node gone' })
    }
    known.seeNode(present)
    const nodeName = present.metadata.name
    if (previous === undefined || decidesDifferently(present, previous)) tell({ change: 'node', nodeName })
  })

  const namespaces = follow(needs, 'namespaces', (present, previous) => {
    const name = (present ?? previous)?.metadata.name
    if (name === undefined) return
    known.seeNamespace(name, present && (present.metadata.labels ?? {}))
    if (!isDeepStrictEqual(present?.metadata.labels, previous?.metadata.labels)) tell({ change: 'namespace' })
  })

  const pods = follow(needs, 'pods', (present, previous) => {
    const { metadata } = present ?? previous ?? {}
    if (metadata === undefined) return
    const key = keyText(metadata)
    if (present === undefined || isOver(present)) {
      forget(key, present, previous)
    } else if (present.spec.nodeName) {
      queue.remove(key)
      assumed.delete(key)
      if (previous === undefined || countsDifferently(present, previous)) settle(key, present, previous)
    } else {
      followPromise(key, present, previous)
      if (!isOurs(present)) queue.remove(key)
      else if (previous === undefined || !queue.has(key) || asksDifferently(present, previous)) {
        queue.add(key, present)
        bell.ring()
      }
    }
  })

  const forget = (key: string, present: StoredPod | undefined, previous: StoredPod | undefined) => {
    queue.remove(key)
    assumed.delete(key)
    known.remove(key)
    const gone = previous ?? present
    if (gone === undefined) return
    breakPromise(key, gone)
    const wasThere = previous !== undefined && !isOver(previous)
    if (wasThere && gone.spec.nodeName) tell({ change: 'pod gone', pod: gone, nodeName: gone.spec.nodeName })
  }

  const settle = (key: string, present: StoredPod, previous: StoredPod | undefined) => {
    const nodeName = present.spec.nodeName ?? ''
    breakPromise(key, present)
    known.place(key, present, nodeName)
    const isNew = !previous?.spec.nodeName
    if (!isNew && !meansOther(present, previous)) return
    if (!isNew) tell({ change: 'pod gone', pod: previous })
    tell({ change: 'pod placed', pod: present })
  }

  const followPromise = (key: string, present: StoredPod, previous: StoredPod | undefined) => {
    const promised = present.status?.nominatedNodeName ?? ''
    if (promised === (previous?.status?.nominatedNodeName ?? '')) return
    if (promised === '') breakPromise(key, present)
    else known.nominate(key, present, promised)
  }

  const breakPromise = (key: string, pod: StoredPod) => {
    const nodeName = known.nominationOf(key)
    if (nodeName === undefined) return
    known.nominate(key, pod, '')
    tell({ change: 'node', nodeName })
  }

  const budgets = follow(needs, 'poddisruptionbudgets', () => undefined)

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
    const news: readonly Change[] = [
      ...[...betterNodes].map((nodeName): Change => ({ change: 'node', nodeName })),
      ...changes.splice(0),
    ]
    betterNodes.clear()
    if (news.length === 0) return
    queue.wake((waiting) => news.some((change) => mayFit(waiting, change, known)), clock.monotonicMs())
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
    if (decision.decided === 'bind') assumed.add(next.key)
    else queue.failed(next.key, decision.refusedBy, clock.monotonicMs())
    if (decision.decided === 'wait' && decision.withdraws) breakPromise(next.key, next.pod)
    return decision
  }

  const carryOut = async (decision: Decision) => {
    const { key, pod } = decision
    try {
      switch (decision.decided) {
        case 'bind':
          if (await write.bind(pod, decision.nodeName)) queue.remove(key)
          else takeBack(decision)
          return
        case 'preempt':
          await makeRoom(decision)
          return await write.explain(pod, decision.message, decision.nodeName)
        case 'wait':
          return await write.explain(pod, decision.message, decision.withdraws ? '' : undefined)
      }
    } catch (error) {
      log.warn('Pod not scheduled', { pod: key, error })
      takeBack(decision)
      queue.retry(key, clock.monotonicMs())
    }
  }

  const makeRoom = async ({ pod, nodeName, victims, displaced }: Decision & { readonly decided: 'preempt' }) => {
    await Promise.all([
      ...victims.map((victim) => write.evict(victim.pod, pod, nodeName)),
      ...displaced.map((other) => write.withdraw(other.pod)),
    ])
  }

  /** The store has told, or will tell, what became of the pod instead. */
  const takeBack = (decision: Decision) => {
    if (decision.decided !== 'bind' || !assumed.delete(decision.key)) return
    known.remove(decision.key)
    tell({ change: 'node', nodeName: decision.nodeName })
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

/** Heartbeats and the like make no pod fit. */
function decidesDifferently(a: StoredObject<'nodes'>, b: StoredObject<'nodes'>): boolean {
  const relevant = ({ metadata, spec, status }: StoredObject<'nodes'>) => [metadata.labels, spec, status?.allocatable]
  return !isDeepStrictEqual(relevant(a), relevant(b))
}

function asksDifferently(a: StoredPod, b: StoredPod): boolean {
  return !isDeepStrictEqual([a.spec, a.metadata.labels], [b.spec, b.metadata.labels])
}

/** Of a bound pod: does it take other room, mean something else to its neighbours, or to those who want its room? */
function countsDifferently(a: StoredPod, b: StoredPod): boolean {
  return a.spec !== b.spec || a.status?.startTime !== b.status?.startTime || meansOther(a, b)
}

function meansOther(a: StoredPod, b: StoredPod): boolean {
  return (
    !isDeepStrictEqual(a.metadata.labels, b.metadata.labels) ||
    a.metadata.deletionTimestamp !== b.metadata.deletionTimestamp
  )
}

/** It needs no room any more. Who waits for its machine to boot does. */
function isOver(pod: StoredPod): boolean {
  return isFinished(pod) && !comesBack(pod)
}

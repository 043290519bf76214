/** Loop: a pending pod → a binding, or the reason why there is none. */
import { isDeepStrictEqual } from 'node:util'
import { withPodCondition } from '../../api/pod-conditions.ts'
import { isFinished } from '../../api/pod-deletion.ts'
import { alarm } from '../../daemon/alarm.ts'
import { type Clock, rfc3339 } from '../../daemon/clock.ts'
import { waitMs } from '../../daemon/due-times.ts'
import { inParallel } from '../../daemon/in-parallel.ts'
import type { Log } from '../../daemon/log.ts'
import { type Loop, runLoops } from '../../daemon/run.ts'
import type { EventRecorder } from '../store/event-recorder.ts'
import { follow, keyText } from '../store/follow.ts'
import { podReference } from '../store/references.ts'
import { rewrite } from '../store/rewrite.ts'
import type { Store, StoredObject } from '../store/store.ts'
import { cluster } from './cluster.ts'
import { refusals } from './filter.ts'
import { placePod } from './placement.ts'
import { schedulingQueue } from './scheduling-queue.ts'

export type SchedulerNeeds = {
  readonly store: Store
  readonly events: EventRecorder
  readonly clock: Clock
  readonly log: Log
  readonly random: () => number
}

/** Pods that name another scheduler are not ours. */
export const schedulerName = 'default-scheduler'

type StoredPod = StoredObject<'pods'>
type Decision = { readonly key: string; readonly pod: StoredPod } & (
  | { readonly nodeName: string }
  | { readonly message: string }
)

/** Decisions are quick and writing is slow: so many are written at a time. */
const writesAtOnce = 128

export function scheduler(needs: SchedulerNeeds): Loop {
  return { name: 'scheduler', run: (signal) => runScheduler(needs, signal) }
}

async function runScheduler({ store, events, clock, log, random }: SchedulerNeeds, signal: AbortSignal): Promise<void> {
  const nodesKnown = cluster()
  const queue = schedulingQueue()
  const bell = alarm(clock)
  /** Nodes on which something may fit now that did not before. */
  const improved = new Set<string>()
  /** Decided, and not yet told by the store. */
  const assumed = new Set<string>()

  const nodes = follow({ store, clock, log }, 'nodes', (present, previous) => {
    if (present === undefined) return previous && nodesKnown.forgetNode(previous.metadata.name)
    nodesKnown.seeNode(present)
    if (previous === undefined || decidesDifferently(present, previous)) improve(present.metadata.name)
  })

  const pods = follow({ store, clock, log }, 'pods', (present, previous) => {
    const { metadata } = present ?? previous ?? {}
    if (metadata === undefined) return
    const key = keyText(metadata)
    if (present === undefined || isFinished(present)) {
      queue.remove(key)
      assumed.delete(key)
      nodesKnown.remove(key)
      const freed = previous?.spec.nodeName
      if (freed && !(present !== undefined && previous !== undefined && isFinished(previous))) improve(freed)
    } else if (present.spec.nodeName) {
      queue.remove(key)
      assumed.delete(key)
      if (present.spec !== previous?.spec) nodesKnown.place(key, present, present.spec.nodeName)
    } else if (!isOurs(present)) queue.remove(key)
    else if (previous === undefined || !queue.has(key) || asksDifferently(present, previous)) {
      queue.add(key, present)
      bell.ring()
    }
  })

  const improve = (nodeName: string) => {
    improved.add(nodeName)
    bell.ring()
  }

  const work = async () => {
    await Promise.all([nodes.listed, pods.listed])
    while (!signal.aborted) {
      wakeWhatMayFit()
      const decisions = decideSome()
      await inParallel(decisions, writesAtOnce, carryOut)
      if (decisions.length === 0) await bell.sleep(waitMs(queue.nextMs(), clock.monotonicMs()), signal)
    }
  }

  const wakeWhatMayFit = () => {
    if (improved.size === 0) return
    const usages = [...improved].flatMap((name) => nodesKnown.node(name) ?? [])
    improved.clear()
    queue.wake((pod) => usages.some((usage) => refusals(pod, usage).length === 0), clock.monotonicMs())
  }

  /** Each decision reckons with those before it, though none is written yet. */
  const decideSome = (): readonly Decision[] => {
    const decisions: Decision[] = []
    while (decisions.length < writesAtOnce) {
      const next = queue.next(clock.monotonicMs())
      if (next === undefined) break
      const { key, pod } = next
      const start = Math.floor(random() * nodesKnown.nodeCount)
      const placement = placePod(pod, nodesKnown, start, random)
      if (placement.found) {
        nodesKnown.place(key, pod, placement.nodeName)
        assumed.add(key)
        decisions.push({ key, pod, nodeName: placement.nodeName })
      } else {
        queue.failed(key, clock.monotonicMs())
        decisions.push({ key, pod, message: placement.message })
      }
    }
    return decisions
  }

  const carryOut = async (decision: Decision) => {
    const { key, pod } = decision
    try {
      if ('nodeName' in decision) await bind(key, pod, decision.nodeName)
      else await explain(pod, decision.message)
    } catch (error) {
      log.warn('Pod not scheduled', { pod: key, error })
      takeBack(key)
      queue.retry(key, clock.monotonicMs())
    }
  }

  const bind = async (key: string, pod: StoredPod, nodeName: string) => {
    const { name, namespace = '', uid } = pod.metadata
    const bound = await rewrite({ store, clock }, 'pods', {
      key: { namespace, name },
      uid,
      change: (fresh) => (fresh.spec.nodeName || !isOurs(fresh) ? undefined : boundPod(fresh, nodeName)),
    })
    if (bound === undefined) return takeBack(key)
    queue.remove(key)
    log.info('Pod scheduled', { pod: key, node: nodeName })
    await record(pod, 'Normal', 'Scheduled', `Successfully assigned ${key} to ${nodeName}`)
  }

  const boundPod = (pod: StoredPod, nodeName: string): StoredPod => {
    const now = rfc3339(clock.wallMs())
    const bound = { ...pod, spec: { ...pod.spec, nodeName } }
    return withPodCondition(bound, { type: 'PodScheduled', status: 'True' }, now) ?? bound
  }

  /** The store has told, or will tell, what became of the pod instead. */
  const takeBack = (key: string) => {
    if (assumed.delete(key)) nodesKnown.remove(key)
  }

  const explain = async (pod: StoredPod, message: string) => {
    const { name, namespace = '', uid } = pod.metadata
    const condition = { type: 'PodScheduled', status: 'False', reason: 'Unschedulable', message } as const
    const written = await rewrite({ store, clock }, 'pods', {
      key: { namespace, name },
      uid,
      part: 'status',
      change: (fresh) =>
        fresh.spec.nodeName ? undefined : withPodCondition(fresh, condition, rfc3339(clock.wallMs())),
    })
    if (written !== undefined) log.info('Pod fits nowhere', { pod: keyText(pod.metadata), message })
    await record(pod, 'Warning', 'FailedScheduling', message)
  }

  const record = async (pod: StoredPod, type: 'Normal' | 'Warning', reason: string, message: string) => {
    try {
      await events.record({ object: podReference(pod), type, reason, message, component: schedulerName })
    } catch (error) {
      log.warn('Event not recorded', { reason, pod: keyText(pod.metadata), error })
    }
  }

  const loops = [
    { name: 'nodes', run: nodes.run },
    { name: 'pods', run: pods.run },
    { name: 'work', run: work },
  ]
  await runLoops(loops, signal, log)
}

/** Is it for us to place this pod? Not while it is leaving, gated, or meant for another scheduler. */
function isOurs({ metadata, spec }: StoredPod): boolean {
  const isFree = metadata.deletionTimestamp === undefined && (spec.schedulingGates ?? []).length === 0
  return isFree && (spec.schedulerName ?? schedulerName) === schedulerName
}

/** Heartbeats and the like make no pod fit. */
function decidesDifferently(a: StoredObject<'nodes'>, b: StoredObject<'nodes'>): boolean {
  const relevant = ({ metadata, spec, status }: StoredObject<'nodes'>) => [metadata.labels, spec, status?.allocatable]
  return !isDeepStrictEqual(relevant(a), relevant(b))
}

function asksDifferently(a: StoredPod, b: StoredPod): boolean {
  return !isDeepStrictEqual([a.spec, a.metadata.labels], [b.spec, b.metadata.labels])
}

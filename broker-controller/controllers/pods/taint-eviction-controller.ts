/** Loop: pods that do not tolerate a NoExecute taint of their node are asked to leave it, each in its time. */
import { isDeepStrictEqual } from 'node:util'
import type { Taint } from '../../../api/node.ts'
import { isLifecycleTaint } from '../../../api/pod/default-tolerations.ts'
import { type Alarm, alarm } from '../../../daemon/alarm.ts'
import type { Clock } from '../../../daemon/clock.ts'
import { dueTimes, waitMs } from '../../../daemon/due-times.ts'
import { inParallel } from '../../../daemon/in-parallel.ts'
import { eachInTurns, yieldTurn } from '../../../daemon/limits/turn-limit.ts'
import type { Log } from '../../../daemon/log.ts'
import { type Loop, runLoops } from '../../../daemon/run.ts'
import type { EventRecorder } from '../../store/event-recorder.ts'
import { informer, keyFrom, keyText } from '../../store/informer.ts'
import { podsByNode } from '../../store/pods-by-node.ts'
import type { Store, StoredObject, StoredPod } from '../../store/store.ts'
import type { UnstoredReports } from '../../usage/unstored-reports.ts'
import { afterStall, evictingTaints, evictionStep, type PlannedEviction, stayText } from './taint-eviction.ts'
import { taintEvictionWrites } from './taint-eviction-writes.ts'

export type TaintEvictionNeeds = {
  readonly store: Store
  readonly events: EventRecorder
  readonly clock: Clock
  readonly log: Log
  /** undefined: each report of a node is in the store. */
  readonly unstored?: Pick<UnstoredReports, 'mayBeOutdated'>
}

export type TaintEvictionSettings = {
  /**
   * Do pods without a controller leave a node that is not ready or unreachable, as in Kubernetes, also where their
   * author states no toleration for it? By default they stay: nothing would re-create them.
   */
  readonly evictUnmanagedPods: boolean
}

export const defaultTaintEvictionSettings: TaintEvictionSettings = { evictUnmanagedPods: false }

/** What is decided for this many pods is a turn of the event loop. */
const evictionsAtOnce = 64
const retryMs = 1_000
/** A pod whose node may be ready again, though the store does not have that yet, is checked again after this time. */
const outdatedMs = 10_000
/** While evictions are planned, this loop wakes at least this often, and one that wakes later than this has stood still. */
const lookMs = 5_000
const stallMs = 2_000

/** Counts begin when this controller sees a taint, and begin again when it is restarted. */
export function taintEvictionController(
  needs: TaintEvictionNeeds,
  settings: TaintEvictionSettings = defaultTaintEvictionSettings,
): Loop {
  return { name: 'taint-eviction', run: (signal) => runTaintEviction(needs, settings, signal) }
}

async function runTaintEviction(
  { store, events, clock, log, unstored }: TaintEvictionNeeds,
  { evictUnmanagedPods }: TaintEvictionSettings,
  signal: AbortSignal,
): Promise<void> {
  const byNode = podsByNode()
  const bell = alarm(clock)
  /** Pods to check now, and pods to evict at their due times; both by namespace/name. */
  const changed = new Set<string>()
  /** Nodes whose taints changed: all their pods are to be checked. */
  const changedNodes = new Set<string>()
  const counts = evictionCounts(clock)
  const outdated = outdatedNodes({ log, unstored })
  const write = taintEvictionWrites({ store, events, clock, log })

  const evict = async (pod: StoredPod) => {
    const key = keyText(pod.metadata)
    if (outdated.holds(pod, nodeOf(pod))) return counts.delay(key, outdatedMs)
    await write.evict(pod, () => noExecuteOf(nodeOf(pod)).length > 0)
    forget(key)
  }

  const nodeOf = ({ spec }: StoredPod) => nodes.get({ namespace: '', name: spec.nodeName ?? '' })
  const look = (pod: StoredPod) => {
    changed.add(keyText(pod.metadata))
    bell.ring()
  }

  const nodes = informer({ store, clock, log }, 'nodes', (present, previous) => {
    if (isDeepStrictEqual(noExecuteOf(present), noExecuteOf(previous))) return
    const name = (present ?? previous)?.metadata.name
    if (name === undefined) return
    changedNodes.add(name)
    bell.ring()
  })
  const pods = informer({ store, clock, log }, 'pods', (present, previous) => {
    byNode.update(present, previous)
    if (present === undefined || present.metadata.deletionTimestamp !== undefined) {
      const gone = present ?? previous
      if (gone !== undefined) forget(keyText(gone.metadata))
    } else if (previous === undefined || decidesDifferently(present, previous)) look(present)
  })

  const forget = (key: string) => {
    changed.delete(key)
    counts.forget(key)
    outdated.forget(key)
  }

  const decide = async (key: string) => {
    await yieldTurn()
    const pod = pods.get(keyFrom(key))
    if (pod === undefined || !pod.spec.nodeName || pod.metadata.deletionTimestamp !== undefined) return
    const taints = noExecuteOf(nodeOf(pod))
    const evicting = evictUnmanagedPods ? taints : evictingTaints(pod, taints)
    const step = evictionStep(evicting, pod.spec.tolerations ?? [], counts.of(key), clock.monotonicMs())
    const stay = evicting.length < taints.length && step.step !== 'evict' ? stayText(pod, taints) : undefined
    if (stay !== undefined) await write.explainStay(pod, stay)
    switch (step.step) {
      case 'none':
        return
      case 'plan':
        return counts.plan(key, step.planned)
      case 'cancel':
        forget(key)
        return await write.recordCancelled(pod)
      case 'evict':
        return await evict(pod)
    }
  }

  const endWait = async ({ key, isCounted }: Due) => {
    const pod = pods.get(keyFrom(key))
    if (!isCounted) await decide(key)
    else if (pod !== undefined) await evict(pod)
  }

  const retry = (key: string, error: unknown) => {
    log.warn('Pod not evicted', { pod: key, retryInMs: retryMs, error })
    counts.retryAfter(key, retryMs)
  }

  const work = async () => {
    await Promise.all([nodes.listed, pods.listed])
    while (!signal.aborted) {
      for (const name of changedNodes) {
        changedNodes.delete(name)
        await eachInTurns(byNode.of(name), look)
      }
      const keys = [...changed]
      changed.clear()
      await inParallel(keys, evictionsAtOnce, (key) => decide(key).catch((error) => retry(key, error)))
      await inParallel(counts.take(), evictionsAtOnce, (due) => endWait(due).catch((error) => retry(due.key, error)))
      if (changed.size + changedNodes.size === 0) await sleepBetween({ bell, clock, signal, log }, counts)
    }
  }

  const informers = [nodes, pods].map(({ run }, at) => ({ name: `taint-eviction-${at}`, run }))
  await runLoops([...informers, { name: 'taint-eviction-work', run: work }], signal, log)
}

/** Until there is work. A controller that stood still meanwhile puts evictions off. */
async function sleepBetween(
  { log, ...sleeper }: Parameters<typeof sleepUntilDue>[0] & { readonly log: Log },
  counts: ReturnType<typeof evictionCounts>,
): Promise<void> {
  const lateMs = await sleepUntilDue(sleeper, counts.nextMs())
  if (lateMs <= stallMs || counts.size === 0) return
  log.warn('Controller stood still, evictions are put off', { seconds: Math.round(lateMs / 1000), pods: counts.size })
  counts.putOff(lateMs)
}

/** `isCounted`: its count has ended. Else a write has failed: the pod may have been to stay, or its node may have lost its taints since. */
type Due = { readonly key: string; readonly isCounted: boolean }

/** The evictions that are planned, and decisions that are repeated after a failed write. */
function evictionCounts(clock: Clock) {
  const planned = new Map<string, PlannedEviction>()
  const due = dueTimes()
  const plan = (key: string, eviction: PlannedEviction) => {
    planned.set(key, eviction)
    due.set(key, eviction.dueMs)
  }
  return {
    get size() {
      return planned.size
    },
    of: (key: string) => planned.get(key),
    plan,
    /** The count goes on for so long, or begins. */
    delay(key: string, ms: number) {
      const nowMs = clock.monotonicMs()
      plan(key, { startMs: planned.get(key)?.startMs ?? nowMs, dueMs: nowMs + ms })
    },
    retryAfter: (key: string, ms: number) => due.set(key, clock.monotonicMs() + ms),
    forget(key: string) {
      planned.delete(key)
      due.delete(key)
    },
    nextMs: due.nextMs,
    take(): readonly Due[] {
      const nowMs = clock.monotonicMs()
      return due.take(nowMs).map((key) => {
        const count = planned.get(key)
        const isCounted = count !== undefined && count.dueMs <= nowMs
        if (count !== undefined && !isCounted) due.set(key, count.dueMs)
        return { key, isCounted }
      })
    },
    /** This process stood still for so long. */
    putOff(stalledMs: number) {
      for (const [key, one] of planned) plan(key, afterStall(one, stalledMs, clock.monotonicMs()))
    },
  }
}

/** Pods whose node may be ready again, though the store does not have that yet. */
function outdatedNodes({ log, unstored }: Pick<TaintEvictionNeeds, 'log' | 'unstored'>) {
  const held = new Set<string>()
  return {
    /** The taints may stand only because the node's last report could not be stored. Those of an operator stand in any case. */
    holds({ metadata, spec: { nodeName = '' } }: StoredPod, node: StoredObject<'nodes'> | undefined): boolean {
      const isHeld = unstored?.mayBeOutdated(nodeName) === true && noExecuteOf(node).every(isLifecycleTaint)
      const pod = keyText(metadata)
      if (isHeld && !held.has(pod))
        log.info('Eviction put off: the last report of the node is not stored yet', { pod, node: nodeName })
      if (isHeld) held.add(pod)
      return isHeld
    },
    forget: (pod: string) => void held.delete(pod),
  }
}

/** Resolves with how much too late it woke. While evictions are due, it wakes often: only so it finds that this process stood still. */
async function sleepUntilDue(
  { bell, clock, signal }: { readonly bell: Alarm; readonly clock: Clock; readonly signal: AbortSignal },
  nextMs: number | undefined,
): Promise<number> {
  const ms = Math.min(nextMs === undefined ? Infinity : lookMs, waitMs(nextMs, clock.monotonicMs()))
  const wakeMs = clock.monotonicMs() + ms
  await bell.sleep(ms, signal)
  return clock.monotonicMs() - wakeMs
}

function noExecuteOf(node: StoredObject<'nodes'> | undefined): readonly Taint[] {
  return (node?.spec?.taints ?? []).filter(({ effect }) => effect === 'NoExecute')
}

function decidesDifferently(present: StoredPod, previous: StoredPod): boolean {
  if (present.spec === previous.spec) return false
  return (
    present.spec.nodeName !== previous.spec.nodeName ||
    !isDeepStrictEqual(present.spec.tolerations, previous.spec.tolerations)
  )
}

/** Loop: silence → Unknown; conditions → taints; failed nodes → the queue of their zone → NoExecute; their pods not ready. */
import { nodeLeaseNamespace } from '../../../api/lease.ts'
import type { Node } from '../../../api/node.ts'
import { alarm } from '../../../daemon/alarm.ts'
import type { Clock } from '../../../daemon/clock.ts'
import { waitMs } from '../../../daemon/due-times.ts'
import { inParallel } from '../../../daemon/in-parallel.ts'
import type { Log } from '../../../daemon/log.ts'
import { type Loop, runLoops } from '../../../daemon/run.ts'
import type { EventRecorder } from '../../store/event-recorder.ts'
import { informer } from '../../store/informer.ts'
import type { Store, StoredObject } from '../../store/store.ts'
import { noExecuteTainting } from './no-execute-tainting.ts'
import { nodeAnnouncements } from './node-announcements.ts'
import { nodeCheck } from './node-check.ts'
import { nodeLifecycleEvents } from './node-events.ts'
import { nodeJudge } from './node-judgement.ts'
import { defaultNodeLifecycleSettings, type NodeLifecycleSettings } from './node-lifecycle-settings.ts'
import { type NodeRoster, nodeRoster } from './node-roster.ts'
import { podMarker } from './pod-marker.ts'
import { returnGrace } from './return-grace.ts'
import { isReady } from './zones.ts'

export type NodeLifecycleNeeds = {
  readonly store: Store
  readonly events: EventRecorder
  readonly clock: Clock
  readonly log: Log
  /** This process lets nodes not connect now: their silence is its own doing. */
  readonly refusesNodes?: () => boolean
  /** Called when a pod of a failed node was marked: the node has published something else. */
  readonly podOverwritten?: (nodeName: string, podUID: string) => void
}
/** The store groups writes: this many under way at a time let a lost zone be written in a few groups. */
const writesAtOnce = 256

/** A timer that is later than this means that the process was held up. */
const stallMs = 500
const readAfterStallMs = 1_000

export function nodeLifecycleController(
  needs: NodeLifecycleNeeds,
  settings: NodeLifecycleSettings = defaultNodeLifecycleSettings,
): Loop {
  return { name: 'node-lifecycle', run: (signal) => runNodeLifecycle(needs, settings, signal) }
}

async function runNodeLifecycle(
  { store, events, clock, log, refusesNodes, podOverwritten: overwritten }: NodeLifecycleNeeds,
  settings: NodeLifecycleSettings,
  signal: AbortSignal,
): Promise<void> {
  const nodeEvents = nodeLifecycleEvents(events, log)
  const announcements = nodeAnnouncements(nodeEvents, settings)
  const roster = nodeRoster(settings)
  const bell = alarm(clock)
  const hasNodeFailed = (name: string) => hasFailed(roster.get(name)?.node)
  const marker = podMarker({ store, clock, log, nodeEvents, overwritten, hasFailed: hasNodeFailed })
  const judge = nodeJudge(roster, clock, settings)
  const tainting = noExecuteTainting({ store, clock, log, roster, judge }, settings)
  const check = nodeCheck({ store, clock, log, roster, judge, nodeEvents, announcements, marker, tainting, settings })
  const grace = graceAfterStalls({ clock, log, roster, refusesNodes }, settings)
  const unseen = new Set<string>()
  const gone: StoredObject<'nodes'>[] = []

  const now = () => ({ monotonicMs: clock.monotonicMs(), wallMs: clock.wallMs() })

  const nodes = informer({ store, clock, log }, 'nodes', (present, previous) => {
    if (present === undefined) {
      if (previous === undefined) return
      roster.deleteNode(previous.metadata.name)
      tainting.remove(previous.metadata.name)
      announcements.delete(previous.metadata.name)
      gone.push(previous)
    } else {
      if (previous === undefined) unseen.add(present.metadata.name)
      roster.putNode(present, now())
    }
    bell.ring()
  })
  const leases = informer({ store, clock, log }, 'leases', (present, previous) => {
    if ((present ?? previous)?.metadata.namespace !== nodeLeaseNamespace) return
    if (present === undefined) previous && roster.deleteLease(previous.metadata.name)
    else if (roster.putLease(present, now())) bell.ring()
  })
  const pods = informer({ store, clock, log }, 'pods', (present, previous) => {
    if (marker.observe(present, previous)) bell.ring()
  })

  const monitor = async () => {
    await Promise.all([nodes.listed, leases.listed, pods.listed])
    for (grace.start(); !signal.aborted; ) {
      grace.check()
      roster.judgeLinks(clock.monotonicMs())
      const names = roster.take(clock.monotonicMs())
      await inParallel(names, writesAtOnce, (name) => checkNode(name).catch((error) => retryCheck(name, error)))
      roster.judgeLinks(clock.monotonicMs())
      await marker.markLateComers()
      for (const removed of gone.splice(0)) await nodeEvents.removed(removed)
      await judgeZones()
      await sleepUntilDue()
    }
  }

  /** After a stall of this process, heartbeats that arrived meanwhile are read before any node is judged by its age. */
  const sleepUntilDue = async () => {
    const dueMs = clock.monotonicMs() + waitMs(roster.nextMs(), clock.monotonicMs())
    await bell.sleep(dueMs - clock.monotonicMs(), signal)
    if (clock.monotonicMs() - dueMs > stallMs) await clock.sleep(readAfterStallMs, signal)
  }

  const checkNode = async (name: string) => {
    if (roster.get(name) === undefined) return
    roster.checked(name, clock.monotonicMs())
    await check(name, unseen.delete(name))
  }

  const retryCheck = (name: string, error: unknown) => {
    log.warn('Node not checked', { node: name, error })
    roster.checkAt(name, clock.monotonicMs() + settings.nodeMonitorPeriodMs)
  }

  const judgeZones = async () => {
    const turn = tainting.planZones(roster.counts())
    if (turn === 'leaving') roster.giveFullGrace(clock.monotonicMs())
    if (turn !== 'entering') return
    log.warn('Every zone is down: nothing is evicted')
    const names = [...roster.entries()].map((entry) => entry.node.metadata.name)
    await inParallel(names, writesAtOnce, (name) => tainting.clear(name).catch((error) => retryCheck(name, error)))
  }

  const loops = [
    { name: 'nodes', run: nodes.run },
    { name: 'leases', run: leases.run },
    { name: 'pods', run: pods.run },
    { name: 'monitor', run: monitor },
    { name: 'stalls', run: grace.run },
    { name: 'taint', run: tainting.run },
  ]
  await runLoops(loops, signal, log)
}

/**
 * While this process was stopped, or its machine slept, or it refused connections, no message could arrive: no node is silent
 * because of that, and every node gets its full grace period. So do those that are awaited while many come back (`return-grace.ts`).
 */
function graceAfterStalls(
  {
    clock,
    log,
    roster,
    refusesNodes,
  }: Pick<NodeLifecycleNeeds, 'clock' | 'log' | 'refusesNodes'> & { readonly roster: NodeRoster },
  { nodeMonitorPeriodMs }: NodeLifecycleSettings,
) {
  /** When this process was last seen running; undefined before it has listed all nodes. */
  let awakeMs: number | undefined
  const returning = returnGrace(clock.monotonicMs())

  const check = () => {
    if (awakeMs === undefined) return
    const nowMs = clock.monotonicMs()
    const stalledMs = nowMs - awakeMs
    awakeMs = nowMs
    if (refusesNodes?.()) return roster.giveFullGrace(nowMs)
    if (stalledMs <= 2 * nodeMonitorPeriodMs) return
    log.warn('Controller was suspended, every node gets its full grace period', {
      seconds: Math.round(stalledMs / 1000),
    })
    roster.giveFullGrace(nowMs)
  }

  const checkReturn = () => {
    const nowMs = clock.monotonicMs()
    if (awakeMs === undefined || returning.isOver(nowMs)) return
    const awaited = roster.awaited()
    if (returning.isGiven(awaited.length, nowMs)) roster.giveGraceTo(awaited, nowMs)
  }

  return {
    start() {
      awakeMs = clock.monotonicMs()
    },
    check,
    run: async (signal: AbortSignal) => {
      while (!signal.aborted) {
        await clock.sleep(nodeMonitorPeriodMs, signal)
        check()
        checkReturn()
      }
    },
  }
}

function hasFailed(node: Node | undefined): boolean {
  return node !== undefined && !isReady(node)
}

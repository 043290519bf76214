/** Loop: silence → Unknown; conditions → taints; ill nodes → the queue of their zone → NoExecute; their pods not ready. */
import { nodeLeaseNamespace } from '../../../api/lease.ts'
import type { Node } from '../../../api/node.ts'
import { alarm } from '../../../daemon/alarm.ts'
import { type Clock, rfc3339 } from '../../../daemon/clock.ts'
import { waitMs } from '../../../daemon/due-times.ts'
import { inParallel } from '../../../daemon/in-parallel.ts'
import type { Log } from '../../../daemon/log.ts'
import { type Loop, runLoops } from '../../../daemon/run.ts'
import type { EventRecorder } from '../../store/event-recorder.ts'
import { follow } from '../../store/follow.ts'
import { rewrite } from '../../store/rewrite.ts'
import type { Store, StoredObject } from '../../store/store.ts'
import { flappingTaint } from './flapping.ts'
import { silentNode } from './node-conditions.ts'
import { nodeEvents } from './node-events.ts'
import { type Judgement, judgeNode, settledNode } from './node-judgement.ts'
import { defaultNodeLifecycleSettings, type NodeLifecycleSettings } from './node-lifecycle-settings.ts'
import { nodeRoster } from './node-roster.ts'
import { noExecuteStep, withNoExecuteTaint, withoutNoExecuteTaints } from './node-taints.ts'
import { podMarker } from './pod-marker.ts'
import { zoneQueues } from './zone-queues.ts'
import { isReady, noZones, planZones } from './zones.ts'

export type NodeLifecycleNeeds = {
  readonly store: Store
  readonly events: EventRecorder
  readonly clock: Clock
  readonly log: Log
}
/** The store groups writes: so many under way at a time let a lost zone be written in a few groups. */
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
  { store, events, clock, log }: NodeLifecycleNeeds,
  settings: NodeLifecycleSettings,
  signal: AbortSignal,
): Promise<void> {
  const tell = nodeEvents(events, log)
  const roster = nodeRoster(settings)
  const queues = zoneQueues(settings.nodeEvictionRate)
  const [monitorBell, queueBell] = [alarm(clock), alarm(clock)]
  const marker = podMarker({ store, clock, log, tell, isIll: (name) => isIll(roster.get(name)?.node) })
  const unseen = new Set<string>()
  const gone: StoredObject<'nodes'>[] = []
  /** What was last told of each node whose pods are held. */
  const held = new Map<string, string>()
  let zones = noZones
  let started = false
  let awakeMs = clock.monotonicMs()

  /** By what we know at this moment; of a node we do not know, nothing. */
  const judge = (name: string): Judgement | undefined => {
    const [entry, nowMs] = [roster.get(name), clock.monotonicMs()]
    return entry && judgeNode(entry, roster.suspicionOf(name, nowMs), settings, nowMs)
  }

  const now = () => ({ monotonicMs: clock.monotonicMs(), wallMs: clock.wallMs() })
  const stamp = () => rfc3339(clock.wallMs())

  const nodes = follow({ store, clock, log }, 'nodes', (present, previous) => {
    if (present === undefined) {
      if (previous === undefined) return
      roster.forgetNode(previous.metadata.name)
      queues.remove(previous.metadata.name)
      held.delete(previous.metadata.name)
      gone.push(previous)
    } else {
      if (previous === undefined) unseen.add(present.metadata.name)
      roster.seeNode(present, now())
    }
    monitorBell.ring()
  })
  const leases = follow({ store, clock, log }, 'leases', (present, previous) => {
    if ((present ?? previous)?.metadata.namespace !== nodeLeaseNamespace) return
    if (present === undefined) previous && roster.forgetLease(previous.metadata.name)
    else if (roster.seeLease(present, now())) monitorBell.ring()
  })
  const pods = follow({ store, clock, log }, 'pods', (present, previous) => {
    if (marker.told(present, previous)) monitorBell.ring()
  })

  const monitor = async () => {
    await Promise.all([nodes.listed, leases.listed, pods.listed])
    awakeMs = clock.monotonicMs()
    for (; !signal.aborted; started = true) {
      noticeSleep()
      roster.judgeLinks(clock.monotonicMs())
      const names = roster.take(clock.monotonicMs())
      await inParallel(names, writesAtOnce, (name) => look(name).catch((error) => retryLook(name, error)))
      roster.judgeLinks(clock.monotonicMs())
      await marker.markLateComers()
      for (const node of gone.splice(0)) await tell.removed(node)
      await judgeZones()
      await sleepUntilDue()
    }
  }

  /** After a stall of this process, heartbeats that arrived meanwhile are read before any node is judged by its age. */
  const sleepUntilDue = async () => {
    const dueMs = clock.monotonicMs() + waitMs(roster.nextMs(), clock.monotonicMs())
    await monitorBell.sleep(dueMs - clock.monotonicMs(), signal)
    if (clock.monotonicMs() - dueMs > stallMs) await clock.sleep(readAfterStallMs, signal)
  }

  /** While we were stopped, or our machine slept, nothing could be heard: then nobody is to blame for silence. */
  const noticeSleep = () => {
    const nowMs = clock.monotonicMs()
    const sleptMs = nowMs - awakeMs
    awakeMs = nowMs
    if (sleptMs <= 2 * settings.nodeMonitorPeriodMs) return
    log.warn('Controller was asleep, every node gets its full grace', { seconds: Math.round(sleptMs / 1000) })
    roster.giveFullGrace(nowMs)
  }

  const stayAwake = async () => {
    while (!signal.aborted) {
      await clock.sleep(settings.nodeMonitorPeriodMs, signal)
      if (started) noticeSleep()
    }
  }

  const retryLook = (name: string, error: unknown) => {
    log.warn('Node not looked after', { node: name, error })
    roster.lookAt(name, clock.monotonicMs() + settings.nodeMonitorPeriodMs)
  }

  const look = async (name: string) => {
    const entry = roster.get(name)
    if (entry === undefined) return
    roster.looked(name, clock.monotonicMs())
    if (unseen.delete(name)) {
      await tell.registered(entry.node)
      await change(name, (node) => withoutNoExecuteTaints(node))
    }
    await markIfSilent(name)
    const isKnownFlapping = hasFlappingTaint(roster.get(name)?.node)
    await change(name, (node) => {
      const judgement = judge(name)
      return judgement && settledNode(node, judgement, stamp(), settings)
    })
    await tellHold(name)
    await tellFlapping(name, isKnownFlapping)
    await marker.markNode(name)
    enqueue(name)
  }

  /** Silence moves Ready to Unknown; a node that was Ready until now fails with its pods. */
  const markIfSilent = async (name: string) => {
    const entry = roster.get(name)
    const silence = judge(name)?.silence
    if (entry === undefined || silence === undefined || silentNode(entry.node, silence, stamp()) === undefined) return
    let wasReady = false
    const written = await rewrite({ store, clock }, 'nodes', {
      key: { namespace: '', name },
      uid: entry.node.metadata.uid,
      part: 'status',
      change: (node) => {
        wasReady = isReady(node)
        const still = judge(name)?.silence
        return still && silentNode(node, still, stamp())
      },
    })
    if (written === undefined) return
    roster.seeNode(written, now())
    log.info('Node is silent', { node: name, silence: silence.is })
    if (!wasReady) return
    marker.failed(name)
    await tell.notReady(written)
  }

  const tellHold = async (name: string) => {
    const [entry, judgement, before] = [roster.get(name), judge(name), held.get(name)]
    const hold = judgement?.hold
    if (entry === undefined || hold?.key === before) return
    if (hold === undefined) held.delete(name)
    else held.set(name, hold.key)
    if (hold !== undefined) await tell.evictionsHeld(entry.node, hold.text)
    else if (judgement?.silence?.is === 'silent') await tell.evictionsResumed(entry.node)
  }

  const tellFlapping = async (name: string, wasFlapping: boolean) => {
    const entry = roster.get(name)
    if (entry === undefined || hasFlappingTaint(entry.node) === wasFlapping) return
    if (wasFlapping) {
      roster.steady(name)
      return await tell.steady(entry.node)
    }
    const { flappingLosses, flappingWindowMs, flappingSettleTimeMs } = settings
    const [windowMin, settleMin] = [flappingWindowMs, flappingSettleTimeMs].map((ms) => Math.round(ms / 60_000))
    const often = `Ready was lost ${flappingLosses} times within ${windowMin} min`
    await tell.flapping(entry.node, `${often}: no new pods until it has been Ready for ${settleMin} min.`)
  }

  const enqueue = (name: string) => {
    const entry = roster.get(name)
    if (entry === undefined) return
    if (noExecuteStep(entry.node).step !== 'queue') return queues.remove(name)
    if (judge(name)?.isProven !== true) return
    queues.add(name, entry.zone, clock.monotonicMs())
    queueBell.ring()
  }

  const change = async (name: string, wanted: (node: StoredObject<'nodes'>) => Node | undefined) => {
    const entry = roster.get(name)
    if (entry === undefined || wanted(entry.node) === undefined) return
    const { uid } = entry.node.metadata
    const written = await rewrite({ store, clock }, 'nodes', { key: { namespace: '', name }, uid, change: wanted })
    if (written !== undefined) roster.seeNode(written, now())
  }

  const judgeZones = async () => {
    const plan = planZones(zones, roster.counts(), settings)
    for (const [zone, rate] of plan.rates) queues.setRate(zone, rate, clock.monotonicMs())
    queueBell.ring()
    for (const [zone, state] of plan.zones.states) {
      if (zones.states.get(zone) !== state)
        log.info('Zone state changed', { zone: zone.replaceAll('\u0000', ''), state })
    }
    zones = plan.zones
    if (plan.turn === 'leaving') roster.giveFullGrace(clock.monotonicMs())
    if (plan.turn !== 'entering') return
    log.warn('Every zone is down: nothing is evicted')
    const names = [...roster.entries()].map(({ node }) => node.metadata.name)
    await inParallel(names, writesAtOnce, async (name) => {
      await change(name, (node) => withoutNoExecuteTaints(node)).catch((error) => retryLook(name, error))
    })
  }

  const taint = async () => {
    while (!signal.aborted) {
      for (const name of queues.take(clock.monotonicMs())) await taintNode(name)
      await queueBell.sleep(waitMs(queues.nextMs(clock.monotonicMs()), clock.monotonicMs()), signal)
    }
  }

  /** Ready is looked at again. A failure costs the token, and the node stays first. */
  const taintNode = async (name: string) => {
    try {
      if (judge(name)?.isProven === true)
        await change(name, (node) => (isReady(node) ? undefined : withNoExecuteTaint(node, stamp())))
      queues.remove(name)
    } catch (error) {
      log.warn('Node not tainted', { node: name, error })
    }
  }

  const loops = [
    { name: 'nodes', run: nodes.run },
    { name: 'leases', run: leases.run },
    { name: 'pods', run: pods.run },
    { name: 'monitor', run: monitor },
    { name: 'wakefulness', run: stayAwake },
    { name: 'taint', run: taint },
  ]
  await runLoops(loops, signal, log)
}

function hasFlappingTaint(node: Node | undefined): boolean {
  return (node?.spec?.taints ?? []).some(({ key }) => key === flappingTaint)
}

function isIll(node: Node | undefined): boolean {
  return node !== undefined && !isReady(node)
}

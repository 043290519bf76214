/**
 * Loop: observe → decide what the node is short of → free what nobody needs → at most one pod a pass. It needs neither
 * the network nor the controller: a machine that starves cannot wait for them.
 */

import type { PressureType } from '../../api/node.ts'
import { isCriticalPod } from '../../api/pod/critical-pod.ts'
import type { Pod } from '../../api/pod.ts'
import { withOwnSignal } from '../../daemon/aborted.ts'
import type { Cell } from '../../daemon/cell.ts'
import type { Clock } from '../../daemon/clock.ts'
import { withDeadline } from '../../daemon/deadline.ts'
import type { Log } from '../../daemon/log.ts'
import type { Loop } from '../../daemon/run.ts'
import type { NodeEvent } from '../node/node-event.ts'
import type { PodDiskReading, PodUsage, PodUse } from '../usage/usage.ts'
import { type EvictablePods, immediatelySeconds } from './evictable-pods.ts'
import { evictionMessage } from './eviction-message.ts'
import type { NodeReclaim } from './node-reclaim.ts'
import type { Observations, SignalSource, StallSignal } from './observations.ts'
import { calm, isNear, nextSituation, type Situation } from './pressure.ts'
import { rankForEviction } from './ranking.ts'
import { pressureOf, resourceOf, type Threshold, thresholdsMet } from './thresholds.ts'

export type EvictionNeeds = {
  readonly signals: SignalSource
  readonly pods: EvictablePods
  readonly usage: Pick<PodUsage, 'podUsage' | 'podDiskUsage'>
  readonly reclaim: NodeReclaim
  readonly event: (event: NodeEvent) => void
  readonly clock: Clock
  readonly log: Log
  readonly writes: {
    /** Undefined until the signals were read once. Listeners are called when the list differs. */
    readonly pressures: Cell<readonly PressureType[] | undefined>
    /** Images and container layers are on another filesystem than the agent's data; undefined while that is unknown. */
    readonly imagesApart: Cell<boolean | undefined>
  }
}

export type EvictionSettings = {
  /** Hard and soft. */
  readonly thresholds: readonly Threshold[]
  readonly transitionMs: number
  /** The longest a pod may take that goes for a soft threshold. */
  readonly maxPodGraceSeconds: number
  /** From so many percent on, a stall shows as pressure; nobody goes for it. */
  readonly stallWarnings: ReadonlyMap<StallSignal, number>
}

const periodMs = 10_000 // as the kubelet
/** Where a threshold is near, ten seconds are long. */
const nearPeriodMs = 1_000
const cleanupMs = 30_000
const reclaimMs = 60_000
/** Trying goes on; that it goes on is told this often. */
const tellAgainMs = 60_000
/** Of folders walked for an eviction: the pods have gone on writing, but a walk is dear. */
const diskUseAgeMs = 15_000

export function evictionManager(needs: EvictionNeeds, settings: EvictionSettings): Loop {
  const { signals, pods, usage, reclaim, event, clock, log, writes } = needs
  const { thresholds, maxPodGraceSeconds, stallWarnings } = settings
  let situation: Situation | undefined
  let last: { readonly observations: Observations; readonly atMs: number } | undefined
  let unread = ''
  let waitsForFilesystems = false
  const toldAtMs = new Map<string, number>()

  const look = async (): Promise<Observations> => {
    const observations = await signals.observe()
    tellUnread(observations)
    writes.imagesApart.set(observations.imagesApart)
    const before = situation
    const nowMs = clock.monotonicMs()
    situation = nextSituation(before ?? calm, observations.observed, settings, nowMs, warned(observations))
    tellPressures(before, situation, observations)
    writes.pressures.set([...situation.lastMet.keys()])
    return observations
  }

  const warned = ({ stalls }: Observations): readonly PressureType[] =>
    stalls
      .filter(({ signal, percent }) => percent >= (stallWarnings.get(signal) ?? Number.POSITIVE_INFINITY))
      .map(({ signal }) => (signal.startsWith('memory.') ? 'MemoryPressure' : 'DiskPressure'))

  /** The pod that had to go, if one had. */
  const act = async (observations: Observations, signal: AbortSignal): Promise<string | undefined> => {
    const inForce = situation?.inForce ?? []
    const threshold = inForce.find((one) => canAct(one, observations))
    const wasWaiting = waitsForFilesystems
    waitsForFilesystems = inForce.some((one) => !canAct(one, observations))
    if (waitsForFilesystems && !wasWaiting) log.warn(filesystemsUnknown)
    if (threshold === undefined) return undefined
    tellTrying(threshold)
    if (await isReclaimed(threshold, observations, signal)) return undefined
    // The message names the amounts that met the threshold, as the kubelet's does: what was freed since does not belong in it.
    return await evictOne(threshold, observations)
  }

  /** Freeing what is unused was enough: no threshold is met any more. */
  const isReclaimed = async (
    threshold: Threshold,
    observations: Observations,
    signal: AbortSignal,
  ): Promise<boolean> => {
    const works = reclaimsFor(threshold, observations.imagesApart, reclaim)
    if (works.length === 0) return false
    await withDeadline(reclaimMs, signal, async (deadline) => {
      for (const work of works) await work(deadline).catch((error) => tellFailure('Disk not freed', error))
    })
    const { observed } = await signals.observe()
    return thresholdsMet(thresholds, observed, true).length === 0
  }

  const evictOne = async (threshold: Threshold, observations: Observations): Promise<string | undefined> => {
    const active = pods.active()
    if (active.length === 0) return undefined
    const facts = await factsFor(threshold, observations)
    const victim = rankForEviction(threshold.signal, active, facts).find((pod) => !isCriticalPod(pod))
    if (victim === undefined) return undefined
    const uid = victim.metadata.uid ?? ''
    const { observed } = observations
    const message = evictionMessage({
      pod: victim,
      threshold,
      observed,
      use: facts.use.get(uid),
      disk: facts.disk.get(uid),
    })
    const gracePeriodSeconds = graceFor(victim, threshold)
    const { namespace, name } = victim.metadata
    log.warn('Pod evicted', { pod: `${namespace}/${name}`, threshold: threshold.signal, gracePeriodSeconds, message })
    pods.endPod(uid, { reason: 'Evicted', message, gracePeriodSeconds, event: 'Warning', disruption: message })
    return uid
  }

  const factsFor = async ({ signal }: Threshold, { imagesApart }: Observations) => {
    const ofDisk = pressureOf(signal) === 'DiskPressure'
    const [use, disk] = await Promise.all([
      ofDisk ? [] : usage.podUsage(),
      ofDisk ? usage.podDiskUsage(diskUseAgeMs) : [],
    ])
    return {
      use: new Map(use.map((one): [string, PodUse] => [one.uid, one])),
      disk: new Map(disk.map((one): [string, PodDiskReading] => [one.uid, one])),
      imagesApart: imagesApart ?? false,
    }
  }

  const graceFor = ({ spec }: Pod, { graceMs }: Threshold) =>
    graceMs === undefined
      ? immediatelySeconds
      : Math.min(maxPodGraceSeconds, spec.terminationGracePeriodSeconds ?? maxPodGraceSeconds)

  /** One at a time: what it held must be free before anybody can tell whether another has to go. */
  const gone = async (uid: string, signal: AbortSignal) => {
    const hasStopped = await withOwnSignal(signal, async (own) => {
      const stopped = pods.stopped(uid, own.signal).then(() => true)
      const late = clock.sleep(cleanupMs, own.signal).then(() => false)
      return await Promise.race([stopped, late]).finally(() => own.abort())
    })
    if (!hasStopped && !signal.aborted) log.warn('Evicted pod does not end', { podUID: uid })
  }

  const pass = async (signal: AbortSignal): Promise<number> => {
    const observations = await look()
    const nowMs = clock.monotonicMs()
    const evicted = await act(observations, signal).catch((error) => {
      tellFailure('Cannot tell who has to go', error)
      return undefined
    })
    if (evicted !== undefined) {
      await gone(evicted, signal)
      last = undefined
      return 0
    }
    const spans = { sinceMs: nowMs - (last?.atMs ?? nowMs), withinMs: periodMs }
    const near =
      situation?.inForce.length === 0 &&
      (warned(observations).length > 0 ||
        isNear(thresholds, last?.observations.observed ?? [], observations.observed, spans))
    last = { observations, atMs: nowMs }
    return near ? nearPeriodMs : periodMs
  }

  const isDue = (what: string) => {
    const nowMs = clock.monotonicMs()
    if (nowMs - (toldAtMs.get(what) ?? Number.NEGATIVE_INFINITY) < tellAgainMs) return false
    toldAtMs.set(what, nowMs)
    return true
  }

  const tellFailure = (what: string, error: unknown) => {
    if (isDue(what)) log.warn(what, { error })
  }

  const tellTrying = ({ signal }: Threshold) => {
    const resource = resourceOf(signal)
    if (!isDue(resource)) return
    event({ type: 'Warning', reason: 'EvictionThresholdMet', message: `Attempting to reclaim ${resource}` })
  }

  const tellUnread = (observations: Observations) => {
    const now = observations.unread.map(({ signal, because }) => `${signal}: ${because}`).join('; ')
    if (now !== unread && now !== '') log.warn('Some of the machine cannot be read', { unread: observations.unread })
    if (now !== unread && now === '') log.info('All of the machine can be read again')
    unread = now
  }

  const tellPressures = (before: Situation | undefined, after: Situation, { observed, stalls }: Observations) => {
    for (const type of after.lastMet.keys()) {
      if (before?.lastMet.has(type)) continue
      const facts = observed.filter(({ signal }) => pressureOf(signal) === type)
      log.warn('Node is under pressure', { pressure: type, observed: facts, stalls })
    }
    for (const type of before?.lastMet.keys() ?? []) {
      if (!after.lastMet.has(type)) log.info('Pressure is gone', { pressure: type })
    }
  }

  return {
    name: 'eviction',
    async run(signal) {
      while (!signal.aborted) await clock.sleep(await pass(signal), signal)
    },
  }
}

/**
 * What frees a disk, and which pod fills it, depends on what else is on it. The kubelet, too, evicts nothing before it
 * knows whether images have a filesystem of their own (eviction_manager.go, synchronize).
 */
function canAct({ signal }: Threshold, { imagesApart }: Observations): boolean {
  return pressureOf(signal) !== 'DiskPressure' || imagesApart !== undefined
}

const filesystemsUnknown =
  'Nothing is removed from the full disk until it is known whether images are on it: Docker has not reported its directory, or that directory cannot be read'

/** Of disks only. Where images have a disk of their own nothing of ours is dead weight on the other one. */
function reclaimsFor(
  { signal }: Threshold,
  imagesApart: boolean | undefined,
  reclaim: NodeReclaim,
): readonly ((signal: AbortSignal) => Promise<unknown>)[] {
  if (pressureOf(signal) !== 'DiskPressure' || (imagesApart && signal.startsWith('nodefs.'))) return []
  return [reclaim.deleteUnusedContainers, reclaim.deleteUnusedImages]
}

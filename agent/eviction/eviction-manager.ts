/**
 * Loop: observe → decide which resource is short → free unused images and containers → evict at most one pod per pass. It needs
 * neither the network nor the controller.
 */

import type { PressureType } from '../../api/node.ts'
import { withOwnSignal } from '../../daemon/aborted.ts'
import type { Cell } from '../../daemon/cell.ts'
import type { Clock } from '../../daemon/clock.ts'
import type { Log } from '../../daemon/log.ts'
import type { Loop } from '../../daemon/run.ts'
import type { NodeEvent } from '../node/status/node-event.ts'
import type { PodUsage } from '../usage/usage.ts'
import type { EvictablePods } from './evictable-pods.ts'
import type { NodeReclaim } from './node-reclaim.ts'
import type { Observations, SignalSource, StallSignal } from './observations.ts'
import { podEvictor } from './pod-evictor.ts'
import { isNear, nextSituation, noPressure, type Situation } from './pressure.ts'
import { pressureLog } from './pressure-log.ts'
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
  /** The longest grace period of a pod that is evicted for a soft threshold. */
  readonly maxPodGraceSeconds: number
  /** From this percentage on, a stall sets a pressure condition. It evicts no pod. */
  readonly stallWarnings: ReadonlyMap<StallSignal, number>
}

const periodMs = 10_000 // as the kubelet
/** While a threshold is near. */
const nearPeriodMs = 1_000
const reclaimMs = 60_000
/** Interval of log messages and Events while a condition lasts. */
const logAgainMs = 60_000

export function evictionManager(needs: EvictionNeeds, settings: EvictionSettings): Loop {
  const { signals, reclaim, event, clock, log, writes } = needs
  const { thresholds, stallWarnings } = settings
  const evictor = podEvictor(needs, settings)
  const logging = pressureLog(log)
  let situation: Situation | undefined
  let last: { readonly observations: Observations; readonly atMs: number } | undefined
  let waitsForFilesystems = false
  const isDue = logInterval(clock)

  const look = async (): Promise<Observations> => {
    const observations = await signals.observe()
    logging.unread(observations)
    writes.imagesApart.set(observations.imagesApart)
    const before = situation
    const nowMs = clock.monotonicMs()
    situation = nextSituation(
      before ?? noPressure,
      observations.observed,
      settings,
      nowMs,
      stallPressures(observations, stallWarnings),
    )
    logging.pressures(before, situation, observations)
    writes.pressures.set([...situation.lastMet.keys()])
    return observations
  }

  /** The UID of the evicted pod, if one was evicted. */
  const act = async (observations: Observations, signal: AbortSignal): Promise<string | undefined> => {
    const inForce = situation?.inForce ?? []
    const threshold = inForce.find((one) => canAct(one, observations))
    const wasWaiting = waitsForFilesystems
    waitsForFilesystems = inForce.some((one) => !canAct(one, observations))
    if (waitsForFilesystems && !wasWaiting) log.warn(filesystemsUnknown)
    if (threshold === undefined) return undefined
    recordTrying(threshold)
    if (await isReclaimed(threshold, observations, signal)) return undefined
    // The message names the amounts that met the threshold, as the kubelet's does: what was freed since does not belong in it.
    return await evictor.evictOne(threshold, observations)
  }

  /** Freeing what is unused was enough: no threshold is met any more. */
  const isReclaimed = async (
    threshold: Threshold,
    observations: Observations,
    signal: AbortSignal,
  ): Promise<boolean> => {
    const works = reclaimsFor(threshold, observations.imagesApart, reclaim)
    if (works.length === 0) return false
    await freeDisk(works, clock, signal, logFailure)
    // The agent stops: no pod is evicted for what was not tried.
    if (signal.aborted) return true
    const { observed } = await signals.observe()
    return thresholdsMet(thresholds, observed, true).length === 0
  }

  const pass = async (signal: AbortSignal): Promise<number> => {
    const observations = await look()
    const nowMs = clock.monotonicMs()
    const evicted = await act(observations, signal).catch((error) => {
      logFailure('Cannot choose a pod to evict', error)
      return undefined
    })
    if (evicted !== undefined) {
      await evictor.stopped(evicted, signal)
      last = undefined
      return 0
    }
    const spans = { sinceMs: nowMs - (last?.atMs ?? nowMs), withinMs: periodMs }
    const near =
      situation?.inForce.length === 0 &&
      (stallPressures(observations, stallWarnings).length > 0 ||
        isNear(thresholds, last?.observations.observed ?? [], observations.observed, spans))
    last = { observations, atMs: nowMs }
    return near ? nearPeriodMs : periodMs
  }

  const logFailure = (what: string, error: unknown) => {
    if (isDue(what)) log.warn(what, { error })
  }

  const recordTrying = ({ signal }: Threshold) => {
    const resource = resourceOf(signal)
    if (!isDue(resource)) return
    event({ type: 'Warning', reason: 'EvictionThresholdMet', message: `Attempting to reclaim ${resource}` })
  }

  return {
    name: 'eviction',
    async run(signal) {
      while (!signal.aborted) await clock.sleep(await pass(signal), signal)
    },
  }
}

type DiskWork = (signal: AbortSignal) => Promise<unknown>

/** Does one work after the other. An engine that hangs does not keep a pod from being evicted: the wait has a limit. */
async function freeDisk(
  works: readonly DiskWork[],
  clock: Clock,
  signal: AbortSignal,
  logFailure: (what: string, error: unknown) => void,
): Promise<void> {
  await withOwnSignal(signal, async (own) => {
    const freeing = async () => {
      for (const work of works) {
        if (!own.signal.aborted) await work(own.signal).catch((error) => logFailure('Disk not freed', error))
      }
    }
    const late = clock.sleep(reclaimMs, own.signal).then(() => !signal.aborted)
    const isLate = await Promise.race([freeing().then(() => false), late]).finally(() => own.abort())
    if (isLate) logFailure('Disk not freed', new Error(`Not done within ${reclaimMs / 1000} s`))
  })
}

/**
 * What frees a disk, and which pod fills it, depends on whether images are on it. The kubelet, too, evicts nothing before this is
 * determined (eviction_manager.go, synchronize).
 */
function canAct({ signal }: Threshold, { imagesApart }: Observations): boolean {
  return pressureOf(signal) !== 'DiskPressure' || imagesApart !== undefined
}

const filesystemsUnknown =
  'Nothing is removed from the full disk until it is known whether images are on it: Docker has not reported its directory, or that directory cannot be read'

/** For disks only. If images have a disk of their own, neither they nor container layers use space on the other one. */
function reclaimsFor(
  { signal }: Threshold,
  imagesApart: boolean | undefined,
  reclaim: NodeReclaim,
): readonly ((signal: AbortSignal) => Promise<unknown>)[] {
  if (pressureOf(signal) !== 'DiskPressure' || (imagesApart && signal.startsWith('nodefs.'))) return []
  return [reclaim.deleteUnusedContainers, reclaim.deleteUnusedImages]
}

/** The pressures that stalls above their warning level show. */
function stallPressures(
  { stalls }: Observations,
  warnings: EvictionSettings['stallWarnings'],
): readonly PressureType[] {
  return stalls
    .filter(({ signal, percent }) => percent >= (warnings.get(signal) ?? Number.POSITIVE_INFINITY))
    .map(({ signal }) => (signal.startsWith('memory.') ? 'MemoryPressure' : 'DiskPressure'))
}

/** True when this was not logged within the interval. */
function logInterval(clock: Clock): (what: string) => boolean {
  const loggedMs = new Map<string, number>()
  return (what) => {
    const nowMs = clock.monotonicMs()
    if (nowMs - (loggedMs.get(what) ?? Number.NEGATIVE_INFINITY) < logAgainMs) return false
    loggedMs.set(what, nowMs)
    return true
  }
}

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
import { type ClaimSpace, claimSpaceMessage } from './claim-space.ts'
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
  /** The volumes of claims on the disk of the agent's data, as they were measured last. */
  readonly claims: () => Promise<readonly ClaimSpace[]>
  readonly event: (event: NodeEvent) => void
  /** A pod was chosen because of this signal. */
  readonly evicted?: (signal: string) => void
  readonly clock: Clock
  readonly log: Log
  readonly writes: {
    /** Undefined until the signals were read once. Listeners are called when the list changes. */
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
  /** From this percentage on, a stall sets a pressure condition. It does not evict pods. */
  readonly stallWarnings: ReadonlyMap<StallSignal, number>
}

const periodMs = 10_000 // monitoringInterval (pkg/kubelet/kubelet.go, evictionMonitoringPeriod)
/** The interval while a signal is near a threshold. */
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
  const recordClaims = claimRecorder(needs, isDue)

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
    await recordClaims(threshold, observations)
    // The message contains the amounts that met the threshold, before anything was freed, as in evictionMessage
    // (eviction/helpers.go).
    return await evictor.evictOne(threshold, observations)
  }

  /** Freeing unused images and containers was sufficient: no threshold is met any more. */
  const isReclaimed = async (
    threshold: Threshold,
    observations: Observations,
    signal: AbortSignal,
  ): Promise<boolean> => {
    const isEnough = async () => thresholdsMet(thresholds, (await signals.observe()).observed, true).length === 0
    const works = reclaimsFor(threshold, observations.imagesApart, reclaim, isEnough)
    if (works.length === 0) return false
    await freeDisk(works, clock, signal, logFailure)
    // The agent is stopping and reclaiming is incomplete, so no pod is evicted.
    if (signal.aborted) return true
    return await isEnough()
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

/** Pods are evicted next, and those that fill the disk may not be among them: what is in a claim stays. */
function claimRecorder({ claims, event }: Pick<EvictionNeeds, 'claims' | 'event'>, isDue: (what: string) => boolean) {
  return async ({ signal }: Threshold, { observed, imagesApart }: Observations): Promise<void> => {
    const isTheirDisk = signal === 'nodefs.available' || (signal === 'imagefs.available' && imagesApart === false)
    if (!isTheirDisk || !isDue('VolumesFillDisk')) return
    const capacityBytes = observed.find((one) => one.signal === signal)?.capacity ?? 0
    const message = claimSpaceMessage(await claims(), capacityBytes)
    if (message !== undefined) event({ type: 'Warning', reason: 'VolumesFillDisk', message })
  }
}

type DiskWork = (signal: AbortSignal) => Promise<unknown>

/** Runs the steps one after the other, with a limit on the total time, so that a hung engine does not prevent an eviction. */
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
 * The steps that free a disk, and the pods that fill it, depend on whether images are on it. The kubelet does not evict before
 * this is determined either (eviction_manager.go, synchronize).
 */
function canAct({ signal }: Threshold, { imagesApart }: Observations): boolean {
  return pressureOf(signal) !== 'DiskPressure' || imagesApart !== undefined
}

const filesystemsUnknown =
  'Nothing is removed from the full disk until it is known whether images are on it: Docker has not reported its directory, or that directory cannot be read'

/** For disks only. If images are on another filesystem, neither they nor container layers use space on nodefs. */
function reclaimsFor(
  { signal }: Threshold,
  imagesApart: boolean | undefined,
  reclaim: NodeReclaim,
  isEnough: () => Promise<boolean>,
): readonly ((signal: AbortSignal) => Promise<unknown>)[] {
  if (pressureOf(signal) !== 'DiskPressure' || (imagesApart && signal.startsWith('nodefs.'))) return []
  return [reclaim.deleteUnusedContainers, (ending) => reclaim.deleteUnusedImages(ending, isEnough)]
}

/** The pressures of stalls above their warning level. */
function stallPressures(
  { stalls }: Observations,
  warnings: EvictionSettings['stallWarnings'],
): readonly PressureType[] {
  return stalls
    .filter(({ signal, percent }) => percent >= (warnings.get(signal) ?? Number.POSITIVE_INFINITY))
    .map(({ signal }) => (signal.startsWith('memory.') ? 'MemoryPressure' : 'DiskPressure'))
}

/** Returns true when this was not logged within the interval. */
function logInterval(clock: Clock): (what: string) => boolean {
  const loggedMs = new Map<string, number>()
  return (what) => {
    const nowMs = clock.monotonicMs()
    if (nowMs - (loggedMs.get(what) ?? Number.NEGATIVE_INFINITY) < logAgainMs) return false
    loggedMs.set(what, nowMs)
    return true
  }
}

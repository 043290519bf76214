/**
 * Stops the pods when the machine shuts down: reports the shutdown to the control plane and stops the pods in order, each group
 * within its share, until cancelled.
 */
import { shutdownEnding } from '../../api/node/node-shutdown.ts'
import type { Pod } from '../../api/pod.ts'
import { withOwnSignal } from '../../daemon/aborted.ts'
import type { Cell } from '../../daemon/cell.ts'
import type { Clock } from '../../daemon/clock.ts'
import type { Log } from '../../daemon/log.ts'
import type { NodeEvent } from '../node/status/node-event.ts'
import { ownMs, type Share, type StopGroup, stopGroups, totalMs } from './shutdown-groups.ts'

/** The shutdown's interface to the pod manager. */
export interface StoppablePods {
  /** Pods that have not ended: they run, or are to run. */
  active(): readonly Pod[]
  /** Containers of the pod may run. */
  holds(uid: string): boolean
  /** Resolves when no container of the pod runs, or when `signal` aborts. */
  stopped(uid: string, signal: AbortSignal): Promise<void>
  endPod(
    uid: string,
    ending: {
      readonly reason: string
      readonly message: string
      readonly gracePeriodSeconds: number
      readonly disruption: string
    },
  ): void
  /** The shutdown is cancelled. */
  resume(): void
}

export type GoingDown = {
  /** logind's term for what follows: `reboot`, `poweroff`; undefined where it does not report it. */
  readonly action: string | undefined
  /** Milliseconds left for stopping the pods. */
  readonly leftMs: number
}

/** As `GoingDown`; `untilMs` is monotonic. */
export type Departing = { readonly action: string | undefined; readonly untilMs: number }

export function goingDownAt(departing: Departing | undefined, nowMs: number): GoingDown | undefined {
  return departing && { action: departing.action, leftMs: Math.max(0, departing.untilMs - nowMs) }
}

export type DepartureNeeds = {
  readonly pods: StoppablePods
  /** Reports to the control plane that the node leaves (undefined: it stays). Resolves when that is sent, or soon anyway. Never rejects. */
  readonly leaving: (goingDown: GoingDown | undefined) => Promise<void>
  /** Resolves when all reports are sent, or after this long. */
  readonly reported: (withinMs: number) => Promise<void>
  readonly clock: Clock
  readonly log: Log
  readonly recordEvent: (event: NodeEvent) => void
  readonly writes: {
    /** Set from the begin of a shutdown until the machine is off, or the shutdown is cancelled. */
    readonly goingDown: Cell<Departing | undefined>
    /** The last value of `goingDown` that the control plane has received. */
    readonly departureReported: Cell<Departing | undefined>
  }
}

export interface Departure {
  /** Does nothing while a shutdown is under way. */
  begin(action: string | undefined, shares: readonly Share[]): void
  /** The shutdown is cancelled: pods run again. */
  cancel(): void
  /** The agent stops: no pod is waited for any longer. */
  abandon(): Promise<void>
}

/** A container that is killed at the end of its time is gone a moment later. */
const killMs = 500
/** Time for the last reports: a link may be slow, and a dead one must not delay the shutdown. */
const lastReportMs = { least: 500, most: 3_000 }

/** `release` is called when the pods have stopped or their time is over. */
export function departure(needs: DepartureNeeds, release: () => void): Departure {
  const { pods, clock, log, writes } = needs
  const { goingDown } = writes
  /** Cancels the departure that is under way. */
  let underway: AbortController | undefined
  let stopping: Promise<void> = Promise.resolve()
  let reported: Promise<void> = Promise.resolve()

  /**
   * Reports are sent one after the other, so that the last one is in force. The goodbye precedes NotReady: otherwise the
   * controller would evict the pods.
   */
  const reportLeaving = () => {
    const departing = goingDown.get()
    const leave = goingDownAt(departing, clock.monotonicMs())
    reported = reported.then(() => needs.leaving(leave)).then(() => writes.departureReported.set(departing))
  }

  const stopGroup = async ({ pods: group, graceMs }: StopGroup, endMs: number, cancelled: AbortSignal) => {
    const untilMs = Math.min(clock.monotonicMs() + graceMs, endMs) + killMs
    for (const { uid, gracePeriodSeconds } of group) {
      pods.endPod(uid, { ...shutdownEnding, gracePeriodSeconds, disruption: shutdownEnding.message })
    }
    await withOwnSignal(cancelled, async (own) => {
      const stopped = Promise.all(group.map(({ uid }) => pods.stopped(uid, own.signal)))
      const late = clock.sleep(untilMs - clock.monotonicMs(), own.signal)
      await Promise.race([stopped, late]).finally(() => own.abort())
    })
  }

  const stopAll = async (shares: readonly Share[], cancelled: AbortSignal) => {
    const startMs = clock.monotonicMs()
    const endMs = startMs + totalMs(shares)
    const active = pods.active()
    for (const group of stopGroups(shares, active)) {
      await stopGroup(group, endMs, cancelled)
      if (cancelled.aborted) return
    }
    const endedMs = clock.monotonicMs()
    const departing = goingDown.get()
    goingDown.set(departing && { ...departing, untilMs: endedMs })
    const left = active.filter(({ metadata }) => pods.holds(metadata.uid ?? '')).length
    log.info('Pods stopped for the shutdown', { left, tookMs: Math.round(endedMs - startMs), pods: active.length })
    await reported
    const leftMs = endMs + ownMs - clock.monotonicMs()
    await needs.reported(Math.min(lastReportMs.most, Math.max(lastReportMs.least, leftMs)))
  }

  return {
    begin(action, shares) {
      if (underway !== undefined) return
      underway = new AbortController()
      const { signal } = underway
      goingDown.set({ action, untilMs: clock.monotonicMs() + totalMs(shares) })
      log.info('Machine is shutting down', { action, forMs: totalMs(shares) })
      // start in pkg/kubelet/nodeshutdown/nodeshutdown_manager_linux.go
      needs.recordEvent({ type: 'Normal', reason: 'NodeShutdown', message: 'Shutdown manager detected shutdown event' })
      // Not awaited: a slow link does not take time from the pods.
      reportLeaving()
      stopping = stopAll(shares, signal)
        .catch((error) => log.error('Pods not stopped for the shutdown', { error }))
        .then(() => {
          if (!signal.aborted) release()
        })
    },
    cancel() {
      if (underway === undefined) return
      log.info('Shutdown cancelled', { action: goingDown.get()?.action })
      underway.abort()
      underway = undefined
      goingDown.set(undefined)
      pods.resume()
      reportLeaving()
      const message = 'The shutdown was cancelled: pods run again'
      needs.recordEvent({ type: 'Normal', reason: 'ShutdownCancelled', message })
    },
    async abandon() {
      underway?.abort()
      await stopping
    },
  }
}

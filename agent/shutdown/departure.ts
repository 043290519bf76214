/** The machine goes down: its pods stop in order, each group within its share, and the control plane is told. Until it is called off. */
import { shutdownEnding } from '../../api/node/node-shutdown.ts'
import type { Pod } from '../../api/pod.ts'
import { withOwnSignal } from '../../daemon/aborted.ts'
import type { Clock } from '../../daemon/clock.ts'
import type { Log } from '../../daemon/log.ts'
import type { NodeEvent } from '../node/node-event.ts'
import { ownMs, type Share, type StopGroup, stopGroups, totalMs } from './shutdown-groups.ts'

/** Of whoever runs the pods. */
export interface StoppablePods {
  /** Those that are not over: they run, or are to run. */
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
  /** logind's word for what comes after: `reboot`, `poweroff`; undefined where it does not say. */
  readonly action: string | undefined
  /** Of the time for the pods. */
  readonly leftMs: number
}

export type DepartureNeeds = {
  readonly pods: StoppablePods
  /** Tells the control plane that we go (or do not after all), and resolves when it was told, or soon anyway. Never rejects. */
  readonly leaving: (goingDown: GoingDown | undefined) => Promise<void>
  /** Resolves when all that was reported is told, or after this long. */
  readonly reported: (withinMs: number) => Promise<void>
  readonly clock: Clock
  readonly log: Log
  readonly tell: (event: NodeEvent) => void
  /** The node is to be looked at: what we say of it changed. */
  readonly changed: () => void
}

export interface Departure {
  /** Undefined: the machine stays. */
  goingDown(): GoingDown | undefined
  /** Nothing, when it goes down already. */
  begin(action: string | undefined, shares: readonly Share[]): void
  /** It stays after all. */
  callOff(): void
  /** We end, and wait for no pod any longer. */
  abandon(): Promise<void>
}

/** A container that is killed at the end of its time is gone a moment later. */
const killMs = 500
/** A link may be slow. No machine stays on for one that is dead. */
const lastWordsMs = { least: 500, most: 3_000 }

/** `mayGo`: all is done that could be done in the time there was. */
export function departure(needs: DepartureNeeds, mayGo: () => void): Departure {
  const { pods, clock, log } = needs
  let current:
    | { readonly action: string | undefined; readonly untilMs: number; readonly off: AbortController }
    | undefined
  let stopping: Promise<void> = Promise.resolve()
  let told: Promise<void> = Promise.resolve()

  const goingDown = (): GoingDown | undefined =>
    current && { action: current.action, leftMs: Math.max(0, current.untilMs - clock.monotonicMs()) }

  /**
   * One after the other, so that the last word is the right one. First that we go as planned, then that the node is not
   * ready: else its pods would be given up.
   */
  const tellLeaving = () => {
    const news = goingDown()
    told = told.then(() => needs.leaving(news)).then(needs.changed)
  }

  const stopGroup = async ({ pods: group, graceMs }: StopGroup, endMs: number, off: AbortSignal) => {
    const untilMs = Math.min(clock.monotonicMs() + graceMs, endMs) + killMs
    for (const { uid, gracePeriodSeconds } of group) {
      pods.endPod(uid, { ...shutdownEnding, gracePeriodSeconds, disruption: shutdownEnding.message })
    }
    await withOwnSignal(off, async (own) => {
      const stopped = Promise.all(group.map(({ uid }) => pods.stopped(uid, own.signal)))
      const late = clock.sleep(untilMs - clock.monotonicMs(), own.signal)
      await Promise.race([stopped, late]).finally(() => own.abort())
    })
  }

  const stopAll = async (shares: readonly Share[], off: AbortSignal) => {
    const startMs = clock.monotonicMs()
    const endMs = startMs + totalMs(shares)
    const active = pods.active()
    for (const group of stopGroups(shares, active)) {
      await stopGroup(group, endMs, off)
      if (off.aborted) return
    }
    const endedMs = clock.monotonicMs()
    current = current && { ...current, untilMs: endedMs }
    const left = active.filter(({ metadata }) => pods.holds(metadata.uid ?? '')).length
    log.info('Pods stopped for the shutdown', { left, tookMs: Math.round(endedMs - startMs), pods: active.length })
    await told
    const leftMs = endMs + ownMs - clock.monotonicMs()
    await needs.reported(Math.min(lastWordsMs.most, Math.max(lastWordsMs.least, leftMs)))
  }

  return {
    goingDown,
    begin(action, shares) {
      if (current !== undefined) return
      const off = new AbortController()
      current = { action, untilMs: clock.monotonicMs() + totalMs(shares), off }
      log.info('Machine goes down', { action, forMs: totalMs(shares) })
      // Not waited for: a slow link takes no time from the pods.
      tellLeaving()
      stopping = stopAll(shares, off.signal)
        .catch((error) => log.error('Pods not stopped for the shutdown', { error }))
        .then(() => {
          if (!off.signal.aborted) mayGo()
        })
    },
    callOff() {
      if (current === undefined) return
      log.info('Machine does not go down after all', { action: current.action })
      current.off.abort()
      current = undefined
      pods.resume()
      tellLeaving()
      const message = 'The shutdown was called off: pods run again'
      needs.tell({ type: 'Normal', reason: 'ShutdownCancelled', message })
    },
    async abandon() {
      current?.off.abort()
      await stopping
    },
  }
}

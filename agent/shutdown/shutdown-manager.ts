/** Loop: hold logind's delay lock; when the machine goes down stop the pods in order, then let go; take it again if called off. */
import { shutdownEnding } from '../../api/node-shutdown.ts'
import type { Pod } from '../../api/pod.ts'
import { aborted, unlessAborted } from '../../daemon/aborted.ts'
import { alarm } from '../../daemon/alarm.ts'
import { backoffMs } from '../../daemon/backoff.ts'
import type { Clock } from '../../daemon/clock.ts'
import type { Log } from '../../daemon/log.ts'
import type { MachineCondition } from '../node/conditions.ts'
import type { NodeEvent } from '../node/node-event.ts'
import type { ShutdownInhibitor, ShutdownLock, ShutdownSession } from './inhibitor.ts'
import { type Readiness, shutdownReadiness } from './readiness.ts'
import {
  isShutdownOff,
  type Share,
  type ShutdownSettings,
  type StopGroup,
  sharesOf,
  stopGroups,
  totalMs,
  wantedMs,
} from './shutdown-groups.ts'

/** Of whoever runs the pods. */
export interface StoppablePods {
  /** Those that are not over: they run, or are to run. */
  active(): readonly Pod[]
  /** Something of the pod may run still. */
  holds(uid: string): boolean
  endPod(
    uid: string,
    ending: {
      readonly reason: string
      readonly message: string
      readonly gracePeriodSeconds: number
      readonly disruption: string
    },
  ): void
  /** The shutdown is called off. */
  goOn(): void
}

export type GoingDown = {
  /** logind's word for what comes after: `reboot`, `poweroff`; undefined where it does not say. */
  readonly action: string | undefined
  /** Of the time for the pods. */
  readonly leftMs: number
}

export type ShutdownNeeds = {
  readonly inhibitor: ShutdownInhibitor
  readonly pods: StoppablePods
  /** Tells the control plane that we go (or do not after all), and resolves when it was told, or soon anyway. */
  readonly leaving: (goingDown: GoingDown | undefined) => Promise<void>
  /** Resolves when all that was reported is told, or soon anyway. */
  readonly reported: () => Promise<void>
  readonly clock: Clock
  readonly random: () => number
  readonly log: Log
  readonly tell: (event: NodeEvent) => void
  /** The node is to be looked at: what we say of it changed. */
  readonly changed: () => void
}

export interface ShutdownManager {
  /** Set from the moment the machine goes down until it is down, or does not after all. */
  goingDown(): GoingDown | undefined
  /** None where there is no logind, or nothing to stop. */
  conditions(): readonly MachineCondition[]
  run(signal: AbortSignal): Promise<void>
}

/** Also how soon a bus that hangs is noticed. */
const lookMs = 30_000
const retry = { firstMs: 1_000, maxMs: 30_000 }
/** Of what logind grants this is for us: to see that all have ended, to say it, and to take leave. */
const ownMs = 1_000
/** A container that is killed at the end of its time is gone a moment later. */
const killMs = 500
const stepMs = 50
/** Nobody waits for us, but something is always left of a machine's last seconds. */
const unheldMs = 2_000
const nothingKnown: Readiness = {
  held: undefined,
  trouble: undefined,
  shares: [],
  denied: undefined,
  others: [],
  scheduled: undefined,
}
const never = new AbortController().signal

export function shutdownManager(needs: ShutdownNeeds, settings: ShutdownSettings): ShutdownManager {
  const { inhibitor, pods, clock, random, log } = needs
  const wake = alarm(clock)
  let lock: ShutdownLock | undefined
  let readiness: Readiness = nothingKnown
  let shown = ''
  /** What comes after, as the signal said it. */
  let hint: string | undefined
  let shutdown:
    | { readonly action: string | undefined; readonly untilMs: number; readonly off: AbortController }
    | undefined
  let stopping: Promise<void> = Promise.resolve()

  const goingDown = (): GoingDown | undefined =>
    shutdown && { action: shutdown.action, leftMs: Math.max(0, shutdown.untilMs - clock.monotonicMs()) }

  const show = (next: Readiness) => {
    readiness = next
    const { reason, message, status } = shutdownReadiness(readiness)
    if (shown === `${reason} ${message}`) return
    shown = `${reason} ${message}`
    const facts = { reason, because: message }
    if (status === 'True' && reason === 'DelayLockHeld') log.info('Shutdowns wait for the pods', facts)
    else log.warn('Shutdowns may not wait for the pods', facts)
    needs.changed()
  }

  const letGo = () => {
    lock?.release()
    lock = undefined
  }

  /** The delay is asked for where one is configured; what is granted is what there is to share. */
  const settleDelay = async (session: ShutdownSession) => {
    const wanted = wantedMs(settings)
    const { grantedMs, by } = await session.askDelay(wanted === undefined ? undefined : wanted + ownMs)
    const shares = sharesOf(settings, usable(grantedMs))
    const isDenied = wanted !== undefined && grantedMs < wanted + ownMs
    return { grantedMs, shares, denied: isDenied ? { wantedMs: wanted, by } : undefined }
  }

  const look = async (session: ShutdownSession) => {
    // A signal may be anybody's; what logind itself says is not.
    if (await session.isPreparing()) begin(hint ?? (await session.scheduled())?.action)
    else callOff()
    hint = undefined
    if (shutdown !== undefined) return
    const { grantedMs, shares, denied } = await settleDelay(session)
    let { ours, others } = await session.locks()
    if (!ours) letGo()
    lock ??= await session.takeLock()
    if (!ours) ({ ours, others } = await session.locks())
    if (!ours) throw new Error('logind does not know the lock it gave')
    const scheduled = await session.scheduled()
    show({ held: { delayMs: grantedMs, how: lock.how }, trouble: undefined, shares, denied, others, scheduled })
  }

  const begin = (action: string | undefined) => {
    if (shutdown !== undefined) return
    const shares = lock === undefined ? sharesOf(settings, unheldMs) : readiness.shares
    const off = new AbortController()
    shutdown = { action, untilMs: clock.monotonicMs() + totalMs(shares), off }
    stopping = goDown(shares, lock, off.signal)
    lock = undefined
  }

  const goDown = async (shares: readonly Share[], held: ShutdownLock | undefined, off: AbortSignal) => {
    const startMs = clock.monotonicMs()
    const active = pods.active()
    log.info('Machine goes down', { action: shutdown?.action, pods: active.length, forMs: totalMs(shares) })
    try {
      // First that we go as planned, then that the node is not ready: else its pods would be given up.
      await needs.leaving(goingDown())
      needs.changed()
      for (const group of stopGroups(shares, active)) await stopGroup(group, startMs + totalMs(shares), off)
      if (off.aborted || shutdown === undefined) return
      shutdown = { ...shutdown, untilMs: clock.monotonicMs() }
      const left = active.filter(({ metadata }) => pods.holds(metadata.uid ?? '')).length
      log.info('Pods stopped for the shutdown', { left, tookMs: Math.round(clock.monotonicMs() - startMs) })
      await needs.reported()
    } catch (error) {
      log.error('Pods not stopped for the shutdown', { error })
    } finally {
      held?.release()
    }
  }

  const stopGroup = async ({ pods: group, graceMs }: StopGroup, endMs: number, off: AbortSignal) => {
    if (off.aborted) return
    const untilMs = Math.min(clock.monotonicMs() + graceMs, endMs) + killMs
    for (const { uid, gracePeriodSeconds } of group) {
      pods.endPod(uid, { ...shutdownEnding, gracePeriodSeconds, disruption: shutdownEnding.message })
    }
    while (!off.aborted && clock.monotonicMs() < untilMs && group.some(({ uid }) => pods.holds(uid))) {
      await clock.sleep(stepMs, off)
    }
  }

  const callOff = () => {
    if (shutdown === undefined) return
    log.info('Machine does not go down after all', { action: shutdown.action })
    shutdown.off.abort()
    shutdown = undefined
    shown = ''
    pods.goOn()
    void needs.leaving(undefined)
    needs.tell({ type: 'Normal', reason: 'ShutdownCancelled', message: 'The shutdown was called off: pods run again' })
    needs.changed()
  }

  const keep = async (session: ShutdownSession, signal: AbortSignal) => {
    let isOpen = true
    void session.ended.then(() => {
      isOpen = false
      wake.ring()
    })
    while (!signal.aborted && isOpen) {
      await look(session)
      await wake.sleep(lookMs, signal)
    }
    if (!isOpen) throw new Error('The connection to the system bus has ended')
  }

  const oneSession = async (signal: AbortSignal) => {
    const session = await inhibitor.open({
      preparing(isPreparing, action) {
        if (isPreparing) hint = action ?? hint
        wake.ring()
      },
      changed: wake.ring,
    })
    try {
      await keep(session, signal)
    } finally {
      session.close()
    }
  }

  return {
    goingDown,
    conditions: () =>
      isShutdownOff(settings) || (shown === '' && shutdown === undefined) ? [] : [shutdownReadiness(readiness)],
    async run(signal) {
      if (isShutdownOff(settings) || !inhibitor.isHere()) return aborted(signal)
      for (let failures = 0; !signal.aborted; ) {
        const openedMs = clock.monotonicMs()
        try {
          await oneSession(signal)
        } catch (error) {
          if (signal.aborted) break
          failures = clock.monotonicMs() - openedMs > lookMs ? 1 : failures + 1
          log.debug('logind is out of reach', { error })
          // The lock is a file that logind holds the other end of: it outlives the bus.
          if (failures > 2 || lock === undefined) show({ ...readiness, held: undefined, trouble: causeOf(error) })
          await clock.sleep(backoffMs(failures - 1, retry, random), signal)
        }
      }
      shutdown?.off.abort()
      await unlessAborted(stopping, never)
      letGo()
    },
  }
}

/** Never all of a short delay: also 2 s are worth to be shared. */
function usable(grantedMs: number): number {
  return Math.max(grantedMs / 2, grantedMs - ownMs)
}

function causeOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error)
}

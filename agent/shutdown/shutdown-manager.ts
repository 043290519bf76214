/** Loop: holds logind's delay lock until the pods of a machine that shuts down have stopped; takes it again after a cancellation. */

import { aborted } from '../../daemon/aborted.ts'
import { type Alarm, alarm } from '../../daemon/alarm.ts'
import { backoffMs } from '../../daemon/backoff.ts'
import type { Cell } from '../../daemon/cell.ts'
import { messageOf } from '../../daemon/errors.ts'
import type { Loop } from '../../daemon/run.ts'
import type { MachineCondition } from '../node/status/conditions.ts'
import { type DepartureNeeds, departure } from './departure.ts'
import type { ShutdownInhibitor, ShutdownLock, ShutdownSession } from './inhibitor.ts'
import { type Readiness, shutdownReadiness } from './readiness.ts'
import { isShutdownOff, ownMs, type ShutdownSettings, sharesOf, usableMs, wantedMs } from './shutdown-groups.ts'

export type ShutdownNeeds = DepartureNeeds & {
  readonly inhibitor: ShutdownInhibitor
  readonly random: () => number
  readonly writes: {
    /** Empty where there is no logind, or nothing to stop. */
    readonly shutdownConditions: Cell<readonly MachineCondition[]>
  }
}

/** The poll interval; it also bounds the time until a hung bus is detected. */
const lookMs = 30_000
const retry = { firstMs: 1_000, maxMs: 30_000 }
/** Without a delay lock: logind does not wait, but stopping the other services leaves some seconds. */
const unheldMs = 2_000
const initialReadiness: Readiness = {
  held: undefined,
  trouble: undefined,
  shares: [],
  denied: undefined,
  others: [],
  scheduled: undefined,
}

export function shutdownManager(needs: ShutdownNeeds, settings: ShutdownSettings): Loop {
  const { inhibitor, clock, random, log, writes } = needs
  const wake = alarm(clock)
  let lock: ShutdownLock | undefined
  let readiness: Readiness = initialReadiness
  let shown = ''
  /** The action in logind's signal. */
  let hint: string | undefined
  const show = (next: Readiness) => {
    readiness = next
    const condition = shutdownReadiness(readiness)
    const { reason, message, status } = condition
    if (shown === `${reason} ${message}`) return
    shown = `${reason} ${message}`
    const facts = { reason, because: message }
    if (status === 'True' && reason === 'DelayLockHeld') log.info('Shutdowns wait for the pods', facts)
    else log.warn('Shutdowns may not wait for the pods', facts)
    writes.shutdownConditions.set([condition])
  }

  const releaseLock = () => {
    lock?.release()
    lock = undefined
  }
  const leave = departure(needs, releaseLock)

  const begin = async (session: ShutdownSession) => {
    // Read now: what was scheduled at the last poll may have been cancelled and replaced since.
    const action = hint ?? (await session.action().catch(() => undefined))
    // If the poll failed after it took the lock, the granted delay is unknown.
    const isKnown = lock !== undefined && readiness.shares.length > 0
    leave.begin(action, isKnown ? readiness.shares : sharesOf(settings, unheldMs))
  }

  const look = async (session: ShutdownSession) => {
    // A signal may come from any process; a reply comes from logind.
    if (!(await session.isPreparing())) leave.cancel()
    else if (writes.goingDown.get() === undefined) await begin(session)
    hint = undefined
    if (writes.goingDown.get() !== undefined) return
    const { grantedMs, shares, denied } = await settleDelay(session, settings)
    let { isHeld, others } = await session.locks(lock)
    if (lock === undefined || !isHeld) {
      releaseLock()
      lock = await session.takeLock()
      ;({ isHeld, others } = await session.locks(lock))
      if (!isHeld) throw new Error('logind does not list the lock that it granted')
    }
    const scheduled = await session.scheduled()
    show({ held: { delayMs: grantedMs, how: lock.how }, trouble: undefined, shares, denied, others, scheduled })
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
      await pollUntilEnd(session, wake, () => look(session), signal)
    } finally {
      session.close()
    }
  }

  const showFailure = (error: unknown, failures: number) => {
    log.debug('logind is out of reach', { error })
    // The lock is a file descriptor whose other end logind holds, so it stays valid when the bus stops.
    if (writes.goingDown.get() === undefined && (failures > 2 || lock === undefined))
      show({ ...readiness, held: undefined, trouble: messageOf(error) })
  }

  const sessions = async (signal: AbortSignal) => {
    for (let failures = 0; !signal.aborted; ) {
      const openedMs = clock.monotonicMs()
      try {
        await oneSession(signal)
      } catch (error) {
        if (signal.aborted) return
        failures = clock.monotonicMs() - openedMs > lookMs ? 1 : failures + 1
        showFailure(error, failures)
        await clock.sleep(backoffMs(failures - 1, retry, random), signal)
      }
    }
  }

  return {
    name: 'shutdown',
    async run(signal) {
      if (isShutdownOff(settings)) return aborted(signal)
      // The bus may start after the agent.
      while (!signal.aborted && !inhibitor.isAvailable()) await clock.sleep(lookMs, signal)
      await sessions(signal)
      await leave.abandon()
      releaseLock()
    },
  }
}

/** The configured delay is requested; the granted one is shared among the groups of pods. */
async function settleDelay(session: ShutdownSession, settings: ShutdownSettings) {
  const wanted = wantedMs(settings)
  const { grantedMs, because } = await session.configureDelay(wanted === undefined ? undefined : wanted + ownMs)
  const shares = sharesOf(settings, usableMs(grantedMs))
  const isDenied = wanted !== undefined && grantedMs < wanted + ownMs
  return { grantedMs, shares, denied: isDenied ? { wantedMs: wanted, because } : undefined }
}

/** Calls `look` at an interval and after each signal of logind. Rejects when the connection to the bus ends. */
async function pollUntilEnd(session: ShutdownSession, wake: Alarm, look: () => Promise<void>, signal: AbortSignal) {
  let isOpen = true
  void session.ended.then(() => {
    isOpen = false
    wake.ring()
  })
  while (!signal.aborted && isOpen) {
    await look()
    await wake.sleep(lookMs, signal)
  }
  if (!isOpen) throw new Error('The connection to the system bus has ended')
}

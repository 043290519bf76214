/** The condition GracefulShutdownReady: a shutdown now would stop the pods of this machine in order. */
import { rfc3339 } from '../../daemon/clock.ts'
import type { MachineCondition } from '../node/status/conditions.ts'
import type { OtherLock, ScheduledShutdown } from './inhibitor.ts'
import type { Share } from './shutdown-groups.ts'

export type Readiness = {
  /** undefined while it is not held; then `trouble` has the reason. */
  readonly held: { readonly delayMs: number; readonly how: 'descriptor' | 'process' } | undefined
  readonly trouble: string | undefined
  readonly shares: readonly Share[]
  /** The configured time if logind did not grant it, and the reason if it can be determined. */
  readonly denied: { readonly wantedMs: number; readonly because: string | undefined } | undefined
  readonly others: readonly OtherLock[]
  readonly scheduled: ScheduledShutdown | undefined
}

export function shutdownReadiness({ held, trouble, shares, denied, others, scheduled }: Readiness): MachineCondition {
  const type = 'GracefulShutdownReady'
  if (held === undefined) {
    const message = `pods would not be stopped in order: ${trouble ?? 'the lock is not taken yet'}`
    return { type, status: 'False', reason: 'DelayLockNotHeld', message }
  }
  const parts = shares.map(({ priority, graceMs }) => `${secondsText(graceMs)} from priority ${priority}`).join(', ')
  const message = [
    `logind waits up to ${secondsText(held.delayMs)} for the agent; pods have ${parts}`,
    ...(denied === undefined
      ? []
      : [`${secondsText(denied.wantedMs)} were configured, and ${denied.because ?? 'not granted'}`]),
    ...(held.how === 'process' ? ['the lock is held by a child process'] : []),
    ...(scheduled === undefined ? [] : [`a ${scheduled.action} is scheduled for ${rfc3339(scheduled.atWallMs)}`]),
    ...(others.length === 0 ? [] : [`locks are also held by ${others.map(otherText).join(', ')}`]),
  ].join('; ')
  return { type, status: 'True', reason: denied === undefined ? 'DelayLockHeld' : 'DelayShortened', message }
}

function otherText({ who, why, mode }: OtherLock): string {
  return `${who} (${mode}: ${why})`
}

function secondsText(ms: number): string {
  return `${Math.round(ms / 100) / 10} s`
}

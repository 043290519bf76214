/** Logs the begin and the end of pressures, and signals that cannot be read: each change once. */
import type { Log } from '../../daemon/log.ts'
import type { Observations } from './observations.ts'
import type { Situation } from './pressure.ts'
import { pressureOf } from './thresholds.ts'

export interface PressureLog {
  unread(observations: Observations): void
  pressures(before: Situation | undefined, after: Situation, observations: Observations): void
}

export function pressureLog(log: Log): PressureLog {
  let unread = ''
  return {
    unread(observations) {
      const now = observations.unread.map(({ signal, because }) => `${signal}: ${because}`).join('; ')
      if (now !== unread && now !== '') log.warn('Some signals cannot be read', { unread: observations.unread })
      if (now !== unread && now === '') log.info('All signals can be read again')
      unread = now
    },
    pressures(before, after, { observed, stalls }) {
      for (const type of after.lastMet.keys()) {
        if (before?.lastMet.has(type)) continue
        const facts = observed.filter(({ signal }) => pressureOf(signal) === type)
        log.warn('Node is under pressure', { pressure: type, observed: facts, stalls })
      }
      for (const type of before?.lastMet.keys() ?? []) {
        if (!after.lastMet.has(type)) log.info('Node is no longer under pressure', { pressure: type })
      }
    },
  }
}

/** Loop: looks at the machine's health, each side of it in its own time, and tells what changed. */
import { aborted } from '../../daemon/aborted.ts'
import { alarm } from '../../daemon/alarm.ts'
import type { Clock } from '../../daemon/clock.ts'
import type { Log } from '../../daemon/log.ts'
import type { MachineCondition } from '../node/conditions.ts'
import type { NodeEvent } from '../node/node-event.ts'
import type { Finding, HealthCheck } from './finding.ts'
import { type Settled, settle } from './settling.ts'

export type HealthNeeds = {
  readonly checks: readonly HealthCheck[]
  readonly clock: Clock
  readonly log: Log
  readonly tell: (event: NodeEvent) => void
  /** Another condition is shown than before; also once after the first look. */
  readonly changed: () => void
}

export interface HealthManager {
  /** In the order of the checks. Undefined until the machine was looked at for the first time. */
  conditions(): readonly MachineCondition[] | undefined
  /** Why the machine is not fit to run pods, each a sentence. */
  problems(): readonly string[]
  run(signal: AbortSignal): Promise<void>
}

/** All checks are woken together, so that an idle machine sleeps on. */
const healthTickMs = 5_000
/** Whoever has not answered by then is looked at again when it has; the others are not kept waiting. */
const patienceMs = 4_000

type Progress = { readonly settled: Settled | undefined; readonly dueMs: number; readonly isLooking: boolean }

export function healthManager({ checks, clock, log, tell, changed }: HealthNeeds): HealthManager {
  const progress = new Map<HealthCheck, Progress>()
  const troubles = new Map<string, string>()
  let hasLooked = false
  let shown = ''

  const shownBy = (check: HealthCheck): Finding | undefined => progress.get(check)?.settled?.shown

  const look = async (check: HealthCheck) => {
    const before = progress.get(check)
    const startedMs = clock.monotonicMs()
    const dueMs = startedMs + check.periodMs - healthTickMs / 2
    progress.set(check, { settled: before?.settled, dueMs, isLooking: true })
    let settled = before?.settled
    try {
      settled = settle(before?.settled, await check.look(), clock.monotonicMs(), check)
      troubles.delete(check.type)
    } catch (error) {
      const trouble = String(error)
      if (troubles.get(check.type) !== trouble) log.warn('Health cannot be told', { condition: check.type, error })
      troubles.set(check.type, trouble)
    }
    progress.set(check, { settled, dueMs, isLooking: false })
    tellChange(check, before?.settled?.shown, settled?.shown)
  }

  const tellChange = (check: HealthCheck, before: Finding | undefined, after: Finding | undefined) => {
    const isNews = before?.status !== after?.status || before?.reason !== after?.reason
    if (!isNews || after === undefined) return
    const facts = { condition: check.type, reason: after.reason, because: after.message }
    if (after.status === 'True') {
      log.warn('Machine is not well', facts)
      tell({ type: 'Warning', reason: after.reason, message: `${check.type}: ${after.message}` })
    } else if (before?.status === 'True') {
      log.info('Machine is well again', facts)
      tell({ type: 'Normal', reason: after.reason, message: `${check.type} is over: ${after.message}` })
    }
  }

  const isDue = (check: HealthCheck, nowMs: number) => {
    const known = progress.get(check)
    return known === undefined || (!known.isLooking && nowMs >= known.dueMs)
  }

  const pass = async (signal: AbortSignal) => {
    const nowMs = clock.monotonicMs()
    const patience = alarm(clock)
    const looks = Promise.all(checks.filter((check) => isDue(check, nowMs)).map(look)).then(patience.ring)
    await Promise.race([looks, patience.sleep(patienceMs, signal)])
    patience.ring()
    const now = JSON.stringify(conditions())
    const isFirst = !hasLooked
    hasLooked = true
    if (isFirst || now !== shown) changed()
    shown = now
  }

  const conditions = (): readonly MachineCondition[] =>
    checks.flatMap((check) => {
      const finding = shownBy(check)
      return finding === undefined ? [] : [{ type: check.type, ...finding }]
    })

  return {
    conditions: () => (hasLooked ? conditions() : undefined),
    problems: () =>
      checks.flatMap((check) => {
        const finding = shownBy(check)
        return check.unfit && finding?.status === 'True' ? [finding.message] : []
      }),
    async run(signal) {
      if (checks.length === 0) {
        hasLooked = true
        return aborted(signal)
      }
      while (!signal.aborted) {
        await pass(signal)
        await clock.sleep(healthTickMs, signal)
      }
    },
  }
}

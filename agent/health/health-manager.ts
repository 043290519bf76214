/** Loop: runs the checks of the machine's health, each at its own interval, and records what changed. */

import type { HealthConditionType } from '../../api/node.ts'
import { aborted } from '../../daemon/aborted.ts'
import { alarm } from '../../daemon/alarm.ts'
import type { Clock } from '../../daemon/clock.ts'
import type { Log } from '../../daemon/log.ts'
import type { MachineCondition } from '../node/conditions.ts'
import type { NodeEvent } from '../node/node-event.ts'
import type { CheckResult, CheckTiming, HealthFinding } from './condition-check.ts'
import { type Settled, settle } from './settling.ts'

/** A check as this loop runs it. */
export type ScheduledCheck = CheckTiming & {
  readonly type: HealthConditionType
  /** While it is True the node is not Ready. */
  readonly unfit?: true
  readonly look: () => CheckResult
}

export type HealthNeeds = {
  readonly checks: readonly ScheduledCheck[]
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
/** A check that has not answered by then is run again when it has; the others do not wait for it. */
const patienceMs = 4_000

type Progress = { readonly settled: Settled | undefined; readonly dueMs: number; readonly isLooking: boolean }

export function healthManager({ checks, clock, log, tell, changed }: HealthNeeds): HealthManager {
  const progress = new Map<ScheduledCheck, Progress>()
  const troubles = new Map<string, string>()
  let hasLooked = false
  let shown = ''

  const shownBy = (check: ScheduledCheck): HealthFinding | undefined => progress.get(check)?.settled?.shown

  const look = async (check: ScheduledCheck) => {
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
      if (troubles.get(check.type) !== trouble) log.warn('Health check failed', { condition: check.type, error })
      troubles.set(check.type, trouble)
    }
    progress.set(check, { settled, dueMs, isLooking: false })
    recordChange(check, before?.settled?.shown, settled?.shown)
  }

  const recordChange = (check: ScheduledCheck, before: HealthFinding | undefined, after: HealthFinding | undefined) => {
    const isChanged = before?.status !== after?.status || before?.reason !== after?.reason
    if (!isChanged || after === undefined) return
    const facts = { condition: check.type, reason: after.reason, because: after.message }
    if (after.status === 'True') {
      log.warn('Machine is unhealthy', facts)
      tell({ type: 'Warning', reason: after.reason, message: `${check.type}: ${after.message}` })
    } else if (before?.status === 'True') {
      log.info('Machine is healthy again', facts)
      tell({ type: 'Normal', reason: after.reason, message: `${check.type} is over: ${after.message}` })
    }
  }

  const isDue = (check: ScheduledCheck, nowMs: number) => {
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
      if (finding === undefined) return []
      const { status, reason, message } = finding
      return [{ type: check.type, status, reason, message }]
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

/** Loop: runs the checks of the machine's health, each at its own interval, and records changes. */

import type { HealthConditionType } from '../../api/node.ts'
import { aborted } from '../../daemon/aborted.ts'
import { alarm } from '../../daemon/alarm.ts'
import type { Cell } from '../../daemon/cell.ts'
import type { Clock } from '../../daemon/clock.ts'
import type { Log } from '../../daemon/log.ts'
import type { Loop } from '../../daemon/run.ts'
import type { MachineCondition, MachineHealth } from '../node/status/conditions.ts'
import type { NodeEvent } from '../node/status/node-event.ts'
import type { CheckResult, CheckTiming, HealthFinding } from './condition-check.ts'
import { type Settled, settle } from './settling.ts'

/** A check with its state. */
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
  readonly recordEvent: (event: NodeEvent) => void
  /** Undefined until the checks ran once. */
  readonly writes: { readonly machineHealth: Cell<MachineHealth | undefined> }
}

/** Equality of the cell: listeners are called when a condition differs. */
export function isSameHealth(before: MachineHealth | undefined, after: MachineHealth | undefined): boolean {
  return JSON.stringify(before?.conditions) === JSON.stringify(after?.conditions)
}

/** All checks run on one tick, so that an idle machine wakes up less often. */
const healthTickMs = 5_000
/** Other checks do not wait longer than this for one check. A check runs again only after it has answered. */
const patienceMs = 4_000

type Progress = { readonly settled: Settled | undefined; readonly dueMs: number; readonly isLooking: boolean }

export function healthManager({ checks, clock, log, recordEvent, writes }: HealthNeeds): Loop {
  const progress = new Map<ScheduledCheck, Progress>()
  const troubles = new Map<string, string>()
  /** Results of one pass are written together, at its end. */
  let inPass = false

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
    if (!inPass) writes.machineHealth.set(current())
  }

  const recordChange = (check: ScheduledCheck, before: HealthFinding | undefined, after: HealthFinding | undefined) => {
    const isChanged = before?.status !== after?.status || before?.reason !== after?.reason
    if (!isChanged || after === undefined) return
    const facts = { condition: check.type, reason: after.reason, because: after.message }
    if (after.status === 'True') {
      log.warn('Machine is unhealthy', facts)
      recordEvent({ type: 'Warning', reason: after.reason, message: `${check.type}: ${after.message}` })
    } else if (before?.status === 'True') {
      log.info('Machine is healthy again', facts)
      recordEvent({ type: 'Normal', reason: after.reason, message: `${check.type} is over: ${after.message}` })
    }
  }

  const isDue = (check: ScheduledCheck, nowMs: number) => {
    const known = progress.get(check)
    return known === undefined || (!known.isLooking && nowMs >= known.dueMs)
  }

  const pass = async (signal: AbortSignal) => {
    const nowMs = clock.monotonicMs()
    const patience = alarm(clock)
    inPass = true
    const looks = Promise.all(checks.filter((check) => isDue(check, nowMs)).map(look)).then(patience.ring)
    await Promise.race([looks, patience.sleep(patienceMs, signal)])
    patience.ring()
    inPass = false
    writes.machineHealth.set(current())
  }

  const conditions = (): readonly MachineCondition[] =>
    checks.flatMap((check) => {
      const finding = shownBy(check)
      if (finding === undefined) return []
      const { status, reason, message } = finding
      return [{ type: check.type, status, reason, message }]
    })

  const problems = (): readonly string[] =>
    checks.flatMap((check) => {
      const finding = shownBy(check)
      return check.unfit && finding?.status === 'True' ? [finding.message] : []
    })

  const current = (): MachineHealth => ({ conditions: conditions(), problems: problems() })

  return {
    name: 'machine-health',
    async run(signal) {
      if (checks.length === 0) {
        writes.machineHealth.set(current())
        return aborted(signal)
      }
      while (!signal.aborted) {
        await pass(signal)
        await clock.sleep(healthTickMs, signal)
      }
    },
  }
}

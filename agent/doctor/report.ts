/** All findings together, as a program reads them, and the exit status. */
import { bool, type Described, integer, list, object, oneOf, optional, text } from '../../api/schema.ts'
import type { DoctorFinding, Verdict } from './doctor-finding.ts'

/** What `-o json` prints. */
export const DoctorReportSchema = object({
  apiVersion: oneOf('bramble.dev/v1alpha1'),
  kind: oneOf('DoctorReport'),
  time: text,
  agentVersion: text,
  hostname: text,
  /** Board and operating system, as text. */
  machine: text,
  /** `/`, or the saved tree that was inspected. */
  root: text,
  findings: list(
    object({
      check: text,
      verdict: oneOf('ok', 'warning', 'problem', 'unknown'),
      found: text,
      remedy: optional(text),
      /** What `--fix` would do. */
      fix: optional(text),
    }),
  ),
  summary: object({ problem: integer, warning: integer, ok: integer, unknown: integer }),
  /** What `--fix` did, or why it could not. */
  fixed: list(object({ check: text, what: text, error: optional(text) })),
  restartNeeded: bool,
})
export type DoctorReport = Described<typeof DoctorReportSchema>

export type Done = {
  readonly check: string
  readonly what: string
  readonly needsRestart: boolean
  /** Why the fix failed. */
  readonly error?: string
}

export type About = Pick<DoctorReport, 'time' | 'agentVersion' | 'hostname' | 'machine' | 'root'>

export function doctorReport(about: About, findings: readonly DoctorFinding[], done: readonly Done[]): DoctorReport {
  const count = (verdict: Verdict) => findings.filter((one) => one.verdict === verdict).length
  return {
    apiVersion: 'bramble.dev/v1alpha1',
    kind: 'DoctorReport',
    ...about,
    findings: findings.map(({ fix, ...rest }) => ({ ...rest, ...(fix === undefined ? {} : { fix: fix.summary }) })),
    summary: { problem: count('problem'), warning: count('warning'), ok: count('ok'), unknown: count('unknown') },
    fixed: done.map(({ needsRestart: _, ...rest }) => rest),
    restartNeeded: done.some(({ needsRestart, error }) => needsRestart && error === undefined),
  }
}

/** 1: problems. 2: warnings only. 0: neither; unknown results do not count. */
export function exitStatusOf({ summary }: DoctorReport): number {
  if (summary.problem > 0) return 1
  return summary.warning > 0 ? 2 : 0
}

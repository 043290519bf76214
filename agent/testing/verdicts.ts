/** The doctor's findings in a short form, for tests. */
import type { DoctorFinding } from '../doctor/doctor-finding.ts'

/** Check to verdict. */
export function verdicts(findings: readonly DoctorFinding[]): { readonly [check: string]: DoctorFinding['verdict'] } {
  return Object.fromEntries(findings.map(({ check, verdict }) => [check, verdict]))
}

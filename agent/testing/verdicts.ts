/** What the doctor found, in short. */
import type { DoctorFinding } from '../doctor/doctor-finding.ts'

/** Check to verdict. */
export function verdicts(findings: readonly DoctorFinding[]): { readonly [check: string]: DoctorFinding['verdict'] } {
  return Object.fromEntries(findings.map(({ check, verdict }) => [check, verdict]))
}

/** What the doctor found, in short. */
import type { Finding } from '../doctor/finding.ts'

/** Check to verdict. */
export function verdicts(findings: readonly Finding[]): { readonly [check: string]: Finding['verdict'] } {
  return Object.fromEntries(findings.map(({ check, verdict }) => [check, verdict]))
}

/** What the doctor of a machine found, in the order in which it is read. */
import type { ShownFinding } from '../../api/dashboard/dashboard-messages.ts'
import type { UrgencyLevel } from '../../api/dashboard/node-view.ts'

const order: readonly ShownFinding['verdict'][] = ['problem', 'warning', 'unknown', 'ok']

/** Findings that need attention, the worst first; and what is fine, or could not be checked. */
export function sortedFindings(findings: readonly ShownFinding[]) {
  const sorted = [...findings].sort((a, b) => order.indexOf(a.verdict) - order.indexOf(b.verdict))
  const isUrgent = ({ verdict }: ShownFinding) => verdict === 'problem' || verdict === 'warning'
  return { urgent: sorted.filter(isUrgent), others: sorted.filter((one) => !isUrgent(one)) }
}

export function findingLevel({ verdict }: ShownFinding): UrgencyLevel {
  return ({ problem: 'bad', warning: 'warn', unknown: 'idle', ok: 'good' } as const)[verdict]
}

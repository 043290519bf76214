/** The checks of `health/` as findings of the doctor: the same decisions, based on a single reading. */
import { type HealthSource, healthChecks } from '../health/checks.ts'
import type { ConditionCheck, HealthFinding } from '../health/condition-check.ts'
import { type DoctorFinding, ok, problem, unknown, warning } from './doctor-finding.ts'

export type HealthLook = {
  readonly check: ConditionCheck<HealthSource>
  /** Rejects with the reason where the source cannot be read. */
  readonly look: () => Promise<DoctorFinding>
}

/** One for each condition of the node. */
export function healthLooks(source: () => Promise<HealthSource>): readonly HealthLook[] {
  const context = { settings: { highTemperatureCelsius: undefined }, wasWrong: false }
  return healthChecks.map((check) => ({
    check,
    look: async () => healthFinding(check, await check.look(await source(), context)),
  }))
}

/** A condition that is not True but has a remedy is a warning: the problem occurred since the machine was started. */
export function healthFinding(
  { name, unknown: nothingFound }: { readonly name: string; readonly unknown: string },
  finding: HealthFinding | undefined,
): DoctorFinding {
  if (finding === undefined) return unknown(name, nothingFound)
  const { status, found, remedy } = finding
  if (status === 'True') return problem(name, found, remedy ?? `See the condition of the node: ${finding.reason}`)
  return remedy === undefined ? ok(name, found) : warning(name, found, remedy)
}

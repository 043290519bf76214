/** The checks of `health/`, as findings of the doctor: the same decisions, on one look instead of many. */
import { type HealthSource, healthChecks } from '../health/checks.ts'
import type { ConditionCheck, HealthFinding } from '../health/condition-check.ts'
import { type DoctorFinding, ok, problem, unknown, warning } from './doctor-finding.ts'

export type HealthLook = {
  readonly check: ConditionCheck<HealthSource>
  /** Rejects where the source cannot be read, with the reason. */
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

/** A condition that is not True, but has a remedy, is a warning: something was wrong since the machine was started. */
export function healthFinding(
  { name, unknown: nothingFound }: { readonly name: string; readonly unknown: string },
  finding: HealthFinding | undefined,
): DoctorFinding {
  if (finding === undefined) return unknown(name, nothingFound)
  const { status, found, remedy } = finding
  if (status === 'True') return problem(name, found, remedy ?? `See the condition of the node: ${finding.reason}`)
  return remedy === undefined ? ok(name, found) : warning(name, found, remedy)
}

/** A check of the machine's health: a condition of the node, and a line in the output of `bramble-agent doctor`. */
import type { HealthConditionType } from '../../api/node.ts'

/** `True`: there is evidence of a problem. */
export type HealthFinding = {
  readonly status: 'True' | 'False'
  /** One word in CamelCase, as in Kubernetes' conditions. */
  readonly reason: string
  /** A sentence without its full stop. */
  readonly found: string
  /** What to do. A `False` finding has a remedy if the problem occurred since the machine was started. */
  readonly remedy?: string
  /** `found` and `remedy`, as the condition shows them. */
  readonly message: string
}

export function wrong(reason: string, found: string, remedy?: string): HealthFinding {
  return finding('True', reason, found, remedy)
}

export function fine(reason: string, found: string, remedy?: string): HealthFinding {
  return finding('False', reason, found, remedy)
}

function finding(status: HealthFinding['status'], reason: string, found: string, remedy: string | undefined) {
  return remedy === undefined
    ? { status, reason, found, message: found }
    : { status, reason, found, remedy, message: `${found}. ${remedy}` }
}

export type CheckSettings = {
  /** Limit for every thermal zone, instead of the hardware's own limits. */
  readonly highTemperatureCelsius: number | undefined
}

export type CheckContext = {
  readonly settings: CheckSettings
  /** The previous reading was a problem. Used for hysteresis. */
  readonly wasWrong: boolean
}

/** Undefined: this machine has no source for it. */
export type CheckResult = HealthFinding | undefined | Promise<HealthFinding | undefined>

export type CheckTiming = {
  readonly periodMs: number
  /** Evidence must last this long before the condition is True. */
  readonly riseMs?: number
  /** The condition stays True until there has been no evidence for this long. */
  readonly holdMs: number
}

/** `Source`: the part of the machine that the check reads. */
export type ConditionCheck<Source> = CheckTiming & {
  readonly type: HealthConditionType
  /** The name in the output of the doctor, such as `wifi`. */
  readonly name: string
  /** The doctor prints this where the machine has no source for the check. */
  readonly unknown: string
  /** While it is True the node is not Ready. */
  readonly unfit?: true
  readonly look: (source: Source, context: CheckContext) => CheckResult
}

export const seconds = 1_000
export const minutes = 60 * seconds

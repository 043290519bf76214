/** A check of the machine's health: a condition of the node, and a line in the output of `bramble-agent doctor`. */
import type { HealthConditionType } from '../../api/node.ts'

/** `True`: something is wrong, and there is evidence of it. */
export type HealthFinding = {
  readonly status: 'True' | 'False'
  /** As in Kubernetes' conditions: one word in CamelCase. */
  readonly reason: string
  /** A sentence without its full stop. */
  readonly found: string
  /** What a person can do; of a `False` one: something was wrong since the machine was started. */
  readonly remedy?: string
  /** Both, as the condition shows them. */
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
  /** For every thermal zone, in the place of the hardware's own limits. */
  readonly highTemperatureCelsius: number | undefined
}

export type CheckContext = {
  readonly settings: CheckSettings
  /** The last look found something wrong: it may take more to be well again. */
  readonly wasWrong: boolean
}

/** Undefined: this machine has no source for it. */
export type CheckResult = HealthFinding | undefined | Promise<HealthFinding | undefined>

export type CheckTiming = {
  readonly periodMs: number
  /** Evidence must last this long before it is shown. */
  readonly riseMs?: number
  /** It is shown until there has been no evidence for this long. */
  readonly holdMs: number
}

/** `Source`: what it reads of the machine. */
export type ConditionCheck<Source> = CheckTiming & {
  readonly type: HealthConditionType
  /** `wifi`: in the output of the doctor. */
  readonly name: string
  /** What the doctor prints where the machine has no source for it. */
  readonly unknown: string
  /** While it is True the node is not Ready. */
  readonly unfit?: true
  readonly look: (source: Source, context: CheckContext) => CheckResult
}

export const seconds = 1_000
export const minutes = 60 * seconds

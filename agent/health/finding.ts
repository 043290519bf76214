/** What a look at one side of the machine's health gives. Also what a person who checks the machine by hand is told. */
import type { HealthConditionType } from '../../api/node.ts'

/** `True`: something is wrong, and there is evidence of it. The message says what, and what a person can do. */
export type Finding = { readonly status: 'True' | 'False'; readonly reason: string; readonly message: string }

/** Undefined as an answer: this machine has nothing that could tell. */
export type HealthCheck = {
  readonly type: HealthConditionType
  readonly periodMs: number
  /** Evidence must last this long before it is shown. */
  readonly riseMs?: number
  /** It is shown until there has been no evidence for this long. */
  readonly holdMs: number
  /** While it is True the node is not Ready. */
  readonly unfit?: true
  readonly look: () => Promise<Finding | undefined> | Finding | undefined
}

export function wrong(reason: string, message: string): Finding {
  return { status: 'True', reason, message }
}

export function fine(reason: string, message: string): Finding {
  return { status: 'False', reason, message }
}

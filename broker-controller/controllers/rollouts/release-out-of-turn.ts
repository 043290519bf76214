/** What an operator may give a single node before its ring has it. */
import type { Node } from '../../../api/node.ts'
import { writtenOn } from './node-facts.ts'
import { type FleetRelease, nextStep } from './rollout-facts.ts'
import type { StoredRollout } from './rollout-object.ts'

/** Undefined: nothing newer, or it may have it already, it took it back, or the rollout pauses. */
export function releaseOutOfTurn(node: Node, rollout: StoredRollout | undefined): FleetRelease | undefined {
  const { report, admission } = writtenOn(node)
  if (rollout === undefined || rollout.state.paused !== undefined || report === undefined) return undefined
  const { target, releases } = rollout.wish
  const step = nextStep(report.sequence, target, releases)
  if (step === undefined || step.sequence <= report.sequence) return undefined
  const isSame = admission?.digest === step.digest
  return isSame && (admission.withdrawn !== true || admission.outcome === 'rolledBack') ? undefined : step
}

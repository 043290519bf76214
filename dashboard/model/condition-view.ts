/** The conditions of a machine, those that need attention first. */
import type { UrgencyLevel } from '../../api/dashboard/node-view.ts'
import type { NodeCondition } from '../../api/node.ts'

const order: readonly UrgencyLevel[] = ['bad', 'warn', 'idle', 'good']

/** Each with how urgent it is; of equals `Ready` comes first, the others as the node lists them. */
export function shownConditions(conditions: readonly NodeCondition[]) {
  return conditions
    .map((condition) => ({ ...condition, level: conditionLevel(condition) }))
    .sort((a, b) => order.indexOf(a.level) - order.indexOf(b.level) || firstOf(a) - firstOf(b))
}

function conditionLevel({ type, status }: NodeCondition): UrgencyLevel {
  if (status === (type === 'Ready' ? 'True' : 'False')) return 'good'
  return type === 'Ready' ? 'bad' : status === 'Unknown' ? 'idle' : 'warn'
}

function firstOf({ type }: NodeCondition): number {
  return type === 'Ready' ? 0 : 1
}

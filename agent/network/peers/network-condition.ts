/** The condition NetworkUnavailable, with the reasons that Kubernetes' cloud providers and flannel use. */
import type { MachineCondition } from '../../node/status/conditions.ts'

export type ReachedNodes = {
  /** Why pods have no connection to those of any other node, each a sentence. */
  readonly problems: readonly string[]
  /** Why those of some nodes are not reached. */
  readonly gaps: readonly string[]
  /** Why those of more nodes may not be reached: no reason to place no pods here. */
  readonly silent?: readonly string[]
  /** Nodes with a route to their pods. */
  readonly routes: number
}

/** A message is read as a whole: it names some of many nodes. */
const mostGaps = 3

export function networkCondition({ problems, gaps, silent = [], routes }: ReachedNodes): MachineCondition {
  const nothingWorks = problems.length > 0 || (routes === 0 && gaps.length > 0)
  const unreached = [...gaps, ...silent]
  const shown = [...problems, ...unreached.slice(0, mostGaps)]
  const more = unreached.length > mostGaps ? [`${unreached.length - mostGaps} more`] : []
  const message = [...shown, ...more].join('; ')
  if (nothingWorks) return { type: 'NetworkUnavailable', status: 'True', reason: 'NoRouteCreated', message }
  const reached = `Routes to the pods of ${routes} other ${routes === 1 ? 'node' : 'nodes'} are in place`
  return {
    type: 'NetworkUnavailable',
    status: 'False',
    reason: 'RouteCreated',
    message: message === '' ? reached : `${reached}; ${message}`,
  }
}

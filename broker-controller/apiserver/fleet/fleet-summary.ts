/** The fleet in numbers, for widgets that read one flat JSON object, such as Homepage's `customapi`. */
import { healthConditionTypes, type Node } from '../../../api/node.ts'
import type { Pod } from '../../../api/pod.ts'

export type FleetSummary = {
  /** `ok`: no problem; `degraded`: at least one. */
  readonly status: 'ok' | 'degraded'
  /** Nodes that are not ready or unhealthy, failed pods and pods that crash again and again, each once. */
  readonly problems: number
  readonly nodes: number
  readonly nodesReady: number
  readonly nodesNotReady: number
  readonly nodesUnschedulable: number
  /** With evidence of a problem of the machine, such as `UnderVoltage`. */
  readonly nodesUnhealthy: number
  readonly pods: number
  readonly podsPending: number
  readonly podsRunning: number
  readonly podsSucceeded: number
  readonly podsFailed: number
  readonly podsUnknown: number
  /** Running, and not ready. */
  readonly podsNotReady: number
  /** With a container in CrashLoopBackOff. */
  readonly podsCrashLooping: number
}

/** The fields of a node and of a pod that count. */
type CountedNode = Pick<Node, 'spec' | 'status'>
type CountedPod = { readonly status?: Pick<NonNullable<Pod['status']>, 'phase' | 'conditions' | 'containerStatuses'> }

export function fleetSummary(nodes: Iterable<CountedNode>, pods: Iterable<CountedPod>): FleetSummary {
  const [ofNodes, ofPods] = [nodeCounts(nodes), podCounts(pods)]
  const problems = ofNodes.problems + ofPods.problems
  return { status: problems === 0 ? 'ok' : 'degraded', problems, ...ofNodes.counts, ...ofPods.counts }
}

function nodeCounts(nodes: Iterable<CountedNode>) {
  const counts = { nodes: 0, nodesReady: 0, nodesNotReady: 0, nodesUnschedulable: 0, nodesUnhealthy: 0 }
  let problems = 0
  for (const { spec, status } of nodes) {
    const isReady = hasCondition(status?.conditions, 'Ready')
    const isUnhealthy = healthConditionTypes.some((type) => hasCondition(status?.conditions, type))
    counts.nodes++
    if (isReady) counts.nodesReady++
    else counts.nodesNotReady++
    if (spec?.unschedulable === true) counts.nodesUnschedulable++
    if (isUnhealthy) counts.nodesUnhealthy++
    if (!isReady || isUnhealthy) problems++
  }
  return { counts, problems }
}

function podCounts(pods: Iterable<CountedPod>) {
  const phases = { podsPending: 0, podsRunning: 0, podsSucceeded: 0, podsFailed: 0, podsUnknown: 0 }
  const counts = { pods: 0, podsNotReady: 0, podsCrashLooping: 0 }
  let problems = 0
  for (const { status } of pods) {
    const phase = status?.phase ?? 'Pending'
    const isCrashLooping = (status?.containerStatuses ?? []).some(
      ({ state }) => state?.waiting?.reason === 'CrashLoopBackOff',
    )
    counts.pods++
    phases[`pods${phase}`]++
    if (phase === 'Running' && !hasCondition(status?.conditions, 'Ready')) counts.podsNotReady++
    if (isCrashLooping) counts.podsCrashLooping++
    if (phase === 'Failed' || isCrashLooping) problems++
  }
  return { counts: { ...counts, ...phases }, problems }
}

function hasCondition(
  conditions: readonly { readonly type: string; readonly status: string }[] | undefined,
  wanted: string,
): boolean {
  return (conditions ?? []).some(({ type, status }) => type === wanted && status === 'True')
}

/** What becomes of a pod's readiness when its node fails? */
import type { Pod, PodCondition } from '../../api/pod.ts'

/** The pod with Ready False; undefined when it was so, or never said anything. The phase is the node's to say. */
export function notReadyPod<P extends Pod>(pod: P, now: string): P | undefined {
  const ready = pod.status?.conditions?.find(({ type }) => type === 'Ready')
  if (ready === undefined || ready.status === 'False') return undefined
  return withPodCondition(pod, { ...ready, status: 'False' }, now)
}

/** The pod with this condition; `lastTransitionTime` moves only when the status does. Undefined: it has it. */
export function withPodCondition<P extends Pod>(pod: P, condition: PodCondition, now: string): P | undefined {
  const conditions = pod.status?.conditions ?? []
  const before = conditions.find(({ type }) => type === condition.type)
  const lastTransitionTime = before?.status === condition.status ? before.lastTransitionTime : now
  const wanted: PodCondition = { ...condition, ...(lastTransitionTime !== undefined && { lastTransitionTime }) }
  if (before?.status === wanted.status && before.reason === wanted.reason && before.message === wanted.message) {
    return undefined
  }
  const others = before === undefined ? [...conditions, wanted] : conditions.map((it) => (it === before ? wanted : it))
  return { ...pod, status: { ...pod.status, conditions: others } }
}

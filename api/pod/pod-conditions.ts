/** A pod's conditions, one of each type. */
import type { Pod, PodCondition } from '../pod.ts'

export function podCondition(pod: Pod, type: string): PodCondition | undefined {
  return pod.status?.conditions?.find((condition) => condition.type === type)
}

/**
 * The pod with this condition; `lastTransitionTime` becomes `now` only when the status differs. Undefined when it has it
 * already.
 */
export function withPodCondition<P extends Pod>(pod: P, condition: PodCondition, now: string): P | undefined {
  const before = podCondition(pod, condition.type)
  const lastTransitionTime = before?.status === condition.status ? before.lastTransitionTime : now
  const wanted: PodCondition = { ...condition, ...(lastTransitionTime !== undefined && { lastTransitionTime }) }
  if (before?.status === wanted.status && before.reason === wanted.reason && before.message === wanted.message) {
    return undefined
  }
  const present = pod.status?.conditions ?? []
  const conditions = before === undefined ? [...present, wanted] : present.map((it) => (it === before ? wanted : it))
  return { ...pod, status: { ...pod.status, conditions } }
}

/** The pod as it is from when its node is known. */
export function boundPod<P extends Pod>(pod: P, nodeName: string, now: string): P {
  const bound = { ...pod, spec: { ...pod.spec, nodeName } }
  return withPodCondition(bound, { type: 'PodScheduled', status: 'True' }, now) ?? bound
}

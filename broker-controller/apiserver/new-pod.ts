/** A pod as the server keeps it: new, or in place of the one that was there. */
import type { Pod, PodCondition } from '../../api/pod.ts'
import { qosClassOf } from '../../api/qos-class.ts'
import { withPodDefaults } from '../../api/validation/pod-defaults.ts'
import { withMatchLabelKeys } from './match-label-keys.ts'

const gated: PodCondition = {
  type: 'PodScheduled',
  status: 'False',
  reason: 'SchedulingGated',
  message: 'Scheduling is blocked due to non-empty scheduling gates',
}

/** The pod as it is stored when new: nothing has happened to it yet. */
export function newPod(pod: Pod, now: string): Pod {
  const spec = withPodDefaults(withMatchLabelKeys(pod))
  const isGated = (spec.schedulingGates ?? []).length > 0
  const conditions = isGated ? [{ ...gated, lastTransitionTime: now }] : undefined
  return { ...pod, spec, status: { phase: 'Pending', qosClass: qosClassOf(spec), ...(conditions && { conditions }) } }
}

/** What admission once made of a pod's class is not lost when somebody replaces the pod without it. */
export function changedPod(old: Pod, now: Pod): Pod {
  const priority = now.spec.priority ?? old.spec.priority
  const preemptionPolicy = now.spec.preemptionPolicy ?? old.spec.preemptionPolicy
  const kept = { ...(priority !== undefined && { priority }), ...(preemptionPolicy && { preemptionPolicy }) }
  return { ...now, spec: { ...now.spec, ...kept } }
}

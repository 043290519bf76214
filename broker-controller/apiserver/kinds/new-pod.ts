/** A pod as the server keeps it: new, or in place of the one that was there. */
import { withTolerationRecord, withTolerationRecordOf } from '../../../api/default-tolerations.ts'
import type { Pod, PodCondition } from '../../../api/pod.ts'
import { qosClassOf } from '../../../api/qos-class.ts'
import { withPodDefaults } from '../../../api/validation/pod-defaults.ts'
import { withMatchLabelKeys } from './match-label-keys.ts'

const gated: PodCondition = {
  type: 'PodScheduled',
  status: 'False',
  reason: 'SchedulingGated',
  message: 'Scheduling is blocked due to non-empty scheduling gates',
}

/**
 * The pod as it is stored when new: nothing has happened to it yet. `learnt`: a node reported it to a store that lost
 * it; it was admitted before, and its tolerations are those of that admission.
 */
export function newPod(pod: Pod, now: string, learnt = false): Pod {
  const spec = withPodDefaults(withMatchLabelKeys(pod))
  const isGated = (spec.schedulingGates ?? []).length > 0
  const conditions = isGated ? [{ ...gated, lastTransitionTime: now }] : undefined
  const metadata = learnt ? pod.metadata : withTolerationRecord(pod.metadata, pod.spec.tolerations ?? [])
  return {
    ...pod,
    metadata,
    spec,
    status: { phase: 'Pending', qosClass: qosClassOf(spec), ...(conditions && { conditions }) },
  }
}

/** What admission once made of a pod's class is not lost when somebody replaces the pod without it. */
export function changedPod(old: Pod, now: Pod): Pod {
  const priority = now.spec.priority ?? old.spec.priority
  const preemptionPolicy = now.spec.preemptionPolicy ?? old.spec.preemptionPolicy
  const kept = { ...(priority !== undefined && { priority }), ...(preemptionPolicy && { preemptionPolicy }) }
  const metadata = withTolerationRecordOf(old.metadata, now.metadata)
  return { ...now, metadata, spec: { ...now.spec, ...kept } }
}

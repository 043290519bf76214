/**
 * When that happened which a write of endpoints follows, for the latency of networks
 * (staging/src/k8s.io/endpointslice/util/trigger_time_tracker.go of Kubernetes).
 */
import type { Service } from '../../../api/network/service.ts'
import { podCondition } from '../../../api/pod/pod-conditions.ts'
import type { Pod } from '../../../api/pod.ts'
import type { Steps } from '../../../daemon/watchdog/steps.ts'

/** The times of the last visit: of the Service, and by name of its pods; RFC 3339. */
export type TriggerTimes = { readonly service: string; readonly pods: ReadonlyMap<string, string> }

/**
 * `time`: the earliest that is later than at the visit before, RFC 3339; at the first visit the Service's creation; undefined:
 * there is none. `next`: for the visit after this one. In steps: there may be very many pods.
 */
export function* triggerTime(
  { metadata }: Service,
  pods: readonly Pod[],
  last: TriggerTimes | undefined,
): Steps<{ readonly time: string | undefined; readonly next: TriggerTimes }> {
  const service = metadata.creationTimestamp ?? ''
  const times = new Map<string, string>()
  let earliest = last !== undefined && service > last.service ? service : undefined
  for (const pod of pods) {
    yield
    const { name = '' } = pod.metadata
    const time = podCondition(pod, 'Ready')?.lastTransitionTime
    if (time === undefined) continue
    times.set(name, time)
    const isLater = last !== undefined && time > (last.pods.get(name) ?? '')
    if (isLater && (earliest === undefined || time < earliest)) earliest = time
  }
  const next = { service, pods: times }
  return { time: last === undefined ? service || undefined : earliest, next }
}

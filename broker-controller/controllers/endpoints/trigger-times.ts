/**
 * When that happened which a write of endpoints follows, for the latency of networks
 * (staging/src/k8s.io/endpointslice/util/trigger_time_tracker.go of Kubernetes).
 */
import type { Service } from '../../../api/network/service.ts'
import { podCondition } from '../../../api/pod/pod-conditions.ts'
import type { Pod } from '../../../api/pod.ts'

/** The times of the last visit: of the Service, and by name of its pods; RFC 3339. */
export type TriggerTimes = { readonly service: string; readonly pods: ReadonlyMap<string, string> }

/**
 * `time`: the earliest that is later than at the visit before, RFC 3339; at the first visit the Service's creation; undefined:
 * there is none. `next`: for the visit after this one.
 */
export function triggerTime(
  { metadata }: Service,
  pods: readonly Pod[],
  last: TriggerTimes | undefined,
): { readonly time: string | undefined; readonly next: TriggerTimes } {
  const service = metadata.creationTimestamp ?? ''
  const times = new Map<string, string>()
  for (const pod of pods) {
    const time = podCondition(pod, 'Ready')?.lastTransitionTime
    if (time !== undefined) times.set(pod.metadata.name ?? '', time)
  }
  const next = { service, pods: times }
  if (last === undefined) return { time: service || undefined, next }
  const later = [...times].filter(([name, time]) => time > (last.pods.get(name) ?? '')).map(([, time]) => time)
  const all = service > last.service ? [...later, service] : later
  return { time: all.sort()[0], next }
}

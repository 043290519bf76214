/** What happened to a pod, as an Event for whoever runs `kubectl describe`. */
import type { Event } from '../../api/event.ts'
import type { Pod } from '../../api/pod.ts'
import { rfc3339 } from '../../daemon/clock.ts'

export type PodNews = {
  readonly type: 'Normal' | 'Warning'
  readonly reason: string
  readonly message: string
  /** When it happened to one container. */
  readonly containerName?: string
}

/** `unique` tells apart events of one moment. */
export function podEvent({ metadata }: Pod, news: PodNews, nodeName: string, nowWallMs: number, unique: number): Event {
  const { name = '', namespace = 'default', uid, resourceVersion } = metadata
  const { type, reason, message, containerName } = news
  const at = rfc3339(nowWallMs)
  return {
    apiVersion: 'v1',
    kind: 'Event',
    metadata: {
      name: `${name}.${nowWallMs.toString(16)}${(unique % 65_536).toString(16).padStart(4, '0')}`,
      namespace,
    },
    involvedObject: {
      apiVersion: 'v1',
      kind: 'Pod',
      name,
      namespace,
      ...(uid === undefined ? {} : { uid }),
      ...(resourceVersion === undefined ? {} : { resourceVersion }),
      ...(containerName === undefined ? {} : { fieldPath: `spec.containers{${containerName}}` }),
    },
    type,
    reason,
    message,
    source: { component: 'kubelet', host: nodeName },
    reportingComponent: 'kubelet',
    reportingInstance: nodeName,
    firstTimestamp: at,
    lastTimestamp: at,
    count: 1,
  }
}

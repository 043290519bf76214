/** Events of pods, as `kubectl describe` shows them. */
import { type Event, eventOfAgent } from '../../../api/event.ts'
import type { Pod } from '../../../api/pod.ts'
import { rfc3339 } from '../../../daemon/clock.ts'
import type { WaitingReason } from './pod-record.ts'

export type PodEvent = {
  readonly type: 'Normal' | 'Warning'
  readonly reason: string
  readonly message: string
  /** The container that the Event is about. */
  readonly containerName?: string
}

/** `unique` distinguishes Events of one moment. */
export function podEvent(
  { metadata }: Pick<Pod, 'metadata'>,
  fields: PodEvent,
  nodeName: string,
  nowWallMs: number,
  unique: number,
): Event {
  const { name = '', namespace = 'default', uid, resourceVersion } = metadata
  const { type, reason, message, containerName } = fields
  const involvedObject = {
    apiVersion: 'v1',
    kind: 'Pod',
    name,
    namespace,
    ...(uid === undefined ? {} : { uid }),
    ...(resourceVersion === undefined ? {} : { resourceVersion }),
    ...(containerName === undefined ? {} : { fieldPath: `spec.containers{${containerName}}` }),
  }
  const serial = (unique % 65_536).toString(16).padStart(4, '0')
  const own = { name: `${name}.${nowWallMs.toString(16)}${serial}`, namespace }
  return eventOfAgent(nodeName, { metadata: own, involvedObject, type, reason, message }, rfc3339(nowWallMs))
}

/** `why`: the fields that could not be decoded. */
export function notUnderstood(why: string): PodEvent {
  const message = `The agent of this node could not decode the pod and keeps the running version. Update the agent or change the pod: ${why}`
  return { type: 'Warning', reason: 'NotUnderstood', message }
}

/** The Events to record when a container starts to wait for this reason. */
export function eventsOfWaiting(
  pod: Pod,
  containerName: string,
  image: string,
  { reason, message }: WaitingReason,
): readonly PodEvent[] {
  const event = (type: PodEvent['type'], reason: string, message: string): PodEvent => ({
    type,
    reason,
    message,
    containerName,
  })
  const failed = event('Warning', 'Failed', `Error: ${reason}`)
  switch (reason) {
    case 'RunContainerError':
    case 'CrashLoopBackOff': {
      const { name, namespace = 'default', uid } = pod.metadata
      const where = `container ${containerName} in pod ${name}_${namespace}(${uid})`
      return [event('Warning', 'BackOff', `Back-off restarting failed ${where}`)]
    }
    case 'ErrImagePull':
      return [event('Warning', 'Failed', `Failed to pull image "${image}": ${message}`), failed]
    case 'ImagePullBackOff':
      return [event('Normal', 'BackOff', `Back-off pulling image "${image}"`), failed]
    case 'ImagePlatformMismatch':
      return [event('Warning', 'Failed', `Failed to use image: ${message}`), failed]
    case 'ImageDamaged':
      return [event('Warning', 'ImageDamaged', message), failed]
    case 'ErrImageNeverPull':
      return [event('Warning', 'ErrImageNeverPull', message), failed]
    case 'InvalidImageName':
      return [event('Warning', 'InspectFailed', message), failed]
    case 'CreateContainerConfigError':
    case 'CreateContainerError':
      return [event('Warning', 'Failed', `Error: ${message}`)]
    default:
      return []
  }
}

/** The object of an event that a node reports. */
import type { Event } from '../../../api/event.ts'
import type { ObjectReference } from '../../../api/meta.ts'
import { mirroredHash } from '../../../api/pod/static-pod.ts'
import type { Pod } from '../../../api/pod.ts'
import { nodeReference } from '../../store/references.ts'

/** The object of the event; undefined: it is neither the node itself nor one of its pods. */
export function involvedObjectOf(node: string, event: Event, pods: readonly Pod[]): ObjectReference | undefined {
  const { involvedObject } = event
  if (involvedObject.kind === 'Node') return involvedObject.name === node ? nodeReference(node) : undefined
  if (involvedObject.kind !== 'Pod') return undefined
  // The kubelet records events of a static pod with the UID that the pod has on its machine, and kubectl searches for it.
  const pod = pods.find((one) => one.metadata.uid === involvedObject.uid || mirroredHash(one) === involvedObject.uid)
  const { name, namespace } = pod?.metadata ?? {}
  if (pod === undefined || name !== involvedObject.name || namespace !== involvedObject.namespace) return undefined
  return involvedObject
}

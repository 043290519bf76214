/** Events about this node, as `kubectl describe node` shows them. */
import { type EventOfAgent, eventOfAgent } from '../../../api/event.ts'
import { type Clock, rfc3339 } from '../../../daemon/clock.ts'
import type { ControlPlane } from '../connection/control-plane.ts'

export type NodeEvent = Pick<EventOfAgent, 'type' | 'reason' | 'message'>

export type NodeEventNeeds = { readonly controlPlane: Pick<ControlPlane, 'reportEvent'>; readonly clock: Clock }

/** Returns the function that records an Event. Each one has its own name. */
export function nodeEvents({ controlPlane, clock }: NodeEventNeeds, nodeName: string): (event: NodeEvent) => void {
  let serial = 0
  return ({ type, reason, message }) => {
    const nowMs = clock.wallMs()
    const name = `${nodeName}.${nowMs.toString(16)}.${(serial++).toString(16)}`
    // As in the kubelet's nodeRef (pkg/kubelet/kubelet.go): nodes have no namespace, and the node's name is its UID in Events.
    const involvedObject = { kind: 'Node', name: nodeName, uid: nodeName }
    const event = { metadata: { name, namespace: 'default' }, involvedObject, type, reason, message }
    controlPlane.reportEvent(eventOfAgent(nodeName, event, rfc3339(nowMs)))
  }
}

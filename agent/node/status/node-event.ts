/** Something happened to this node: for whoever runs `kubectl describe node`. */
import { type EventOfAgent, eventOfAgent } from '../../../api/event.ts'
import { type Clock, rfc3339 } from '../../../daemon/clock.ts'
import type { ControlPlane } from '../connection/control-plane.ts'

export type NodeEvent = Pick<EventOfAgent, 'type' | 'reason' | 'message'>

export type NodeEventNeeds = { readonly controlPlane: Pick<ControlPlane, 'reportEvent'>; readonly clock: Clock }

/** Tells the control plane, each event under a name of its own. */
export function nodeEvents({ controlPlane, clock }: NodeEventNeeds, nodeName: string): (event: NodeEvent) => void {
  let serial = 0
  return ({ type, reason, message }) => {
    const nowMs = clock.wallMs()
    const name = `${nodeName}.${nowMs.toString(16)}.${(serial++).toString(16)}`
    // As the kubelet does: nodes have no namespace and the node may not know its UID, so its name stands for it.
    const involvedObject = { kind: 'Node', name: nodeName, uid: nodeName }
    const event = { metadata: { name, namespace: 'default' }, involvedObject, type, reason, message }
    controlPlane.reportEvent(eventOfAgent(nodeName, event, rfc3339(nowMs)))
  }
}

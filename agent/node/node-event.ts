/** Something happened to this node: for whoever runs `kubectl describe node`. */
import type { Event } from '../../api/event.ts'
import { type Clock, rfc3339 } from '../../daemon/clock.ts'
import type { ControlPlane } from './control-plane.ts'

export type NodeEvent = { readonly type: 'Normal' | 'Warning'; readonly reason: string; readonly message: string }

/** `serial` tells apart events of one moment; `now` is RFC 3339. */
export function nodeEvent(
  nodeName: string,
  { type, reason, message }: NodeEvent,
  { now, serial }: { readonly now: string; readonly serial: string },
): Event {
  return {
    apiVersion: 'v1',
    kind: 'Event',
    metadata: { name: `${nodeName}.${serial}`, namespace: 'default' },
    // As the kubelet does: nodes have no namespace and the node may not know its UID, so its name stands for it.
    involvedObject: { kind: 'Node', name: nodeName, uid: nodeName },
    type,
    reason,
    message,
    source: { component: 'kubelet', host: nodeName },
    reportingComponent: 'kubelet',
    reportingInstance: nodeName,
    firstTimestamp: now,
    lastTimestamp: now,
    count: 1,
  }
}

export type NodeEventNeeds = { readonly controlPlane: Pick<ControlPlane, 'reportEvent'>; readonly clock: Clock }

/** Tells the control plane, each event under a name of its own. */
export function nodeEvents({ controlPlane, clock }: NodeEventNeeds, nodeName: string): (event: NodeEvent) => void {
  let serial = 0
  return (event) => {
    const nowMs = clock.wallMs()
    const at = { now: rfc3339(nowMs), serial: `${nowMs.toString(16)}.${(serial++).toString(16)}` }
    controlPlane.reportEvent(nodeEvent(nodeName, event, at))
  }
}

/** Events of volumes: about the pod that has one, and about its claim. */
import { eventOfAgent } from '../../../../api/event.ts'
import type { ApiClient } from '../../../../daemon/api-client.ts'
import { type Clock, rfc3339 } from '../../../../daemon/clock.ts'
import type { Log } from '../../../../daemon/log.ts'
import type { ControlPlane } from '../../../node/connection/control-plane.ts'
import { type PodEvent, podEvent } from '../../record/pod-events.ts'

type Named = { readonly namespace: string; readonly name: string; readonly uid: string }

export interface VolumeEvents {
  ofPod(pod: Named, event: PodEvent): void
  ofClaim(claim: Named, event: PodEvent): void
}

export type VolumeEventsNeeds = {
  readonly controlPlane: Pick<ControlPlane, 'reportEvent'>
  /** Nodes report only Events of their pods and of themselves; as in Kubernetes they write those of claims to the API. */
  readonly api: Pick<ApiClient, 'post'>
  readonly clock: Clock
  readonly log: Log
}

export function volumeEvents({ controlPlane, api, clock, log }: VolumeEventsNeeds, nodeName: string): VolumeEvents {
  let serial = 0
  return {
    ofPod(metadata, event) {
      controlPlane.reportEvent(podEvent({ metadata }, event, nodeName, clock.wallMs(), serial++))
    },
    ofClaim({ namespace, name, uid }, { type, reason, message }) {
      const nowMs = clock.wallMs()
      const involvedObject = { apiVersion: 'v1', kind: 'PersistentVolumeClaim', namespace, name, uid }
      const metadata = { name: `${name}.${nowMs.toString(16)}.${(serial++).toString(16)}`, namespace }
      const event = eventOfAgent(nodeName, { metadata, involvedObject, type, reason, message }, rfc3339(nowMs))
      const path = `/api/v1/namespaces/${encodeURIComponent(namespace)}/events`
      void api.post(path, event).catch((error: unknown) => log.warn('Event not recorded', { reason, name, error }))
    },
  }
}

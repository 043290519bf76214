/** Events, workloads and requests of waiting machines → the cards of the dashboard. */
import {
  type CertificateSigningRequest,
  isVerdict,
  nodeClientSigner,
} from '../../../api/certificate-signing-request.ts'
import { secondsOf, sentence } from '../../../api/dashboard/card-words.ts'
import type { EventCard, RequestCard, WorkloadCard, WorkloadKind } from '../../../api/dashboard/dashboard-messages.ts'
import type { Event } from '../../../api/event.ts'
import { nodeNameOf } from '../../../api/identity.ts'
import type { DaemonSet } from '../../../api/workloads/daemon-set.ts'
import type { Deployment } from '../../../api/workloads/deployment.ts'
import type { StatefulSet } from '../../../api/workloads/stateful-set.ts'

/** The card of an Event, with the time at which it last happened. */
export function eventCard(event: Event): EventCard {
  const { metadata, involvedObject, reason = '', message = '', type, series } = event
  const count = series?.count ?? event.count ?? 1
  const at = series?.lastObservedTime ?? event.lastTimestamp ?? event.eventTime ?? metadata.creationTimestamp
  return {
    id: `${metadata.namespace}/${metadata.name}`,
    namespace: involvedObject.namespace ?? '',
    ...(type === 'Warning' && { warning: true }),
    reason: reason.slice(0, 128),
    message: message.slice(0, 1024),
    object: `${involvedObject.kind ?? ''}/${involvedObject.name ?? ''}`,
    ...(count > 1 && { count }),
    at: secondsOf(at) ?? 0,
  }
}

/** The card of a Deployment or StatefulSet. */
export function replicatedCard(kind: 'Deployment' | 'StatefulSet', object: Deployment | StatefulSet): WorkloadCard {
  const { spec, status } = object
  const [wanted, ready, updated] = [spec.replicas ?? 1, status?.readyReplicas ?? 0, status?.updatedReplicas ?? 0]
  return workloadCard(kind, object, { wanted, ready, updated })
}

export function daemonSetCard(object: DaemonSet): WorkloadCard {
  const { desiredNumberScheduled = 0, numberReady = 0, updatedNumberScheduled = 0 } = object.status ?? {}
  const counts = { wanted: desiredNumberScheduled, ready: numberReady, updated: updatedNumberScheduled }
  return workloadCard('DaemonSet', object, counts)
}

function workloadCard(
  kind: WorkloadKind,
  { metadata, status }: Deployment | StatefulSet | DaemonSet,
  counts: Pick<WorkloadCard, 'wanted' | 'ready' | 'updated'>,
): WorkloadCard {
  const created = secondsOf(metadata.creationTimestamp)
  const failed = status?.conditions?.find(
    ({ type, status }) =>
      (type === 'ReplicaFailure' && status === 'True') || (type === 'Progressing' && status === 'False'),
  )
  return {
    kind,
    name: metadata.name ?? '',
    namespace: metadata.namespace ?? '',
    ...counts,
    ...(created !== undefined && { created }),
    ...(failed && { why: sentence(failed.message || failed.reason || '') }),
  }
}

/**
 * Undefined for a request of no machine, or one that was decided; a waiting request's condition does not decide. The API sets its user
 * name, and a node asks for its own name.
 */
export function requestCard(
  { metadata, spec, status }: CertificateSigningRequest,
  commonNameOf: (request: string) => string | undefined,
): RequestCard | undefined {
  if (spec.signerName !== nodeClientSigner || status?.conditions?.some(isVerdict)) return undefined
  const name = commonNameOf(pemOf(spec.request))
  return {
    name: metadata.name ?? '',
    node: (name && nodeNameOf(name)) || name || 'unreadable name',
    requester: spec.username ?? '',
    at: secondsOf(metadata.creationTimestamp) ?? 0,
  }
}

function pemOf(base64: string): string {
  return Buffer.from(base64, 'base64').toString('utf8')
}

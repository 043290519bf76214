/**
 * The lease of a node after a message or the end of a connection. The controller's clock stamps it; the node's own is not
 * trusted.
 */
import { type Lease, nodeLeaseNamespace } from '../../../api/lease.ts'
import type { OwnerReference, Stored } from '../../../api/meta.ts'
import type { Node } from '../../../api/node.ts'
import type { ConnectionMessage } from '../../../api/topics.ts'
import { rfc3339Micro } from '../../../daemon/clock.ts'
import type { Peer } from '../broker.ts'

/** What changes a lease. */
export type LeaseInput =
  | { readonly kind: 'heartbeat' }
  /** `isRetained`: it was published at an unknown time, and renews nothing. */
  | { readonly kind: 'connection'; readonly message: ConnectionMessage; readonly isRetained?: boolean }
  /** The connection has ended, perhaps without a last will or goodbye. */
  | { readonly kind: 'disconnected' }

const annotation = {
  connection: 'bramble.dev/connection',
  bootID: 'bramble.dev/boot-id',
  reason: 'bramble.dev/connection-reason',
  expectedBack: 'bramble.dev/expected-back-seconds',
  address: 'bramble.dev/address',
  certificateUntil: 'bramble.dev/certificate-until',
  certificateAuthority: 'bramble.dev/certificate-authority',
} as const

/** nodeLeaseDurationSeconds of the kubelet (pkg/kubelet/apis/config/v1beta1/defaults.go): 40 s, renewed every 10 s. */
const defaultLeaseDurationSeconds = 40

export type LeaseFacts = Peer & {
  readonly nowMs: number
  /** The uid of the Node that owns the lease. */
  readonly nodeUID?: string | undefined
}

/** The node's lease after this input; undefined: unchanged. */
export function leaseAfter(
  node: string,
  before: Lease | undefined,
  input: LeaseInput,
  { nowMs, address, certificate, nodeUID }: LeaseFacts,
): Lease | undefined {
  const state = before?.metadata.annotations?.[annotation.connection]
  if (input.kind === 'disconnected' && state !== 'online') return undefined
  // The broker also publishes the will if the connection broke before it read the DISCONNECT that follows a goodbye.
  if (input.kind === 'connection' && input.message.state === 'lost' && state === 'goodbye') return undefined
  const isAlive =
    input.kind === 'heartbeat' || (input.kind === 'connection' && input.message.state === 'online' && !input.isRetained)
  const holder = { holderIdentity: node, ...before?.spec, leaseDurationSeconds: durationAfter(before, input) }
  return {
    apiVersion: 'coordination.k8s.io/v1',
    kind: 'Lease',
    metadata: {
      ...(before?.metadata ?? { name: node, namespace: nodeLeaseNamespace }),
      annotations: defined({
        ...before?.metadata.annotations,
        ...connectionAnnotations(input, state),
        ...(isAlive && address !== undefined && { [annotation.address]: address }),
        ...(isAlive &&
          certificate !== undefined && {
            [annotation.certificateUntil]: certificate.until,
            [annotation.certificateAuthority]: certificate.authority,
          }),
      }),
      ...(nodeUID !== undefined &&
        (before === undefined || !isOwnedBy(before, nodeUID)) && { ownerReferences: [ownedBy(node, nodeUID)] }),
    },
    spec: isAlive ? { ...holder, renewTime: rfc3339Micro(nowMs) } : holder,
  }
}

/** Whether an agent has ever reported the status of this node. */
export function hasReported({ status }: Node): boolean {
  return status?.conditions?.some(({ type, reason }) => type === 'Ready' && reason !== neverReportedReason) ?? false
}

/** The node lifecycle controller sets this reason on a node that never reported a status. */
const neverReportedReason = 'NodeStatusNeverUpdated'

/** The lease of a node after a restart of the controller, which keeps leases in memory. It has neither a renewal nor a duration. */
export function restoredLease({ metadata }: Stored<Node>): Lease {
  const { name, uid, creationTimestamp } = metadata
  return {
    apiVersion: 'coordination.k8s.io/v1',
    kind: 'Lease',
    metadata: { name, namespace: nodeLeaseNamespace, creationTimestamp, ownerReferences: [ownedBy(name, uid)] },
    spec: { holderIdentity: name },
  }
}

/** The lease of an online node, renewed; undefined: the node is not online, so more than the time would change. */
export function renewedLease<L extends Lease>(lease: L, nowMs: number): L | undefined {
  if (lease.metadata.annotations?.[annotation.connection] !== 'online') return undefined
  return { ...lease, spec: { ...lease.spec, renewTime: rfc3339Micro(nowMs) } }
}

/** The duration that the node announced with its connection, within the limits of the agent's setting. */
function durationAfter(before: Lease | undefined, input: LeaseInput): number {
  const announced = input.kind === 'connection' ? input.message.leaseDurationSeconds : undefined
  const isUsable = announced !== undefined && announced >= 4 && announced <= 3600
  return isUsable ? announced : (before?.spec?.leaseDurationSeconds ?? defaultLeaseDurationSeconds)
}

function ownedBy(name: string, uid: string): OwnerReference {
  return { apiVersion: 'v1', kind: 'Node', name, uid }
}

/** Whether the lease belongs to this Node, and not to an earlier or later one of the same name. */
export function isOwnedBy({ metadata }: Lease, nodeUID: string): boolean {
  return metadata.ownerReferences?.some(({ uid }) => uid === nodeUID) ?? false
}

function connectionAnnotations(
  input: LeaseInput,
  state: string | undefined,
): { readonly [name: string]: string | undefined } {
  if (input.kind === 'disconnected') {
    return { [annotation.connection]: 'lost', [annotation.reason]: 'connection-closed' }
  }
  if (input.kind === 'heartbeat') {
    // A node that published a goodbye renews its lease until it has shut down; a lost node that renews it is back.
    return state === undefined || state === 'lost'
      ? { [annotation.connection]: 'online', [annotation.reason]: undefined }
      : {}
  }
  const { bootID, reason, expectedBackSeconds } = input.message
  return {
    [annotation.connection]: input.message.state,
    [annotation.bootID]: bootID,
    [annotation.reason]: reason,
    [annotation.expectedBack]: expectedBackSeconds === undefined ? undefined : String(expectedBackSeconds),
  }
}

/** Without the annotations that are undefined. */
function defined(annotations: { readonly [name: string]: string | undefined }): { readonly [name: string]: string } {
  return Object.fromEntries(
    Object.entries(annotations).flatMap(([name, value]) => (value === undefined ? [] : [[name, value]])),
  )
}

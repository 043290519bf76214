/** coordination.k8s.io/v1 Lease: a node's heartbeat, or who of several clients leads. */
import { ObjectMetaSchema } from './meta.ts'
import { type Described, field, integer, microTime, object, oneOf, optional, pointer, text } from './schema.ts'

export const LeaseSchema = object({
  apiVersion: oneOf('coordination.k8s.io/v1'),
  kind: oneOf('Lease'),
  metadata: field(1, ObjectMetaSchema),
  spec: field(
    2,
    optional(
      object({
        holderIdentity: pointer(1, optional(text)),
        leaseDurationSeconds: pointer(2, optional(integer)),
        acquireTime: field(3, optional(microTime)),
        renewTime: field(4, optional(microTime)),
        leaseTransitions: pointer(5, optional(integer)),
        strategy: pointer(6, optional(text)),
        preferredHolder: pointer(7, optional(text)),
      }),
    ),
  ),
})
export type Lease = Described<typeof LeaseSchema>

export const nodeLeaseNamespace = 'kube-node-lease'
/** Shows which of several controllers leads. */
export const leaderLeaseKey = { namespace: 'kube-system', name: 'bramble-controller' } as const

/** As the kubelet's (its nodeLeaseDurationSeconds). */
export const usualLeaseDurationSeconds = 40
/** As the kubelet (its nodeLeaseRenewIntervalFraction of 0.25). */
export const heartbeatsPerLease = 4
/** On a Node whose agent renews its lease more rarely than usual: the duration of the lease in seconds. */
export const leaseDurationAnnotation = 'bramble.dev/lease-duration-seconds'

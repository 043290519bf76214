/** coordination.k8s.io/v1 Lease: a node's heartbeat. */
import { ObjectMetaSchema } from './meta.ts'
import { type Described, integer, microTime, object, oneOf, optional, text } from './schema.ts'

export const LeaseSchema = object({
  apiVersion: oneOf('coordination.k8s.io/v1'),
  kind: oneOf('Lease'),
  metadata: ObjectMetaSchema,
  spec: optional(
    object({
      holderIdentity: optional(text),
      leaseDurationSeconds: optional(integer),
      acquireTime: optional(microTime),
      renewTime: optional(microTime),
      leaseTransitions: optional(integer),
      strategy: optional(text),
      preferredHolder: optional(text),
    }),
  ),
})
export type Lease = Described<typeof LeaseSchema>

export const nodeLeaseNamespace = 'kube-node-lease'

/** As the kubelet's (its nodeLeaseDurationSeconds). */
export const usualLeaseDurationSeconds = 40
/** As the kubelet (its nodeLeaseRenewIntervalFraction of 0.25). */
export const heartbeatsPerLease = 4
/** On a Node whose agent renews its lease more rarely than usual: the duration of the lease in seconds. */
export const leaseDurationAnnotation = 'bramble.dev/lease-duration-seconds'

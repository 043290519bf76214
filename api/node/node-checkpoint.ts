/**
 * What a node posts to a restored controller: the pods that were bound to it, and what those refer to. Sent to
 * `/api/v1/nodes/NODE/checkpoint` in as many parts as it takes; `complete` marks the last part.
 */
import { ConfigMapSchema } from '../config-map.ts'
import { PodSchema } from '../pod.ts'
import { bool, type Described, list, object, oneOf, optional, text } from '../schema.ts'
import { SecretSchema } from '../secret.ts'
import { ProvenRecordSchema } from '../storage/node-claim.ts'

export const NodeCheckpointSchema = object({
  apiVersion: oneOf('bramble.dev/v1alpha1'),
  kind: oneOf('NodeCheckpoint'),
  /** The store that requested it: a checkpoint for another one is rejected. */
  store: text,
  pods: optional(list(PodSchema)),
  configMaps: optional(list(ConfigMapSchema)),
  secrets: optional(list(SecretSchema)),
  /** The claims of the pods, with the volumes that they are bound to. */
  claims: optional(list(ProvenRecordSchema)),
  complete: optional(bool),
  /**
   * Set on the last part: the node has its whole checkpoint, and no pod that is not in what it sent. Absent: it has
   * lost the checkpoint, has an older copy, cannot decode all of it, or its version does not report this.
   */
  hasAllPods: optional(bool),
})
export type NodeCheckpoint = Described<typeof NodeCheckpointSchema>

/** On a Node: the store that received its checkpoint. Only the controller may set it. */
export const learntByAnnotation = 'bramble.dev/learnt-by'

/**
 * On a Pod, a claim and a volume, and on ConfigMaps and Secrets (comma-separated): the nodes whose checkpoints it came with. Removed from a
 * pod, it counts as assigned by the controller. On pods, ConfigMaps and Secrets only the controller may set it.
 */
export const learntFromAnnotation = 'bramble.dev/learnt-from'
/** On ConfigMaps and Secrets: the SHA-256 of the content that those nodes delivered. */
export const learntDigestAnnotation = 'bramble.dev/learnt-digest'
/** On ConfigMaps and Secrets: the nodes that delivered other content. Until an operator decides only its own nodes get it. */
export const contestedByAnnotation = 'bramble.dev/contested-by'
/**
 * On ConfigMaps and Secrets: the node that delivered it without a proof that a controller had sent it. Until an operator decides only its own
 * nodes get it.
 */
export const unprovenFromAnnotation = 'bramble.dev/unproven-from'
/** On ConfigMaps and Secrets that nodes receive: the proof that a controller of this fleet has sent this content. Nothing reads it in the store. */
export const contentProofAnnotation = 'bramble.dev/content-proof'
/** On ConfigMaps and Secrets: `NODE@STORE` of each node whose content was not accepted. What it delivers later is not accepted either. */
export const rejectedFromAnnotation = 'bramble.dev/rejected-from'
/** On Secrets in kube-system that keep content that was not applied: `secrets NAMESPACE/NAME`. */
export const checkpointCopyAnnotation = 'bramble.dev/checkpoint-copy-of'
/** Label of those Secrets. */
export const checkpointCopyLabel = 'bramble.dev/checkpoint-copy'

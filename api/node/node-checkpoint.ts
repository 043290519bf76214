/**
 * What a node posts to a controller whose store began without it: the pods it was assigned, and what they name. Sent to
 * `/api/v1/nodes/NODE/checkpoint` in as many parts as it takes; `complete` marks the last part.
 */
import { ConfigMapSchema } from '../config-map.ts'
import { PodSchema } from '../pod.ts'
import { bool, type Described, list, object, oneOf, optional, text } from '../schema.ts'
import { SecretSchema } from '../secret.ts'

export const NodeCheckpointSchema = object({
  apiVersion: oneOf('bramble.dev/v1alpha1'),
  kind: oneOf('NodeCheckpoint'),
  /** The store that asked: an answer meant for another one is refused. */
  store: text,
  pods: optional(list(PodSchema)),
  configMaps: optional(list(ConfigMapSchema)),
  secrets: optional(list(SecretSchema)),
  complete: optional(bool),
})
export type NodeCheckpoint = Described<typeof NodeCheckpointSchema>

/** On a Node: the store that has learnt what the node knew. The controller's word: a node may not write it. */
export const learntByAnnotation = 'bramble.dev/learnt-by'

/**
 * On a Pod, and on ConfigMaps and Secrets (comma-separated): the nodes whose checkpoints it came with. Removed from a pod,
 * it counts as assigned by the controller. The controller's word: a node may not write it.
 */
export const learntFromAnnotation = 'bramble.dev/learnt-from'
/** On ConfigMaps and Secrets: the SHA-256 of the content that those nodes delivered. */
export const learntDigestAnnotation = 'bramble.dev/learnt-digest'
/** On ConfigMaps and Secrets: the nodes that delivered other content. Until an operator decides only its own nodes get it. */
export const contestedByAnnotation = 'bramble.dev/contested-by'
/** On Secrets in kube-system that keep what was not taken: `secrets NAMESPACE/NAME`. */
export const checkpointCopyAnnotation = 'bramble.dev/checkpoint-copy-of'
/** Label of those Secrets. */
export const checkpointCopyLabel = 'bramble.dev/checkpoint-copy'

/**
 * What a node tells a controller whose store began without it: the pods it was told to run, and what they name. Sent to
 * `/api/v1/nodes/NODE/checkpoint` in as many parts as it takes; `complete` says that this was the last.
 */
import { ConfigMapSchema } from './config-map.ts'
import { PodSchema } from './pod.ts'
import { bool, type Described, list, object, oneOf, optional, text } from './schema.ts'
import { SecretSchema } from './secret.ts'

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

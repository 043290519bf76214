/**
 * Decides which ConfigMaps and Secrets a node may have: those that pods name which this controller assigned to it. A pod that
 * came with a checkpoint is the node's own claim: it opens only what the node itself delivered, unchanged since.
 */
import { createHash } from 'node:crypto'
import { rootCertificatesName } from '../../../api/access/service-account-names.ts'
import type { ConfigMap } from '../../../api/config-map.ts'
import {
  contestedByAnnotation,
  learntDigestAnnotation,
  learntFromAnnotation,
  unprovenFromAnnotation,
} from '../../../api/node/node-checkpoint.ts'
import { mirrorAnnotation, type Pod } from '../../../api/pod.ts'
import type { Secret } from '../../../api/secret.ts'

/** Whether this controller assigned it (scheduler, binding, an administrator), and no node claimed it. */
export function isAssigned({ metadata }: Pick<Pod, 'metadata'>): boolean {
  const { annotations = {} } = metadata
  return annotations[learntFromAnnotation] === undefined && annotations[mirrorAnnotation] === undefined
}

/** The nodes that delivered this very content with their checkpoints; none when it was changed since. */
export function deliveredBy(object: ConfigMap | Secret): readonly string[] {
  const { [learntFromAnnotation]: nodes = '', [learntDigestAnnotation]: digest } = object.metadata.annotations ?? {}
  return digest !== undefined && digest === contentDigest(object) ? nodeNames(nodes) : []
}

/** Whether only nodes stand for its content, none of which has proven it, and no operator has decided yet. Changed content is a decision. */
export function isUnproven(object: ConfigMap | Secret): boolean {
  return object.metadata.annotations?.[unprovenFromAnnotation] !== undefined && deliveredBy(object).length > 0
}

/** Whether it waits for an operator: it is unproven, or another node delivered other content. */
export function isHeld(object: ConfigMap | Secret): boolean {
  const isContested = object.metadata.annotations?.[contestedByAnnotation] !== undefined
  return isUnproven(object) || (isContested && deliveredBy(object).length > 0)
}

/** `assigned`: a pod that the controller assigned to the node names the object; else only claimed pods do. */
export function mayHave(
  node: string,
  object: ConfigMap | Secret,
  { assigned }: { readonly assigned: boolean },
): boolean {
  // The authorities are not secret, and every pod with a token needs them.
  if (object.kind === 'ConfigMap' && object.metadata.name === rootCertificatesName) return true
  if (assigned && !isHeld(object)) return true
  return deliveredBy(object).includes(node)
}

/** Digest of what pods use of the object, and nothing else; equal for equal content in any order of keys. */
export function contentDigest(object: ConfigMap | Secret): string {
  const content =
    object.kind === 'Secret'
      ? [object.type ?? 'Opaque', sorted(object.data)]
      : ['', sorted(object.data), sorted(object.binaryData)]
  return createHash('sha256').update(JSON.stringify(content)).digest('hex')
}

/** The names in one of the annotations, sorted. */
export function nodeNames(text: string | undefined): readonly string[] {
  return (text ?? '').split(',').filter((name) => name !== '')
}

function sorted(map: { readonly [key: string]: string } | undefined): readonly (readonly [string, string])[] {
  return Object.entries(map ?? {}).sort(([a], [b]) => (a < b ? -1 : 1))
}

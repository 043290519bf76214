/** Annotations of a Node that other nodes go by: who may write them, and which values they can have. */
import { ApiError } from '../../../api/api-error.ts'
import { type Identity, nodeOf } from '../../../api/identity.ts'
import {
  relayAnnotation,
  wireguardEndpointAnnotation,
  wireguardEndpointProblem,
  wireguardKeyAnnotation,
  wireguardKeyProblem,
} from '../../../api/network/wireguard.ts'
import type { Node } from '../../../api/node.ts'
import { invalid, notSupported, type Problem } from '../../../api/problem.ts'

/** Of those that differ from `old`: a value from before this check does not keep others from being changed. */
export function nodeAnnotationProblems({ metadata }: Node, old?: Node): readonly Problem[] {
  return Object.entries(checks).flatMap(([name, check]) => {
    const value = metadata.annotations?.[name]
    if (value === undefined || value === old?.metadata.annotations?.[name]) return []
    return check(`metadata.annotations[${name}]`, value)
  })
}

type Check = (field: string, value: string) => readonly Problem[]

const checks: { readonly [annotation: string]: Check } = {
  [wireguardKeyAnnotation]: asProblem(wireguardKeyProblem),
  [wireguardEndpointAnnotation]: asProblem(wireguardEndpointProblem),
  [relayAnnotation]: (field, value) =>
    ['true', 'false'].includes(value) ? [] : [notSupported(field, value, ['true', 'false'])],
}

function asProblem(problemOf: (value: string) => string | undefined): Check {
  return (field, value) => {
    const problem = problemOf(value)
    return problem === undefined ? [] : [invalid(field, value, problem)]
  }
}

/**
 * Throws Forbidden for another public key from any client but the node: with a key of one's own one could take its place. The
 * annotation may be removed; the node writes it again.
 */
export function refuseOtherKey({ metadata }: Node, requester: Identity, old: Node): void {
  const key = metadata.annotations?.[wireguardKeyAnnotation]
  if (key === undefined || key === old.metadata.annotations?.[wireguardKeyAnnotation]) return
  if (nodeOf(requester) === metadata.name) return
  const message = `nodes "${metadata.name}" is forbidden: only the node itself may set the annotation ${wireguardKeyAnnotation}`
  throw new ApiError('Forbidden', message)
}

/** A Node that another client creates, such as one from a backup, has no key until the node writes it. */
export function withoutOtherKey(node: Node, requester: Identity): Node {
  const { [wireguardKeyAnnotation]: key, ...annotations } = node.metadata.annotations ?? {}
  if (key === undefined || nodeOf(requester) === node.metadata.name) return node
  return { ...node, metadata: { ...node.metadata, annotations } }
}

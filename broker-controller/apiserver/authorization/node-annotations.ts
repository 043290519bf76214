/** Annotations of a Node that nodes go by: who may write them, and which values they can have. */
import { ApiError } from '../../../api/api-error.ts'
import { type Identity, nodeOf } from '../../../api/identity.ts'
import {
  relayAnnotation,
  wireguardEndpointAnnotation,
  wireguardEndpointProblem,
  wireguardKeyAnnotation,
  wireguardKeyProblem,
} from '../../../api/network/wireguard.ts'
import { agentReleaseAnnotation } from '../../../api/node/agent-update.ts'
import { cordonedByAnnotation, maintenanceAnnotation } from '../../../api/node/node-maintenance.ts'
import { rebootRequestedAnnotation, rebootStatusAnnotation } from '../../../api/node/reboot-annotations.ts'
import { rebootTimeProblem } from '../../../api/node/remote-reboot.ts'
import type { Node } from '../../../api/node.ts'
import { invalid, notSupported, type Problem } from '../../../api/problem.ts'

/** Checks the annotations that differ from `old`: a value from before this check does not block other changes. */
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
  [rebootRequestedAnnotation]: asProblem(rebootTimeProblem),
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

/**
 * Throws Forbidden where another Node of `all` has the key: after a restart of the controller it might have been taken for that one's,
 * and its pods would not have been reached. Machines have one key if the card of one was copied.
 */
export async function refuseTakenKey(
  { metadata }: Node,
  old: Node,
  all: () => Promise<readonly Node[]>,
): Promise<void> {
  const key = metadata.annotations?.[wireguardKeyAnnotation]
  if (key === undefined || key === old.metadata.annotations?.[wireguardKeyAnnotation]) return
  const owner = (await all()).find(
    (one) => one.metadata.name !== metadata.name && one.metadata.annotations?.[wireguardKeyAnnotation] === key,
  )
  if (owner === undefined) return
  const remedy = 'remove wireguard.key from the data directory of one of their agents, and restart it'
  const message = `nodes "${metadata.name}" is forbidden: node "${owner.metadata.name}" has the same WireGuard key: ${remedy}`
  throw new ApiError('Forbidden', message)
}

/**
 * Throws Forbidden where a write of the status, which may change annotations, requests a reboot, sets one in force again, or changes the
 * release of the agent or the maintenance of the machine: the right to report conditions, as of system:node-problem-detector, is not the right to these.
 */
export function refuseRequestsByStatus({ metadata }: Node, old: Node): void {
  const changed = annotationsOfOrders.find((name) => metadata.annotations?.[name] !== old.metadata.annotations?.[name])
  if (changed === undefined) return
  const message = `nodes "${metadata.name}" is forbidden: a write of the status may not change the annotation ${changed}`
  throw new ApiError('Forbidden', message)
}

const annotationsOfOrders = [
  rebootRequestedAnnotation,
  rebootStatusAnnotation,
  agentReleaseAnnotation,
  maintenanceAnnotation,
  cordonedByAnnotation,
]

/** A new Node, such as one from a backup, has no key until the node writes it. */
export function withoutKey(node: Node): Node {
  const { [wireguardKeyAnnotation]: key, ...annotations } = node.metadata.annotations ?? {}
  if (key === undefined) return node
  return { ...node, metadata: { ...node.metadata, annotations } }
}

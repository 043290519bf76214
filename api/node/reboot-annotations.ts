/** Annotations of a Node for the reboot of its machine on request; apart from the schemas, because the page in the browser uses them. */
import type { Node } from '../node.ts'

/** Set by a client that may update the Node: when it asks for the reboot, RFC 3339. */
export const rebootRequestedAnnotation = 'bramble.dev/reboot-requested-at'
/** Set by the agent: `enabled` where its configuration has `enableRemoteReboot`. */
export const remoteRebootAnnotation = 'bramble.dev/remote-reboot'
/** Set by the controller: what became of the last request, a RebootStatus as JSON. */
export const rebootStatusAnnotation = 'bramble.dev/reboot-status'

/** The Node's agent carries out requests. */
export function allowsRemoteReboot({ metadata }: Pick<Node, 'metadata'>): boolean {
  return metadata.annotations?.[remoteRebootAnnotation] === 'enabled'
}

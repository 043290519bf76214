/**
 * Annotations of a Node in which the node lifecycle controller keeps what it needs after a restart, when leases are forgotten. Nodes may not
 * write them.
 */

/** RFC 3339: when a node that has announced its absence is expected back. */
export const expectedBackAnnotation = 'bramble.dev/expected-back'
/** Why it is absent. */
export const goodbyeReasonAnnotation = 'bramble.dev/goodbye-reason'
/** The link with which the node was lost, while that is suspected. */
export const suspectedLinkAnnotation = 'bramble.dev/suspected-link'

/** Sizes on which the controller and the written configuration of an external MQTT server must agree. */

/**
 * The longest body that is published: a server closes the connection of a client that sends more than its limit. `desired` has all pods of
 * a node with their ConfigMaps and Secrets, of up to 1 MiB each.
 */
export const longestPublished = 64 * 1024 * 1024

/** The largest packet: such a body, and the rest of its packet. */
export const longestSent = longestPublished + 64 * 1024

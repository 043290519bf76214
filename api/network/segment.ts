/** The link that a node is on, as far as addresses and its annotation show it. */

/** Names the link of a node; nodes of one segment reach each other without a router. */
export const segmentAnnotation = 'bramble.dev/segment'
const longestSegment = 253

/** Segment of a node with this IPv4 address: that of its annotation, or the /24 of the address. */
export function segmentOf(annotations: { readonly [name: string]: string } | undefined, address: string): string {
  return annotations?.[segmentAnnotation]?.slice(0, longestSegment) || usualSegment(address)
}

/** The /24 of an IPv4 address: what most networks of homes and offices are. */
export function usualSegment(address: string): string {
  return `${address.slice(0, address.lastIndexOf('.'))}.0/24`
}

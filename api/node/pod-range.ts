/** The addresses of a node's pods. */
import type { Node } from '../node.ts'
import { parseCidr } from '../text/cidr.ts'
import { formatIPv6Range, maskedIPv6Range } from '../text/ipv6-range.ts'

/** The first IPv4 range; undefined: the node has none. */
export function podRangeOf(node: Pick<Node, 'spec'> | undefined): string | undefined {
  return rangesOf(node).find((range) => parseCidr(range) !== undefined)
}

/** The first IPv6 range, in canonical form and without bits beyond its mask; undefined: the node has none. */
export function ipv6PodRangeOf(node: Pick<Node, 'spec'> | undefined): string | undefined {
  for (const text of rangesOf(node)) {
    const range = text.includes(':') ? maskedIPv6Range(text) : undefined
    if (range !== undefined) return formatIPv6Range(range)
  }
  return undefined
}

function rangesOf(node: Pick<Node, 'spec'> | undefined): readonly string[] {
  const { podCIDR = '', podCIDRs = [] } = node?.spec ?? {}
  return [podCIDR, ...podCIDRs]
}

/** The addresses of a node's pods. */
import type { Node } from '../node.ts'
import { parseCidr } from '../text/cidr.ts'

/** The first range of IPv4; undefined: the node has none. Pods have no addresses of IPv6, whatever else is written into the Node. */
export function podRangeOf(node: Pick<Node, 'spec'> | undefined): string | undefined {
  const { podCIDR = '', podCIDRs = [] } = node?.spec ?? {}
  return [podCIDR, ...podCIDRs].find((range) => parseCidr(range) !== undefined)
}

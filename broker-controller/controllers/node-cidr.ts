/** Chooses the block of pod addresses of a node: never one that another node has. */
import { ipv6NodeMaskSize } from '../../api/network/ipv6-ranges.ts'
import { formatCidr, parseCidr, sizeOfCidr } from '../../api/text/cidr.ts'
import { formatIPv6Range, parseIPv6Range, sizeOfIPv6Range } from '../../api/text/ipv6-range.ts'

export type NodeCidrSettings = {
  /** Whose blocks the nodes get. */
  readonly clusterCIDR: string
  /** How large a block is: 24 gives 256 addresses. */
  readonly nodeCIDRMaskSize: number
}

/** 256 nodes with 254 pods each. */
export const defaultNodeCidrSettings: NodeCidrSettings = { clusterCIDR: '10.244.0.0/16', nodeCIDRMaskSize: 24 }

export interface NodeCidrs {
  /** How many blocks there are. */
  readonly size: number
  /** A block of its own for `owner`; undefined when there is none left. */
  take(owner: string): string | undefined
  /** `owner` has these addresses, however it got them. False when another has some of them too. */
  mark(cidr: string, owner: string): boolean
  /** `owner` has them no longer. */
  release(cidr: string, owner: string): void
}

/** Throws TypeError when the settings describe no blocks: configuration is judged by `nodeCidrProblem`. */
export function nodeCidrs({ clusterCIDR, nodeCIDRMaskSize }: NodeCidrSettings): NodeCidrs {
  const cluster = parseCidr(clusterCIDR)
  if (cluster === undefined) throw new TypeError(`${clusterCIDR} is not a CIDR`)
  const blockSize = sizeOfCidr({ bits: nodeCIDRMaskSize })
  return blocksOf({
    size: sizeOfCidr(cluster) / blockSize,
    nth: (index) => formatCidr({ first: cluster.first + index * blockSize, bits: nodeCIDRMaskSize }),
    touched(text) {
      const cidr = parseCidr(text)
      if (cidr === undefined) return undefined
      const from = Math.floor((cidr.first - cluster.first) / blockSize)
      return [from, Math.floor((cidr.first + sizeOfCidr(cidr) - 1 - cluster.first) / blockSize)]
    },
  })
}

/** The blocks of /64 of an IPv6 range. Throws TypeError for a range that `ipv6Ranges` (api/network/ipv6-ranges.ts) refuses. */
export function ipv6NodeCidrs(clusterCIDR: string): NodeCidrs {
  const cluster = parseIPv6Range(clusterCIDR)
  if (cluster === undefined) throw new TypeError(`${clusterCIDR} is not an IPv6 CIDR`)
  const blockSize = sizeOfIPv6Range({ bits: ipv6NodeMaskSize })
  const blockWith = (address: bigint) => Number((address >> 64n) - (cluster.first >> 64n))
  return blocksOf({
    size: Number(sizeOfIPv6Range(cluster) / blockSize),
    nth: (index) => formatIPv6Range({ first: cluster.first + BigInt(index) * blockSize, bits: ipv6NodeMaskSize }),
    touched(text) {
      const range = parseIPv6Range(text)
      if (range === undefined) return undefined
      return [blockWith(range.first), blockWith(range.first + sizeOfIPv6Range(range) - 1n)]
    },
  })
}

type Blocks = {
  readonly size: number
  /** The block with this index, as text. */
  nth(index: number): string
  /** The first and the last block that a range overlaps, below 0 or from `size` on where it lies elsewhere; undefined: it is not a range. */
  touched(range: string): readonly [from: number, to: number] | undefined
}

function blocksOf({ size, nth, touched }: Blocks): NodeCidrs {
  const owners = new Map<number, Set<string>>()
  let next = 0

  const within = (text: string): readonly number[] => {
    const [first, last] = touched(text) ?? [0, -1]
    const [from, to] = [Math.max(0, first), Math.min(size - 1, last)]
    return Array.from({ length: Math.max(0, to - from + 1) }, (_, index) => from + index)
  }

  return {
    size,
    take(owner) {
      if (owners.size === size) return undefined
      while (owners.has(next)) next = (next + 1) % size
      const block = nth(next)
      owners.set(next, new Set([owner]))
      // A block that was just given back rests as long as there are others: old connections may still mean it.
      next = (next + 1) % size
      return block
    },
    mark(cidr, owner) {
      const blocks = within(cidr)
      for (const block of blocks) owners.set(block, (owners.get(block) ?? new Set()).add(owner))
      return blocks.every((block) => owners.get(block)?.size === 1)
    },
    release(cidr, owner) {
      for (const block of within(cidr)) {
        const holders = owners.get(block)
        holders?.delete(owner)
        if (holders?.size === 0) owners.delete(block)
      }
    },
  }
}

/** At most this many blocks, as Kubernetes. */
const mostBits = 16

/** What is wrong with these settings, if anything. */
export function nodeCidrProblem({ clusterCIDR, nodeCIDRMaskSize }: NodeCidrSettings): string | undefined {
  const cluster = parseCidr(clusterCIDR)
  if (cluster === undefined) {
    return `clusterCIDR: ${JSON.stringify(clusterCIDR)} must be an IPv4 range (like 10.244.0.0/16)`
  }
  const most = Math.min(30, cluster.bits + mostBits)
  if (nodeCIDRMaskSize >= cluster.bits && nodeCIDRMaskSize <= most) return undefined
  return `nodeCIDRMaskSize: ${nodeCIDRMaskSize} must be between ${cluster.bits} and ${most} for ${clusterCIDR}`
}

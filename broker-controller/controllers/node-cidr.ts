/** Chooses the block of pod addresses of a node: never one that another node has. */
import { ipv6Refusal } from '../../api/network/service-range.ts'
import { hasIPv6Range } from '../../api/text/address-block.ts'
import { type Cidr, formatCidr, parseCidr, sizeOfCidr } from '../../api/text/cidr.ts'

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
  if (cluster === undefined) throw new TypeError(`${clusterCIDR} is no range of addresses`)
  const blockSize = sizeOfCidr({ bits: nodeCIDRMaskSize })
  const size = sizeOfCidr(cluster) / blockSize
  const owners = new Map<number, Set<string>>()
  let next = 0

  /** The blocks that a range touches, which is none when it lies elsewhere. */
  const blocksOf = (text: string): readonly number[] => {
    const cidr = parseCidr(text)
    if (cidr === undefined) return []
    const from = Math.max(0, Math.floor((cidr.first - cluster.first) / blockSize))
    const to = Math.min(size - 1, Math.floor((cidr.first + sizeOfCidr(cidr) - 1 - cluster.first) / blockSize))
    return Array.from({ length: Math.max(0, to - from + 1) }, (_, index) => from + index)
  }

  return {
    size,
    take(owner) {
      if (owners.size === size) return undefined
      while (owners.has(next)) next = (next + 1) % size
      const block: Cidr = { first: cluster.first + next * blockSize, bits: nodeCIDRMaskSize }
      owners.set(next, new Set([owner]))
      // A block that was just given back rests as long as there are others: old connections may still mean it.
      next = (next + 1) % size
      return formatCidr(block)
    },
    mark(cidr, owner) {
      const blocks = blocksOf(cidr)
      for (const block of blocks) owners.set(block, (owners.get(block) ?? new Set()).add(owner))
      return blocks.every((block) => owners.get(block)?.size === 1)
    },
    release(cidr, owner) {
      for (const block of blocksOf(cidr)) {
        const holders = owners.get(block)
        holders?.delete(owner)
        if (holders?.size === 0) owners.delete(block)
      }
    },
  }
}

/** At most so many blocks, as Kubernetes. */
const mostBits = 16

/** What is wrong with these settings, if anything. */
export function nodeCidrProblem({ clusterCIDR, nodeCIDRMaskSize }: NodeCidrSettings): string | undefined {
  if (hasIPv6Range(clusterCIDR)) return ipv6Refusal('clusterCIDR', clusterCIDR, defaultNodeCidrSettings.clusterCIDR)
  const cluster = parseCidr(clusterCIDR)
  if (cluster === undefined) {
    return `clusterCIDR: ${JSON.stringify(clusterCIDR)} must be a range of IPv4 addresses (like 10.244.0.0/16)`
  }
  const most = Math.min(30, cluster.bits + mostBits)
  if (nodeCIDRMaskSize >= cluster.bits && nodeCIDRMaskSize <= most) return undefined
  return `nodeCIDRMaskSize: ${nodeCIDRMaskSize} must be between ${cluster.bits} and ${most} for ${clusterCIDR}`
}

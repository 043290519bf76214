/** Counts the nodes with each value of a label, and with each image. */
import type { Labels } from '../../api/selectors.ts'
import { addTo } from './counts.ts'
import { hasImage, imageNames } from './image-locality.ts'
import type { NodeAllocation } from './node-usage.ts'

export interface NodeCounts {
  countLabels(labels: Labels, change: 1 | -1): void
  countImages(node: NodeAllocation['node'], change: 1 | -1): void
  /** How many nodes have each value of that label. Counted at the first call, kept up to date afterwards. */
  domains(label: string): ReadonlyMap<string, number>
  /** How many nodes have that image. Counted at the first call, kept up to date afterwards. */
  carriers(image: string): number
}

/** Names of images that are counted at most: those that pods have, not those that nodes have, which are fifty on each. */
const mostCountedImages = 1000

export function nodeCounts(nodes: ReadonlyMap<string, NodeAllocation>): NodeCounts {
  /** Counts by name, for the images that were asked for, also where no node has it. */
  const carriers = new Map<string, number>()
  /** Counts by value, for the labels that were asked for. */
  const domains = new Map<string, Map<string, number>>()
  return {
    countLabels(labels, change) {
      for (const [label, counts] of domains) addTo(counts, labels[label], change)
    },
    countImages({ status }, change) {
      if (carriers.size === 0) return
      for (const image of imageNames(status?.images)) {
        const count = carriers.get(image)
        if (count !== undefined) carriers.set(image, count + change)
      }
    },
    domains(label) {
      const before = domains.get(label)
      if (before !== undefined) return before
      const counts = new Map<string, number>()
      for (const { labels } of nodes.values()) addTo(counts, labels[label], 1)
      domains.set(label, counts)
      return counts
    },
    carriers(image) {
      const before = carriers.get(image)
      if (before !== undefined) return before
      if (carriers.size >= mostCountedImages) carriers.clear()
      let count = 0
      for (const { node } of nodes.values()) if (hasImage(node.status?.images, image)) count += 1
      carriers.set(image, count)
      return count
    },
  }
}

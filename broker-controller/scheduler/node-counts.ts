/** Counts the nodes with each value of a label, and with each image. */
import type { Labels } from '../../api/selectors.ts'
import { addTo } from './counts.ts'
import { imageNames } from './image-locality.ts'
import type { NodeAllocation } from './node-usage.ts'

export interface NodeCounts {
  countLabels(labels: Labels, change: 1 | -1): void
  countImages(node: NodeAllocation['node'], change: 1 | -1): void
  /** How many nodes have each value of that label. Counted at the first call, kept up to date afterwards. */
  domains(label: string): ReadonlyMap<string, number>
  /** How many nodes have that image. */
  carriers(image: string): number
}

export function nodeCounts(nodes: ReadonlyMap<string, NodeAllocation>): NodeCounts {
  const carriers = new Map<string, number>()
  /** Counts by value, for the labels that were asked for. */
  const domains = new Map<string, Map<string, number>>()
  return {
    countLabels(labels, change) {
      for (const [label, counts] of domains) addTo(counts, labels[label], change)
    },
    countImages({ status }, change) {
      for (const image of imageNames(status?.images)) addTo(carriers, image, change)
    },
    domains(label) {
      const before = domains.get(label)
      if (before !== undefined) return before
      const counts = new Map<string, number>()
      for (const { labels } of nodes.values()) addTo(counts, labels[label], 1)
      domains.set(label, counts)
      return counts
    },
    carriers: (image) => carriers.get(image) ?? 0,
  }
}

/** Counts the nodes with each value of a label, and with each image. */
import type { Labels } from '../../api/selectors.ts'
import { finished, type Steps } from '../../daemon/watchdog/steps.ts'
import { addTo } from './counts.ts'
import { imageNames } from './image-locality.ts'
import type { NodeAllocation } from './node-usage.ts'

export interface NodeCounts {
  countLabels(labels: Labels, change: 1 | -1): void
  countImages(node: NodeAllocation['node'], change: 1 | -1): void
  /** Whether any node has that label. */
  hasLabel(label: string): boolean
  /** How many nodes have each value of that label. Counted at the first call, kept up to date afterwards. */
  domains(label: string): ReadonlyMap<string, number>
  /** Counts the nodes with each of these images in one walk: a walk for each would hold up everything else. */
  prepareCarriers(images: readonly string[]): Steps<void>
  /** How many nodes have that image. Counted at the first call, kept up to date afterwards. */
  carriers(image: string): number
}

/** Names of images that are counted at most, but for one pod with more: those that pods have, not those that nodes have, which are fifty on each. */
const mostCountedImages = 1000
/** Labels whose values are counted at most: those that pods name as a topology. */
const mostCountedLabels = 256

export function nodeCounts(nodes: ReadonlyMap<string, NodeAllocation>): NodeCounts {
  /** Counts by name, for the images that were asked for, also where no node has it. */
  const carriers = new Map<string, number>()
  /** Counts by value, for the labels that were asked for. */
  const domains = new Map<string, Map<string, number>>()
  /** The number of nodes by label. */
  const carriersOfLabels = new Map<string, number>()
  function* prepareCarriers(images: readonly string[]): Steps<void> {
    const wanted = new Set(images)
    let missing = new Set([...wanted].filter((image) => !carriers.has(image)))
    if (missing.size === 0) return
    if (carriers.size + missing.size > mostCountedImages) {
      carriers.clear()
      missing = wanted
    }
    for (const image of missing) carriers.set(image, 0)
    for (const { node } of nodes.values()) {
      for (const name of imagesOn(node, missing)) addTo(carriers, name, 1)
      yield
    }
  }
  return {
    countLabels(labels, change) {
      for (const label of Object.keys(labels)) addTo(carriersOfLabels, label, change)
      for (const [label, counts] of domains) addTo(counts, labels[label], change)
    },
    countImages({ status }, change) {
      if (carriers.size === 0) return
      for (const image of imageNames(status?.images)) {
        const count = carriers.get(image)
        if (count !== undefined) carriers.set(image, count + change)
      }
    },
    hasLabel: (label) => carriersOfLabels.has(label),
    domains(label) {
      const before = domains.get(label)
      if (before !== undefined) return before
      if (domains.size >= mostCountedLabels) domains.clear()
      const counts = new Map<string, number>()
      for (const { labels } of nodes.values()) addTo(counts, labels[label], 1)
      domains.set(label, counts)
      return counts
    },
    prepareCarriers,
    carriers(image) {
      if (!carriers.has(image)) finished(prepareCarriers([image]))
      return carriers.get(image) ?? 0
    },
  }
}

/** Those of the images that the node has, each once. */
function imagesOn({ status }: NodeAllocation['node'], wanted: ReadonlySet<string>): ReadonlySet<string> {
  const found = new Set<string>()
  for (const { names = [] } of status?.images ?? []) for (const name of names) if (wanted.has(name)) found.add(name)
  return found
}

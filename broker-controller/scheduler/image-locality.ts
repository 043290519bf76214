/** ImageLocality: prefers nodes that have the images of the pod. A download takes time, and wears an SD card. */
import type { NodeStatus } from '../../api/node.ts'
import type { Pod } from '../../api/pod.ts'
import type { NodeAllocation } from './node-usage.ts'

/** Kubernetes' limits: an image below the first is no reason to prefer a node, one above the second is all of it. */
const leastBytes = 23 * 1024 * 1024
const mostBytesPerContainer = 1000 * 1024 * 1024

/**
 * 0 to 100. An image counts by the share of nodes that have it, so that one rare image does not draw all pods to one
 * node.
 */
export function imageLocality(
  pod: Pod,
  usage: NodeAllocation,
  carriers: (image: string) => number,
  nodeCount: number,
): number {
  const containers = [...(pod.spec.initContainers ?? []), ...pod.spec.containers]
  const present = containers.reduce((sum, { image = '' }) => {
    const name = normalized(image)
    const nodes = carriers(name)
    const bytes = nodes === 0 ? undefined : bytesOf(usage.node.status?.images, name)
    return bytes === undefined ? sum : sum + Math.trunc(bytes * (nodes / nodeCount))
  }, 0)
  const most = mostBytesPerContainer * containers.length
  const within = Math.min(most, Math.max(leastBytes, present))
  return Math.trunc((100 * (within - leastBytes)) / (most - leastBytes))
}

/** All names of all images of a node, each once. */
export function imageNames(images: NodeStatus['images'] = []): ReadonlySet<string> {
  return new Set(images.flatMap(({ names = [] }) => names))
}

/** The images of the containers of a pod, as nodes name them. */
export function imagesOf({ spec }: Pod): readonly string[] {
  return [...(spec.initContainers ?? []), ...spec.containers].map(({ image = '' }) => normalized(image))
}

/** Searched for in the list that the node reported: an index for each node takes as much memory as a third of that list. */
function bytesOf(images: NodeStatus['images'] = [], name: string): number | undefined {
  return images.findLast(({ names = [] }) => names.includes(name))?.sizeBytes
}

/** Without a tag or digest: `latest`. */
function normalized(image: string): string {
  return image.lastIndexOf(':') <= image.lastIndexOf('/') ? `${image}:latest` : image
}

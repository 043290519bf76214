/** ImageLocality: prefers nodes that have the images of the pod. A download takes time, and wears an SD card. */
import type { NodeStatus } from '../../api/node.ts'
import type { Pod } from '../../api/pod.ts'
import { addTo } from './counts.ts'
import type { NodeAllocation } from './node-usage.ts'

/** Kubernetes' limits: an image below the first is not a reason to prefer a node, one above the second is all of it. */
const leastBytes = 23 * 1024 * 1024
const mostBytesPerContainer = 1000 * 1024 * 1024

/**
 * 0 to 100. An image counts by the share of nodes that have it, so that one rare image does not draw all pods to one
 * node.
 */
export function imageLocality(
  pod: Pod,
  carriers: (image: string) => number,
  nodeCount: number,
): (usage: NodeAllocation) => number {
  const images = imagesOf(pod)
  const containers = new Map<string, number>()
  for (const image of images) if (carriers(image) > 0) addTo(containers, image, 1)
  const most = mostBytesPerContainer * images.length
  return ({ node }) => {
    const bytes = containers.size === 0 ? noBytes : bytesOf(node.status?.images, containers)
    let present = 0
    for (const [image, size] of bytes) {
      present += Math.trunc(size * (carriers(image) / nodeCount)) * (containers.get(image) ?? 0)
    }
    const within = Math.min(most, Math.max(leastBytes, present))
    return Math.trunc((100 * (within - leastBytes)) / (most - leastBytes))
  }
}

const noBytes: ReadonlyMap<string, number> = new Map()

/** All names of all images of a node, each once. */
export function imageNames(images: NodeStatus['images'] = []): ReadonlySet<string> {
  return new Set(images.flatMap(({ names = [] }) => names))
}

/** The images of the containers of a pod, as nodes name them. */
export function imagesOf({ spec }: Pod): readonly string[] {
  return [...(spec.initContainers ?? []), ...spec.containers].map(({ image = '' }) => normalized(image))
}

/** Searched for in the list that the node reported: an index for each node takes as much memory as a third of that list. */
function bytesOf(images: NodeStatus['images'] = [], wanted: ReadonlyMap<string, unknown>): ReadonlyMap<string, number> {
  const bytes = new Map<string, number>()
  for (const { names = [], sizeBytes = 0 } of images) {
    for (const name of names) if (wanted.has(name)) bytes.set(name, sizeBytes)
  }
  return bytes
}

/** Without a tag or digest: `latest`. */
function normalized(image: string): string {
  return image.lastIndexOf(':') <= image.lastIndexOf('/') ? `${image}:latest` : image
}

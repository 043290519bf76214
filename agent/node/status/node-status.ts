/** The whole NodeStatus; is the change worth a report? */
import type { NodeAddress, NodeCondition, NodeStatus, NodeSystemInfo } from '../../../api/node.ts'
import type { ImageReference } from '../../pods/runtime/runtime.ts'
import { type Amounts, asQuantities } from './capacity.ts'

/** What does not change while we run. */
export type SystemFacts = Omit<NodeSystemInfo, 'containerRuntimeVersion' | 'kubeletVersion'>

export type NodeFacts = {
  readonly capacity: Amounts
  readonly allocatable: Amounts
  readonly addresses: readonly NodeAddress[]
  readonly system: SystemFacts
  readonly agentVersion: string
  /** `docker://20.10.24`; undefined when the engine never answered. */
  readonly runtimeVersion: string | undefined
  readonly images: readonly ImageReference[]
  readonly conditions: readonly NodeCondition[]
}

export function nodeStatus(facts: NodeFacts): NodeStatus {
  return {
    capacity: asQuantities(facts.capacity),
    allocatable: asQuantities(facts.allocatable),
    conditions: facts.conditions,
    addresses: facts.addresses,
    nodeInfo: {
      ...facts.system,
      containerRuntimeVersion: facts.runtimeVersion ?? 'docker://Unknown',
      kubeletVersion: facts.agentVersion,
      kubeProxyVersion: facts.agentVersion,
    },
    images: nodeImages(facts.images),
  }
}

/** As the kubelet: the largest first, few names each, those with a digest first. */
const maxImages = 50
const maxNamesPerImage = 5

function nodeImages(images: readonly ImageReference[]): NonNullable<NodeStatus['images']> {
  return images
    .filter(({ digests, tags }) => digests.length + tags.length > 0)
    .toSorted((a, b) => b.sizeBytes - a.sizeBytes || (a.id < b.id ? -1 : 1))
    .slice(0, maxImages)
    .map(({ digests, tags, sizeBytes }) => ({ names: [...digests, ...tags].slice(0, maxNamesPerImage), sizeBytes }))
}

/** Is anything different but the order of conditions and the time they were looked at? */
export function isWorthReporting(last: NodeStatus | undefined, next: NodeStatus): boolean {
  return last === undefined || JSON.stringify(timeless(last)) !== JSON.stringify(timeless(next))
}

function timeless(status: NodeStatus): NodeStatus {
  const conditions = (status.conditions ?? [])
    .map(({ lastHeartbeatTime: _, ...lasting }) => lasting)
    .toSorted((a, b) => (a.type < b.type ? -1 : 1))
  return { ...status, conditions }
}

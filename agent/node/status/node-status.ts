/** The whole NodeStatus, and whether a change of it is reported. */
import type { NodeAddress, NodeCondition, NodeRuntimeHandler, NodeStatus, NodeSystemInfo } from '../../../api/node.ts'
import type { EngineRuntime, ImageReference } from '../../runtime/runtime.ts'
import { type Amounts, asQuantities } from './capacity.ts'

/** Read once at the start of the agent. */
export type SystemFacts = Omit<NodeSystemInfo, 'containerRuntimeVersion' | 'kubeletVersion'>

export type NodeFacts = {
  readonly capacity: Amounts
  readonly allocatable: Amounts
  readonly addresses: readonly NodeAddress[]
  readonly system: SystemFacts
  readonly agentVersion: string
  /** `docker://20.10.24`; undefined if the engine never answered. */
  readonly runtimeVersion: string | undefined
  /** undefined: the engine never answered. */
  readonly runtimeHandlers?: readonly EngineRuntime[] | undefined
  readonly images: readonly ImageReference[]
  readonly conditions: readonly NodeCondition[]
  /** undefined: not known yet; those of the report before count. */
  readonly volumesInUse?: readonly string[] | undefined
}

/** As the kubelet's, for clients that ask through `nodes/NODE:PORT/proxy`. Nothing listens on it. */
const kubeletPort = 10_250

export function nodeStatus(facts: NodeFacts): NodeStatus {
  return {
    capacity: asQuantities(facts.capacity),
    allocatable: asQuantities(facts.allocatable),
    conditions: facts.conditions,
    addresses: facts.addresses,
    daemonEndpoints: { kubeletEndpoint: { Port: kubeletPort } },
    nodeInfo: {
      ...facts.system,
      containerRuntimeVersion: facts.runtimeVersion ?? 'docker://Unknown',
      kubeletVersion: facts.agentVersion,
      kubeProxyVersion: facts.agentVersion,
    },
    images: nodeImages(facts.images),
    ...(facts.volumesInUse && { volumesInUse: facts.volumesInUse }),
    ...(facts.runtimeHandlers && { runtimeHandlers: facts.runtimeHandlers.map(nodeRuntimeHandler) }),
  }
}

/** As RuntimeHandlers in pkg/kubelet/nodestatus/setters.go: without a name for that of pods without a RuntimeClass. */
function nodeRuntimeHandler({ name, ...features }: EngineRuntime): NodeRuntimeHandler {
  return { ...(name !== '' && { name }), features }
}

/** The kubelet's limits (nodeStatusMaxImages, MaxNamesPerImageInNodeStatus): the largest first, names with a digest first. */
const maxImages = 50
const maxNamesPerImage = 5

function nodeImages(images: readonly ImageReference[]): NonNullable<NodeStatus['images']> {
  return images
    .filter(({ digests, tags }) => digests.length + tags.length > 0)
    .toSorted((a, b) => b.sizeBytes - a.sizeBytes || (a.id < b.id ? -1 : 1))
    .slice(0, maxImages)
    .map(({ digests, tags, sizeBytes }) => ({ names: [...digests, ...tags].slice(0, maxNamesPerImage), sizeBytes }))
}

/** Whether anything differs but the order and the heartbeat times of the conditions. */
export function isWorthReporting(last: NodeStatus | undefined, next: NodeStatus): boolean {
  return last === undefined || JSON.stringify(timeless(last)) !== JSON.stringify(timeless(next))
}

function timeless(status: NodeStatus): NodeStatus {
  const conditions = (status.conditions ?? [])
    .map(({ lastHeartbeatTime: _, ...lasting }) => lasting)
    .toSorted((a, b) => (a.type < b.type ? -1 : 1))
  return { ...status, conditions }
}

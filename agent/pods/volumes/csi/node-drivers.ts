/** The drivers of a node → what its CSINode and its Node are to have. Pure. */
import { isDeepStrictEqual } from 'node:util'
import type { CSINode, CSINodeDriver } from '../../../../api/storage/csi-node.ts'

export type NodeDriver = {
  readonly name: string
  /** What the driver calls this node. */
  readonly nodeID: string
  /** Where volumes must be that this node can have. */
  readonly topology: { readonly [key: string]: string }
  readonly maxVolumes?: number
}

export const nodeIdAnnotation = 'csi.volume.kubernetes.io/nodeid'

export function csiNodeDrivers(drivers: readonly NodeDriver[]): readonly CSINodeDriver[] {
  return drivers.map(({ name, nodeID, topology, maxVolumes }) => {
    const topologyKeys = Object.keys(topology).sort()
    return {
      ...{ name, nodeID },
      ...(topologyKeys.length > 0 && { topologyKeys }),
      ...(maxVolumes !== undefined && { allocatable: { count: maxVolumes } }),
    }
  })
}

/**
 * The lists to write one after the other. A driver that changed is taken away first: the API takes no change of an entry.
 */
export function csiNodeWrites(
  present: CSINode | undefined,
  wanted: readonly CSINodeDriver[],
): readonly (readonly CSINodeDriver[])[] {
  const before = present?.spec?.drivers ?? []
  if (present !== undefined && isDeepStrictEqual(sorted(before), sorted(wanted))) return []
  const kept = before.filter((one) => wanted.every((other) => other.name !== one.name || isDeepStrictEqual(other, one)))
  const hasChanged = before.some((one) => !kept.includes(one) && wanted.some(({ name }) => name === one.name))
  return hasChanged ? [kept, wanted] : [wanted]
}

function sorted(drivers: readonly CSINodeDriver[]): readonly CSINodeDriver[] {
  return [...drivers].sort((a, b) => (a.name < b.name ? -1 : 1))
}

type NodeFacts = {
  readonly labels?: { readonly [name: string]: string }
  readonly annotations?: { readonly [name: string]: string }
}

/** The merge patch of the Node: labels of the topology that are missing, and the annotation with the IDs. undefined: it has them. */
export function csiNodePatch(
  { labels = {}, annotations = {} }: NodeFacts,
  drivers: readonly NodeDriver[],
): { readonly metadata: object } | undefined {
  const changed = drivers.flatMap(({ topology }) =>
    Object.entries(topology).filter(([key]) => labels[key] === undefined),
  )
  const ids =
    drivers.length === 0 ? null : JSON.stringify(Object.fromEntries(drivers.map(({ name, nodeID }) => [name, nodeID])))
  const isSame = (annotations[nodeIdAnnotation] ?? null) === ids
  if (changed.length === 0 && isSame) return undefined
  return {
    metadata: {
      ...(changed.length > 0 && { labels: Object.fromEntries(changed) }),
      ...(!isSame && { annotations: { [nodeIdAnnotation]: ids } }),
    },
  }
}

/** What keeps a driver's volumes from this node, in the words of the kubelet (updateTopologyLabels in pkg/volume/csi/nodeinfomanager). */
export function topologyCollisions({ labels = {} }: NodeFacts, drivers: readonly NodeDriver[]): readonly string[] {
  return drivers.flatMap(({ topology }) =>
    Object.entries(topology).flatMap(([key, value]) => {
      const present = labels[key]
      if (present === undefined || present === value) return []
      return [
        `detected topology value collision: driver reported "${key}":"${value}" but existing label is "${key}":"${present}"`,
      ]
    }),
  )
}

/** The nodes and their allocated resources: from the store, and from the scheduler's own last decisions. */
import { isDeepStrictEqual } from 'node:util'
import type { Labels } from '../../api/selectors.ts'
import type { Steps } from '../../daemon/watchdog/steps.ts'
import type { StoredObject, StoredPod } from '../store/store.ts'
import { nodeCounts } from './node-counts.ts'
import { type NodeAllocation, type NodeInfo, nodeInfo } from './node-usage.ts'
import { type KeyedPod, nominations } from './nominations.ts'
import { type PodPlacement, placements } from './placements.ts'
import { type PodClasses, podClasses } from './pod-classes.ts'
import { type VolumeCache, type VolumeView, volumeCache } from './volumes/volume-cache.ts'

/** Pods of one node that a trial takes away and puts back. */
export type PodTrial = { readonly putBack: (one: KeyedPod) => void; readonly takeAway: (one: KeyedPod) => void }

export interface Cluster {
  readonly nodeCount: number
  readonly podClasses: PodClasses
  readonly volumes: VolumeView & Pick<VolumeCache, 'stored'>
  node(name: string): NodeAllocation | undefined
  /** Every node once, from the index `start`: consecutive decisions start at different nodes. */
  from(start: number): Iterable<NodeAllocation>
  /** Whether any node has that label. */
  hasLabel(label: string): boolean
  /** The number of nodes by value of that label. */
  domains(label: string): ReadonlyMap<string, number>
  /** Counts the nodes with each of these images in one walk. */
  prepareCarriers(images: readonly string[]): Steps<void>
  /** How many nodes have that image. */
  carriers(image: string): number
  /** Undefined: the namespace does not exist. */
  namespaceLabels(name: string): Labels | undefined
  /** Pods nominated to that node, whose preempted pods are still terminating. */
  nominatedTo(nodeName: string): readonly KeyedPod[]
  nominationOf(key: string): string | undefined
  /** The result of `act` with those pods removed, or added. The state is restored afterwards. */
  without<T>(pods: readonly KeyedPod[], nodeName: string, act: (trial: PodTrial) => Steps<T>): Steps<T>
  with<T>(pods: readonly KeyedPod[], nodeName: string, act: () => Steps<T>): Steps<T>
}

/** The cluster with its changes; decisions see `Cluster`. */
export interface ClusterCache extends Cluster {
  readonly volumes: VolumeCache
  putNode(node: StoredObject<'nodes'>): void
  deleteNode(name: string): void
  putNamespace(name: string, labels: Labels | undefined): void
  /** Assigns the pod's requests to that node, and to no other. */
  place(key: string, pod: StoredPod, nodeName: string): void
  remove(key: string): void
  /** Where the pod is placed. */
  nodeOf(key: string): string | undefined
  /** '': to none. */
  nominate(key: string, pod: StoredPod, nodeName: string): void
}

export function cluster(): ClusterCache {
  const nodes = new Map<string, NodeInfo>()
  const { nominate, nominatedTo, nominationOf } = nominations()
  const namespaces = new Map<string, Labels>()
  const { countLabels, countImages, hasLabel, domains, prepareCarriers, carriers } = nodeCounts(nodes)
  const neighbours = podClasses((nodeName) => nodes.get(nodeName)?.labels ?? {})
  let order: readonly NodeInfo[] | undefined

  const volumes = volumeCache()
  const counters = {
    enter(pod: StoredPod, nodeName: string) {
      neighbours.enter(pod, nodeName)
      volumes.enter(pod)
    },
    leave(pod: StoredPod, nodeName: string) {
      neighbours.leave(pod, nodeName)
      volumes.leave(pod)
    },
  }
  const { enter, leave, place, remove, moved, nodeOf } = placements(nodes, counters, (key, pod) =>
    nominate(key, pod, ''),
  )

  const open = (name: string, node: StoredObject<'nodes'>) =>
    moved(name, () => {
      order = undefined
      const info = nodeInfo(node)
      nodes.set(name, info)
      countLabels(info.labels, 1)
      countImages(node, 1)
    })

  const relabel = (info: NodeInfo, node: StoredObject<'nodes'>) =>
    moved(info.name, () => {
      order = undefined
      countLabels(info.labels, -1)
      info.become(node)
      countLabels(info.labels, 1)
    })

  return {
    get nodeCount() {
      return nodes.size
    },
    podClasses: neighbours,
    volumes,
    putNode(node) {
      const { name, labels } = node.metadata
      const info = nodes.get(name)
      if (info === undefined) return open(name, node)
      const before = info.node
      if (isDeepStrictEqual(info.labels, labels ?? {})) info.become(node)
      else relabel(info, node)
      if (before.status?.images === node.status?.images) return
      countImages(before, -1)
      countImages(node, 1)
    },
    deleteNode(name) {
      const info = nodes.get(name)
      if (info === undefined) return
      countImages(info.node, -1)
      moved(name, () => {
        order = undefined
        countLabels(info.labels, -1)
        nodes.delete(name)
      })
    },
    putNamespace(name, labels) {
      if (labels === undefined) namespaces.delete(name)
      else namespaces.set(name, labels)
    },
    node: (name) => nodes.get(name),
    *from(start) {
      order ??= [...nodes.values()]
      for (let i = 0; i < order.length; i++) {
        const usage = order[(start + i) % order.length]
        if (usage !== undefined) yield usage
      }
    },
    hasLabel,
    domains,
    prepareCarriers,
    carriers,
    namespaceLabels: (name) => namespaces.get(name),
    nominatedTo,
    nominationOf,
    place,
    remove,
    nodeOf,
    nominate,
    ...trials(enter, leave),
  }
}

type Move = (key: string, placed: PodPlacement) => void

function trials(enter: Move, leave: Move): Pick<Cluster, 'without' | 'with'> {
  return {
    *without(pods, nodeName, act) {
      const away = new Set<KeyedPod>()
      const takeAway = (one: KeyedPod) => {
        leave(one.key, { pod: one.pod, nodeName })
        away.add(one)
      }
      const putBack = (one: KeyedPod) => {
        enter(one.key, { pod: one.pod, nodeName })
        away.delete(one)
      }
      for (const one of pods) takeAway(one)
      try {
        return yield* act({ putBack, takeAway })
      } finally {
        for (const one of away) putBack(one)
      }
    },
    *with(pods, nodeName, act) {
      for (const { key, pod } of pods) enter(key, { pod, nodeName })
      try {
        return yield* act()
      } finally {
        for (const { key, pod } of pods) leave(key, { pod, nodeName })
      }
    },
  }
}

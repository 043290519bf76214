/** The nodes and what is taken of them, as the scheduler knows them: from the store, and from its own last decisions. */
import { isDeepStrictEqual } from 'node:util'
import type { Labels } from '../../api/selectors.ts'
import type { StoredObject } from '../store/store.ts'
import { addTo } from './counts.ts'
import { type Crowds, crowds } from './crowds.ts'
import { type NodeLedger, type NodeUsage, nodeLedger } from './node-usage.ts'

export type StoredPod = StoredObject<'pods'>
export type KeyedPod = { readonly key: string; readonly pod: StoredPod }

/** Pods of one node that a trial takes away and puts back. */
export type Trial = { readonly putBack: (one: KeyedPod) => void; readonly takeAway: (one: KeyedPod) => void }

export interface Cluster {
  readonly nodeCount: number
  readonly crowds: Crowds
  node(name: string): NodeUsage | undefined
  /** Every node once, beginning anywhere: two decisions in a row should not look at the same ones first. */
  from(start: number): Iterable<NodeUsage>
  /** How many nodes have each value of that label. */
  domains(label: string): ReadonlyMap<string, number>
  /** How many nodes have that image. */
  carriers(image: string): number
  /** Undefined: we know of no such namespace. */
  namespaceLabels(name: string): Labels | undefined
  /** Pods that were promised room on that node, which others are still leaving. */
  nominatedTo(nodeName: string): readonly KeyedPod[]
  nominationOf(key: string): string | undefined
  /** What `act` finds when those pods are not there, or are there as well. Afterwards all is as before. */
  without<T>(pods: readonly KeyedPod[], nodeName: string, act: (trial: Trial) => T): T
  with<T>(pods: readonly KeyedPod[], nodeName: string, act: () => T): T
}

/** The one that changes; decisions see `Cluster`. */
export interface ClusterLedger extends Cluster {
  seeNode(node: StoredObject<'nodes'>): void
  forgetNode(name: string): void
  seeNamespace(name: string, labels: Labels | undefined): void
  /** The pod takes its share of that node, and of no other. */
  place(key: string, pod: StoredPod, nodeName: string): void
  remove(key: string): void
  /** '': to none. */
  nominate(key: string, pod: StoredPod, nodeName: string): void
}

const nobody: readonly KeyedPod[] = []

type Placed = { readonly pod: StoredPod; readonly nodeName: string }

export function cluster(): ClusterLedger {
  const nodes = new Map<string, NodeLedger>()
  const placed = new Map<string, Placed>()
  /** Pods bound to nodes we have not seen (yet). */
  const waiting = new Map<string, Set<string>>()
  const nominations = new Map<string, string>()
  const nominatedTo = new Map<string, Map<string, StoredPod>>()
  const namespaces = new Map<string, Labels>()
  const carriers = new Map<string, number>()
  /** Counts by value, for the labels that somebody asked for. */
  const domains = new Map<string, Map<string, number>>()
  const neighbours = crowds((nodeName) => nodes.get(nodeName)?.labels ?? {})
  let order: readonly NodeLedger[] | undefined

  const enter = (key: string, { pod, nodeName }: Placed) => {
    const ledger = nodes.get(nodeName)
    if (ledger === undefined) return void waiting.set(nodeName, (waiting.get(nodeName) ?? new Set()).add(key))
    ledger.add(key, pod)
    neighbours.enter(pod, nodeName)
  }

  const leave = (key: string, { pod, nodeName }: Placed) => {
    const ledger = nodes.get(nodeName)
    if (ledger === undefined) return void waiting.get(nodeName)?.delete(key)
    ledger.remove(key)
    neighbours.leave(pod, nodeName)
  }

  const remove = (key: string) => {
    const before = placed.get(key)
    if (before === undefined) return
    placed.delete(key)
    leave(key, before)
  }

  const place = (key: string, pod: StoredPod, nodeName: string) => {
    remove(key)
    nominate(key, pod, '')
    placed.set(key, { pod, nodeName })
    enter(key, { pod, nodeName })
  }

  const countLabels = (labels: Labels, change: 1 | -1) => {
    for (const [label, counts] of domains) addTo(counts, labels[label], change)
  }

  const countImages = (images: NodeUsage['images'], change: 1 | -1) => {
    for (const image of images.keys()) addTo(carriers, image, change)
  }

  const nominate = (key: string, pod: StoredPod, nodeName: string) => {
    const before = nominations.get(key)
    if (before !== undefined) nominatedTo.get(before)?.delete(key)
    if (before !== undefined && nominatedTo.get(before)?.size === 0) nominatedTo.delete(before)
    nominations.delete(key)
    if (nodeName === '') return
    nominations.set(key, nodeName)
    nominatedTo.set(nodeName, (nominatedTo.get(nodeName) ?? new Map()).set(key, pod))
  }

  /** Pods of a node whose labels change, or that comes or goes, are taken off before and put on after. */
  const moved = (name: string, change: () => void) => {
    const here = [...(nodes.get(name)?.pods.keys() ?? waiting.get(name) ?? [])]
    const kept = here.flatMap((key) => {
      const what = placed.get(key)
      return what === undefined ? [] : [[key, what] as const]
    })
    for (const [key, what] of kept) leave(key, what)
    waiting.delete(name)
    change()
    for (const [key, what] of kept) enter(key, what)
    order = undefined
  }

  const open = (name: string, node: StoredObject<'nodes'>) =>
    moved(name, () => {
      const ledger = nodeLedger(node)
      nodes.set(name, ledger)
      countLabels(ledger.labels, 1)
      countImages(ledger.images, 1)
    })

  const relabel = (ledger: NodeLedger, node: StoredObject<'nodes'>) =>
    moved(ledger.name, () => {
      countLabels(ledger.labels, -1)
      ledger.become(node)
      countLabels(ledger.labels, 1)
    })

  return {
    get nodeCount() {
      return nodes.size
    },
    crowds: neighbours,
    seeNode(node) {
      const { name, labels } = node.metadata
      const ledger = nodes.get(name)
      if (ledger === undefined) return open(name, node)
      const images = ledger.images
      if (isDeepStrictEqual(ledger.labels, labels ?? {})) ledger.become(node)
      else relabel(ledger, node)
      if (ledger.images === images) return
      countImages(images, -1)
      countImages(ledger.images, 1)
    },
    forgetNode(name) {
      const ledger = nodes.get(name)
      if (ledger === undefined) return
      countImages(ledger.images, -1)
      moved(name, () => {
        countLabels(ledger.labels, -1)
        nodes.delete(name)
      })
    },
    seeNamespace(name, labels) {
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
    domains(label) {
      const before = domains.get(label)
      if (before !== undefined) return before
      const counts = new Map<string, number>()
      for (const { labels } of nodes.values()) addTo(counts, labels[label], 1)
      domains.set(label, counts)
      return counts
    },
    carriers: (image) => carriers.get(image) ?? 0,
    namespaceLabels: (name) => namespaces.get(name),
    nominatedTo: (nodeName) => {
      const here = nominatedTo.get(nodeName)
      return here === undefined ? nobody : [...here].map(([key, pod]) => ({ key, pod }))
    },
    nominationOf: (key) => nominations.get(key),
    place,
    remove,
    nominate,
    without(pods, nodeName, act) {
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
        return act({ putBack, takeAway })
      } finally {
        for (const one of away) putBack(one)
      }
    },
    with(pods, nodeName, act) {
      for (const { key, pod } of pods) enter(key, { pod, nodeName })
      try {
        return act()
      } finally {
        for (const { key, pod } of pods) leave(key, { pod, nodeName })
      }
    },
  }
}

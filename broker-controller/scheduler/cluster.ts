/** The nodes and what is taken of them, as the scheduler knows them: from the store, and from its own last decisions. */
import type { Pod } from '../../api/pod.ts'
import type { StoredObject } from '../store/store.ts'
import { type NodeLedger, type NodeUsage, nodeLedger } from './node-usage.ts'
import { podNeeds } from './pod-needs.ts'
import { groupOf, type Spread, zoneLabel } from './spread.ts'

export interface Cluster {
  readonly nodeCount: number
  seeNode(node: StoredObject<'nodes'>): void
  forgetNode(name: string): void
  node(name: string): NodeUsage | undefined
  /** The pod takes its share of that node, and of no other. */
  place(key: string, pod: Pod, nodeName: string): void
  remove(key: string): void
  /** Every node once, beginning anywhere: two decisions in a row should not look at the same ones first. */
  from(start: number): Iterable<NodeUsage>
  spread(pod: Pod): Spread | undefined
}

type Placed = { readonly pod: Pod; readonly nodeName: string }

export function cluster(): Cluster {
  const nodes = new Map<string, NodeLedger>()
  const placed = new Map<string, Placed>()
  /** Pods bound to nodes we have not seen (yet). */
  const waiting = new Map<string, Set<string>>()
  const zones = new Map<string, Map<string, number>>()
  let order: readonly NodeLedger[] | undefined

  const count = (usage: NodeUsage, group: string | undefined, one: 1 | -1) => {
    const zone = zoneLabel(usage)
    if (group === undefined || zone === undefined) return
    const ofZone = zones.get(group) ?? new Map<string, number>()
    const next = (ofZone.get(zone) ?? 0) + one
    if (next === 0) ofZone.delete(zone)
    else ofZone.set(zone, next)
    if (ofZone.size === 0) zones.delete(group)
    else zones.set(group, ofZone)
  }

  const enter = (key: string, { pod, nodeName }: Placed) => {
    const ledger = nodes.get(nodeName)
    if (ledger === undefined) return void waiting.set(nodeName, (waiting.get(nodeName) ?? new Set()).add(key))
    const group = groupOf(pod)
    ledger.add(key, podNeeds(pod), group)
    count(ledger, group, 1)
  }

  const remove = (key: string) => {
    const before = placed.get(key)
    if (before === undefined) return
    placed.delete(key)
    waiting.get(before.nodeName)?.delete(key)
    const ledger = nodes.get(before.nodeName)
    if (ledger === undefined) return
    ledger.remove(key)
    count(ledger, groupOf(before.pod), -1)
  }

  const leave = (name: string): readonly (readonly [string, Placed])[] => {
    const here = [...placed].filter(([, { nodeName }]) => nodeName === name)
    for (const [key] of here) remove(key)
    return here
  }

  return {
    get nodeCount() {
      return nodes.size
    },
    seeNode(node) {
      const { name } = node.metadata
      const known = nodes.get(name)
      if (known !== undefined && zoneLabel(known) === node.metadata.labels?.['topology.kubernetes.io/zone']) {
        known.become(node)
        return
      }
      const moved = known === undefined ? [] : leave(name)
      nodes.set(name, nodeLedger(node))
      order = undefined
      for (const [key, what] of moved) placed.set(key, what)
      const keys = [...(waiting.get(name) ?? []), ...moved.map(([key]) => key)]
      waiting.delete(name)
      for (const key of keys) {
        const what = placed.get(key)
        if (what !== undefined) enter(key, what)
      }
    },
    forgetNode(name) {
      const left = leave(name)
      nodes.delete(name)
      order = undefined
      for (const [key, what] of left) {
        placed.set(key, what)
        enter(key, what)
      }
    },
    node: (name) => nodes.get(name),
    place(key, pod, nodeName) {
      remove(key)
      placed.set(key, { pod, nodeName })
      enter(key, { pod, nodeName })
    },
    remove,
    *from(start) {
      order ??= [...nodes.values()]
      for (let i = 0; i < order.length; i++) {
        const usage = order[(start + i) % order.length]
        if (usage !== undefined) yield usage
      }
    },
    spread(pod) {
      const group = groupOf(pod)
      if (group === undefined) return undefined
      return { group, nodeCount: nodes.size, ofZone: zones.get(group) ?? new Map() }
    },
  }
}

/** What of a node is taken? Kept up pod by pod, so that a decision adds nothing up. */
import type { Taint } from '../../api/node.ts'
import type { Labels } from '../../api/selectors.ts'
import type { StoredObject } from '../store/store.ts'
import { addTo } from './counts.ts'
import { type Amounts, amountsOf, type HostPort, podNeeds } from './pod-needs.ts'

export interface NodeUsage {
  readonly name: string
  readonly node: StoredObject<'nodes'>
  readonly labels: Labels
  readonly taints: readonly Taint[]
  readonly allocatable: Amounts
  readonly podCount: number
  /** By namespace/name. */
  readonly pods: ReadonlyMap<string, StoredObject<'pods'>>
  /** Is there a pod of less priority? */
  hasPodBelow(priority: number): boolean
  requested(resource: string): number
  /** As `requested`, counting something also for containers that ask for nothing. */
  scored(resource: string): number
  /** Would one of these ports meet a taken one? */
  hasConflict(ports: readonly HostPort[]): boolean
}

export interface NodeLedger extends NodeUsage {
  become(node: StoredObject<'nodes'>): void
  add(key: string, pod: StoredObject<'pods'>): void
  remove(key: string): void
}

export function nodeLedger(first: StoredObject<'nodes'>): NodeLedger {
  const pods = new Map<string, StoredObject<'pods'>>()
  const requested = new Map<string, number>()
  const scored = new Map<string, number>()
  const priorities = new Map<number, number>()
  let node = first
  let allocatable = amountsOf(first.status?.allocatable)

  const count = (pod: StoredObject<'pods'>, sign: 1 | -1) => {
    const { requests, scored: assumed } = podNeeds(pod)
    addTo(priorities, pod.spec.priority ?? 0, sign)
    for (const [name, amount] of requests) requested.set(name, (requested.get(name) ?? 0) + sign * amount)
    for (const [name, amount] of assumed) scored.set(name, (scored.get(name) ?? 0) + sign * amount)
  }

  const remove = (key: string) => {
    const pod = pods.get(key)
    if (pod === undefined) return
    pods.delete(key)
    count(pod, -1)
  }

  return {
    name: first.metadata.name,
    pods,
    get node() {
      return node
    },
    get labels() {
      return node.metadata.labels ?? noLabels
    },
    get taints() {
      return node.spec?.taints ?? noTaints
    },
    get allocatable() {
      return allocatable
    },
    get podCount() {
      return pods.size
    },
    hasPodBelow(priority) {
      for (const present of priorities.keys()) if (present < priority) return true
      return false
    },
    requested: (resource) => requested.get(resource) ?? 0,
    scored: (resource) => scored.get(resource) ?? 0,
    hasConflict(ports) {
      if (ports.length === 0) return false
      const taken = [...pods.values()].flatMap((pod) => podNeeds(pod).ports)
      return ports.some((port) => taken.some((other) => meets(port, other)))
    },
    become(next) {
      if (next.status?.allocatable !== node.status?.allocatable) allocatable = amountsOf(next.status?.allocatable)
      node = next
    },
    add(key, pod) {
      remove(key)
      pods.set(key, pod)
      count(pod, 1)
    },
    remove,
  }
}

const noLabels: Labels = {}
const noTaints: readonly Taint[] = []

/** A port on all addresses meets the same port on any. */
function meets(a: HostPort, b: HostPort): boolean {
  const isAll = ({ ip }: HostPort) => ip === '' || ip === '0.0.0.0'
  return a.port === b.port && a.protocol === b.protocol && (a.ip === b.ip || isAll(a) || isAll(b))
}

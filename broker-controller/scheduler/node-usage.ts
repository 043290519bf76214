/** What of a node is taken? Kept up pod by pod, so that a decision adds nothing up. */
import type { Taint } from '../../api/node.ts'
import type { StoredObject } from '../store/store.ts'
import { type Amounts, amountsOf, type HostPort, type PodNeeds } from './pod-needs.ts'

export interface NodeUsage {
  readonly node: StoredObject<'nodes'>
  readonly taints: readonly Taint[]
  readonly allocatable: Amounts
  readonly podCount: number
  requested(resource: string): number
  /** As `requested`, counting something also for containers that ask for nothing. */
  scored(resource: string): number
  /** Pods of this group, see `spread.ts`. */
  ofGroup(group: string): number
  /** Would one of these ports meet a taken one? */
  hasConflict(ports: readonly HostPort[]): boolean
}

export interface NodeLedger extends NodeUsage {
  become(node: StoredObject<'nodes'>): void
  add(key: string, needs: PodNeeds, group: string | undefined): void
  remove(key: string): void
}

export function nodeLedger(first: StoredObject<'nodes'>): NodeLedger {
  const pods = new Map<string, { readonly needs: PodNeeds; readonly group: string | undefined }>()
  const requested = new Map<string, number>()
  const scored = new Map<string, number>()
  const groups = new Map<string, number>()
  let node = first
  let allocatable = amountsOf(first.status?.allocatable)

  const count = ({ requests, scored: assumed }: PodNeeds, group: string | undefined, sign: 1 | -1) => {
    for (const [name, amount] of requests) requested.set(name, (requested.get(name) ?? 0) + sign * amount)
    for (const [name, amount] of assumed) scored.set(name, (scored.get(name) ?? 0) + sign * amount)
    if (group !== undefined) groups.set(group, (groups.get(group) ?? 0) + sign)
    if (group !== undefined && groups.get(group) === 0) groups.delete(group)
  }

  const remove = (key: string) => {
    const pod = pods.get(key)
    if (pod === undefined) return
    pods.delete(key)
    count(pod.needs, pod.group, -1)
  }

  return {
    get node() {
      return node
    },
    get taints() {
      return node.spec?.taints ?? []
    },
    get allocatable() {
      return allocatable
    },
    get podCount() {
      return pods.size
    },
    requested: (resource) => requested.get(resource) ?? 0,
    scored: (resource) => scored.get(resource) ?? 0,
    ofGroup: (group) => groups.get(group) ?? 0,
    hasConflict(ports) {
      if (ports.length === 0) return false
      const taken = [...pods.values()].flatMap(({ needs }) => needs.ports)
      return ports.some((port) => taken.some((other) => meets(port, other)))
    },
    become(next) {
      if (next.status?.allocatable !== node.status?.allocatable) allocatable = amountsOf(next.status?.allocatable)
      node = next
    },
    add(key, needs, group) {
      remove(key)
      pods.set(key, { needs, group })
      count(needs, group, 1)
    },
    remove,
  }
}

/** A port on all addresses meets the same port on any. */
function meets(a: HostPort, b: HostPort): boolean {
  const isAll = ({ ip }: HostPort) => ip === '' || ip === '0.0.0.0'
  return a.port === b.port && a.protocol === b.protocol && (a.ip === b.ip || isAll(a) || isAll(b))
}

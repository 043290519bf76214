/** The resources of a node that pods use. Updated with each pod, so that a decision adds nothing up. */
import { hostAddress, hostIPsMeet, meetsOneOf } from '../../api/network/host-port-address.ts'
import type { Taint } from '../../api/node.ts'
import type { Labels } from '../../api/selectors.ts'
import type { StoredObject } from '../store/store.ts'
import { addTo } from './counts.ts'
import { type HostPort, nodeAmounts, type PodAmounts, podNeeds } from './pod-needs.ts'

export interface NodeAllocation {
  readonly name: string
  readonly node: StoredObject<'nodes'>
  readonly labels: Labels
  readonly taints: readonly Taint[]
  readonly allocatable: PodAmounts
  readonly podCount: number
  /** By namespace/name. */
  readonly pods: ReadonlyMap<string, StoredObject<'pods'>>
  /** Whether the node has a pod of lower priority. */
  hasPodBelow(priority: number): boolean
  requested(resource: string): number
  /** As `requested`, counting something also for containers that ask for nothing. */
  scored(resource: string): number
  /** Whether one of these ports is taken already. */
  hasConflict(ports: readonly HostPort[]): boolean
}

export interface NodeInfo extends NodeAllocation {
  become(node: StoredObject<'nodes'>): void
  add(key: string, pod: StoredObject<'pods'>): void
  remove(key: string): void
}

export function nodeInfo(node: StoredObject<'nodes'>): NodeInfo {
  return new PodTotals(node)
}

/** A class, because closures would cost 2 kB for each node. */
class PodTotals implements NodeInfo {
  readonly name: string
  readonly pods = new Map<string, StoredObject<'pods'>>()
  node: StoredObject<'nodes'>
  allocatable: PodAmounts
  private readonly requests = new Map<string, number>()
  private readonly assumed = new Map<string, number>()
  private readonly priorities = new Map<number, number>()
  /** Most nodes have none. */
  private hostPorts: TakenPorts | undefined

  constructor(node: StoredObject<'nodes'>) {
    this.name = node.metadata.name
    this.node = node
    this.allocatable = nodeAmounts(node)
  }

  get labels(): Labels {
    return this.node.metadata.labels ?? noLabels
  }

  get taints(): readonly Taint[] {
    return this.node.spec?.taints ?? noTaints
  }

  get podCount(): number {
    return this.pods.size
  }

  hasPodBelow(priority: number): boolean {
    for (const present of this.priorities.keys()) if (present < priority) return true
    return false
  }

  requested(resource: string): number {
    return this.requests.get(resource) ?? 0
  }

  scored(resource: string): number {
    return this.assumed.get(resource) ?? 0
  }

  hasConflict(ports: readonly HostPort[]): boolean {
    const taken = this.hostPorts
    if (ports.length === 0 || taken === undefined) return false
    return ports.some((port) => {
      const addresses = taken.get(portCode(port))
      if (addresses === undefined) return false
      return typeof addresses === 'string' ? hostIPsMeet(port.ip, addresses) : meetsOneOf(port.ip, addresses)
    })
  }

  become(next: StoredObject<'nodes'>): void {
    if (next.status?.allocatable !== this.node.status?.allocatable) {
      this.allocatable = nodeAmounts(next)
    }
    this.node = next
  }

  add(key: string, pod: StoredObject<'pods'>): void {
    this.remove(key)
    this.pods.set(key, pod)
    this.count(pod, 1)
  }

  remove(key: string): void {
    const pod = this.pods.get(key)
    if (pod === undefined) return
    this.pods.delete(key)
    this.count(pod, -1)
  }

  private count(pod: StoredObject<'pods'>, sign: 1 | -1): void {
    const { requests, scored, ports } = podNeeds(pod)
    addTo(this.priorities, pod.spec.priority ?? 0, sign)
    for (const [name, amount] of requests) this.requests.set(name, this.requested(name) + sign * amount)
    for (const [name, amount] of scored) this.assumed.set(name, this.scored(name) + sign * amount)
    for (const port of ports) {
      this.hostPorts ??= new Map()
      countPort(this.hostPorts, port, sign)
    }
  }
}

const noLabels: Labels = {}
const noTaints: readonly Taint[] = []
/** By `portCode`: the address, or how many pods have it at which address. */
type TakenPorts = Map<number, string | Map<string, number>>

function countPort(taken: TakenPorts, port: HostPort, sign: 1 | -1): void {
  const [code, address] = [portCode(port), hostAddress(port.ip)]
  const present = taken.get(code)
  if (present === undefined) return void taken.set(code, address)
  const addresses = typeof present === 'string' ? new Map([[present, 1]]) : present
  addTo(addresses, address, sign)
  if (addresses.size === 0) taken.delete(code)
  else taken.set(code, addresses)
}

const protocols = ['TCP', 'UDP', 'SCTP']

function portCode({ protocol, port }: HostPort): number {
  return port * protocols.length + protocols.indexOf(protocol)
}

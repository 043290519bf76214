/**
 * Loop: allocates a range of pod addresses to each node, and in a fleet with both IP families a second one. A range does not change
 * afterwards; a node that has one of IPv4 gets the other one behind it.
 */
import { ipv6PodRangeOf, podRangeOf } from '../../api/node/pod-range.ts'
import type { Node } from '../../api/node.ts'
import type { Clock } from '../../daemon/clock.ts'
import { runController } from '../../daemon/controller.ts'
import type { Log } from '../../daemon/log.ts'
import { type Loop, runLoops } from '../../daemon/run.ts'
import { workQueue } from '../../daemon/work-queue.ts'
import type { EventRecorder } from '../store/event-recorder.ts'
import { informer } from '../store/informer.ts'
import { nodeReference } from '../store/references.ts'
import { rewrite } from '../store/rewrite.ts'
import type { Store, StoredObject } from '../store/store.ts'
import {
  defaultNodeCidrSettings,
  ipv6NodeCidrs,
  type NodeCidrSettings,
  type NodeCidrs,
  nodeCidrs,
} from './node-cidr.ts'

export type NodeIpamNeeds = {
  readonly store: Store
  readonly events: EventRecorder
  readonly clock: Clock
  readonly log: Log
}

/** `ipv6ClusterCIDR`: whose IPv6 blocks the nodes get; undefined: none. */
export function nodeIpamController(
  needs: NodeIpamNeeds,
  settings: NodeCidrSettings = defaultNodeCidrSettings,
  ipv6ClusterCIDR?: string,
): Loop {
  return {
    name: 'node-ipam',
    run: (signal) =>
      runNodeIpam(
        needs,
        [ipv4Ranges(settings), ...(ipv6ClusterCIDR === undefined ? [] : [ipv6RangesIn(ipv6ClusterCIDR)])],
        signal,
      ),
  }
}

type StoredNode = StoredObject<'nodes'>

/** The blocks of one IP family, and what nodes have of them. */
type FamilyRanges = {
  readonly cidrs: NodeCidrs
  /** For the log. */
  readonly settings: Partial<NodeCidrSettings>
  /** Nodes for which there was no block: they get one Event, and are tried again when a block is freed. */
  readonly waiting: Set<string>
  rangeOf(node: Node | undefined): string | undefined
  /** Whether the node is to get a block. */
  lacks(node: Node): boolean
  given<N extends Node>(node: N, podCIDR: string): N
}

function ipv4Ranges(settings: NodeCidrSettings): FamilyRanges {
  return {
    cidrs: nodeCidrs(settings),
    settings,
    waiting: new Set(),
    rangeOf: podRangeOf,
    // A node that has one, of whatever IP family, gets no other: it would not be accepted.
    lacks: (node) => firstRangeOf(node) === undefined,
    given: (node, podCIDR) => ({ ...node, spec: { ...node.spec, podCIDR, podCIDRs: [podCIDR] } }),
  }
}

function ipv6RangesIn(clusterCIDR: string): FamilyRanges {
  return {
    cidrs: ipv6NodeCidrs(clusterCIDR),
    settings: { clusterCIDR },
    waiting: new Set(),
    rangeOf: ipv6PodRangeOf,
    lacks: (node) => podRangeOf(node) !== undefined && ipv6PodRangeOf(node) === undefined,
    given(node, podCIDR) {
      const first = firstRangeOf(node) ?? ''
      return { ...node, spec: { ...node.spec, podCIDR: first, podCIDRs: [first, podCIDR] } }
    },
  }
}

function firstRangeOf({ spec }: Node): string | undefined {
  return spec?.podCIDR || spec?.podCIDRs?.[0] || undefined
}

type Taken = { readonly family: FamilyRanges; readonly podCIDR: string }

async function runNodeIpam(
  { store, events, clock, log }: NodeIpamNeeds,
  families: readonly FamilyRanges[],
  signal: AbortSignal,
): Promise<void> {
  const queue = workQueue(clock)
  /** What was written, by uid, in case a node is deleted before the watch delivers the write. */
  const written = new Map<string, readonly Taken[]>()

  const nodes = informer({ store, clock, log }, 'nodes', (present, previous) => {
    for (const family of families) {
      const [had, has] = [family.rangeOf(previous), family.rangeOf(present)]
      if (present !== undefined && has !== undefined && has !== had) mark(family, has, present)
      if (previous !== undefined && had !== undefined && has !== had) give(family, had, previous)
    }
    if (present === undefined) gone(previous)
    else if (families.some(({ lacks }) => lacks(present) && (previous === undefined || !lacks(previous)))) {
      queue.add(present.metadata.name)
    }
  })

  const mark = ({ cidrs, waiting }: FamilyRanges, cidr: string, { metadata: { name, uid } }: StoredNode) => {
    waiting.delete(name)
    if (!cidrs.mark(cidr, uid)) log.warn('Nodes share addresses for pods', { node: name, podCIDR: cidr })
  }
  const give = ({ cidrs, waiting }: FamilyRanges, cidr: string, { metadata }: StoredNode) => {
    cidrs.release(cidr, metadata.uid)
    for (const name of waiting) queue.add(name)
  }

  const gone = (node: StoredNode | undefined) => {
    if (node === undefined) return
    for (const { waiting } of families) waiting.delete(node.metadata.name)
    for (const { family, podCIDR } of written.get(node.metadata.uid) ?? []) give(family, podCIDR, node)
    written.delete(node.metadata.uid)
  }

  const reconcile = async (name: string): Promise<undefined> => {
    const node = nodes.get({ namespace: '', name })
    if (node === undefined) return
    const { taken, full } = takeFor(node, families)
    if (taken.length > 0) await write(node, taken)
    for (const family of full) await refuse(name, family)
  }

  /** In one write, so that a new node makes the network of its pods once. */
  const write = async ({ metadata: { name, uid } }: StoredNode, taken: readonly Taken[]) => {
    const earlier = written.get(uid) ?? []
    written.set(uid, [...earlier, ...taken])
    let kept: readonly Taken[] = []
    try {
      let accepted: readonly Taken[] = []
      const change = (fresh: StoredNode) => {
        const changed = withTaken(fresh, taken)
        accepted = changed.accepted
        return accepted.length === 0 ? undefined : changed.node
      }
      if ((await rewrite({ store, clock }, 'nodes', { key: { namespace: '', name }, uid, change })) !== undefined) {
        kept = accepted
      }
    } finally {
      // Gone meanwhile, or somebody gave it another: what is not written is given back.
      for (const one of taken) if (!kept.includes(one)) one.family.cidrs.release(one.podCIDR, uid)
      if (kept.length < taken.length) written.set(uid, [...earlier, ...kept])
      if (written.get(uid)?.length === 0) written.delete(uid)
    }
    const podCIDR = kept.map((one) => one.podCIDR).join()
    if (kept.length > 0) log.info('Node has addresses for pods', { node: name, podCIDR })
  }

  const refuse = async (node: string, { cidrs, settings, waiting }: FamilyRanges): Promise<undefined> => {
    if (waiting.has(node)) return
    waiting.add(node)
    log.warn('No addresses left for pods', { node, ...settings, blocks: cidrs.size })
    const message = `Node ${node} status is now: CIDRNotAvailable`
    const what = { type: 'Normal', reason: 'CIDRNotAvailable', message, component: 'cidrAllocator' } as const
    try {
      await events.record({ object: nodeReference(node), ...what })
    } catch (error) {
      log.warn('Event not recorded', { reason: what.reason, object: node, error })
    }
  }

  const work = async () => {
    // What nodes have is known before the first of them is given more.
    await nodes.listed
    if (!signal.aborted) await runController({ name: 'node-ipam', reconcile }, queue, log, signal)
  }

  const loops = [
    { name: 'nodes', run: nodes.run },
    { name: 'work', run: work },
  ]
  await runLoops(loops, signal, log)
}

/** A block of each family that the node lacks; `full`: those that have none left. */
function takeFor(node: StoredNode, families: readonly FamilyRanges[]) {
  const [taken, full]: [Taken[], FamilyRanges[]] = [[], []]
  let wanted = node
  for (const family of families) {
    if (!family.lacks(wanted)) continue
    const podCIDR = family.cidrs.take(node.metadata.uid)
    if (podCIDR === undefined) {
      full.push(family)
      continue
    }
    taken.push({ family, podCIDR })
    wanted = family.given(wanted, podCIDR)
  }
  return { taken, full }
}

function withTaken(fresh: StoredNode, taken: readonly Taken[]) {
  let node = fresh
  const accepted = taken.filter(({ family, podCIDR }) => {
    if (!family.lacks(node)) return false
    node = family.given(node, podCIDR)
    return true
  })
  return { node, accepted }
}

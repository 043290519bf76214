/** Loop: allocates a range of pod addresses to each node. It does not change afterwards. */
import { podRangeOf } from '../../api/node/pod-range.ts'
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
import { defaultNodeCidrSettings, type NodeCidrSettings, nodeCidrs } from './node-cidr.ts'

export type NodeIpamNeeds = {
  readonly store: Store
  readonly events: EventRecorder
  readonly clock: Clock
  readonly log: Log
}

export function nodeIpamController(needs: NodeIpamNeeds, settings: NodeCidrSettings = defaultNodeCidrSettings): Loop {
  return { name: 'node-ipam', run: (signal) => runNodeIpam(needs, settings, signal) }
}

type StoredNode = StoredObject<'nodes'>

async function runNodeIpam(
  { store, events, clock, log }: NodeIpamNeeds,
  settings: NodeCidrSettings,
  signal: AbortSignal,
): Promise<void> {
  const cidrs = nodeCidrs(settings)
  const queue = workQueue(clock)
  /** Nodes for which there was no block: they get one Event, and are tried again when a block is freed. */
  const waiting = new Set<string>()
  /** What was written, by uid, in case a node is deleted before the watch delivers the write. */
  const written = new Map<string, string>()

  const nodes = informer({ store, clock, log }, 'nodes', (present, previous) => {
    const [had, has] = [podRangeOf(previous), podRangeOf(present)]
    if (present !== undefined && has !== undefined && has !== had) take(has, present)
    if (previous !== undefined && had !== undefined && has !== had) give(had, previous)
    if (present === undefined) gone(previous)
    else if (cidrOf(present) === undefined && previous === undefined) queue.add(present.metadata.name)
  })

  const take = (cidr: string, { metadata: { name, uid } }: StoredNode) => {
    waiting.delete(name)
    if (!cidrs.mark(cidr, uid)) log.warn('Nodes share addresses for pods', { node: name, podCIDR: cidr })
  }
  const give = (cidr: string, { metadata }: StoredNode) => {
    cidrs.release(cidr, metadata.uid)
    for (const name of waiting) queue.add(name)
  }

  const gone = (node: StoredNode | undefined) => {
    if (node === undefined) return
    waiting.delete(node.metadata.name)
    const cidr = written.get(node.metadata.uid)
    if (cidr !== undefined) give(cidr, node)
    written.delete(node.metadata.uid)
  }

  const reconcile = async (name: string): Promise<undefined> => {
    const node = nodes.get({ namespace: '', name })
    if (node === undefined || cidrOf(node) !== undefined) return
    const { uid } = node.metadata
    const podCIDR = cidrs.take(uid)
    if (podCIDR === undefined) return await refuse(name)
    written.set(uid, podCIDR)
    let isWritten = false
    try {
      const change = (fresh: StoredNode) => (cidrOf(fresh) === undefined ? withCidr(fresh, podCIDR) : undefined)
      isWritten =
        (await rewrite({ store, clock }, 'nodes', { key: { namespace: '', name }, uid, change })) !== undefined
    } finally {
      // Gone meanwhile, or somebody gave it another: what is not written is given back.
      if (!isWritten) {
        cidrs.release(podCIDR, uid)
        written.delete(uid)
      }
    }
    if (isWritten) log.info('Node has addresses for pods', { node: name, podCIDR })
  }

  const refuse = async (node: string): Promise<undefined> => {
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

/** A node that has one, of whatever IP family, gets no other: it would not be accepted. */
function cidrOf(node: Node | undefined): string | undefined {
  return node?.spec?.podCIDR || node?.spec?.podCIDRs?.[0] || undefined
}

function withCidr<N extends Node>(node: N, podCIDR: string): N {
  return { ...node, spec: { ...node.spec, podCIDR, podCIDRs: [podCIDR] } }
}

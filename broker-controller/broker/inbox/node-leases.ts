/** The lease of each node: created for its Node, renewed by the node's messages, deleted with its Node. */
import { nodeLeaseNamespace } from '../../../api/lease.ts'
import type { Clock } from '../../../daemon/clock.ts'
import { removeObject } from '../../store/object-removal.ts'
import { rewrite } from '../../store/rewrite.ts'
import type { Store, StoredObject } from '../../store/store.ts'
import type { Peer } from '../broker.ts'
import { hasReported, isOwnedBy, type LeaseInput, leaseAfter, renewedLease, restoredLease } from './node-lease.ts'

/** Calls for one lease are executed in their order. Each rejects with the store's error. */
export interface NodeLeases {
  /** A node without a Node object gets no lease; its last `connection` message is kept until the Node exists. */
  record(node: string, input: LeaseInput, peer: Peer): Promise<void>
  /**
   * Renews the lease of an online node if nothing else in it changes and no other call for it is in progress. `peer` must be the
   * object of the call before. undefined: call `record` instead.
   */
  renew(node: string, peer: Peer): Promise<void> | undefined
  /** A Node was created or changed. One that reported to an earlier process of the controller gets a lease, without a renewal. */
  nodeChanged(node: StoredObject<'nodes'>, isNew: boolean): Promise<void>
  nodeDeleted(node: StoredObject<'nodes'>): Promise<void>
}

type Recorded = { readonly input: LeaseInput; readonly peer: Peer }

export function nodeLeases({ store, clock }: { readonly store: Store; readonly clock: Clock }): NodeLeases {
  const inProgress = new Map<string, Promise<void>>()
  /** Leases as they were last written here, and for which connection. */
  const written = new Map<string, { readonly lease: StoredObject<'leases'>; readonly peer: Peer }>()
  /** `connection` messages of nodes without a Node object. */
  const awaitingNode = new Map<string, Recorded>()

  const inOrder = (node: string, work: () => Promise<void>) => {
    const before = inProgress.get(node)?.catch(() => undefined) ?? Promise.resolve()
    return track(node, before.then(work))
  }

  const track = (node: string, done: Promise<void>) => {
    inProgress.set(node, done)
    const end = () => void (inProgress.get(node) === done && inProgress.delete(node))
    done.then(end, end)
    return done
  }

  const remember = (node: string, lease: StoredObject<'leases'> | undefined, peer: Peer) => {
    if (lease === undefined) written.delete(node)
    else written.set(node, { lease, peer })
  }

  const write = async (node: string, input: LeaseInput, peer: Peer) => {
    const key = { namespace: nodeLeaseNamespace, name: node }
    const owner = await store.get('nodes', { namespace: '', name: node })
    const facts = () => ({ nowMs: clock.wallMs(), ...peer, nodeUID: owner?.metadata.uid })
    if ((await store.get('leases', key)) !== undefined) {
      const change = (present: StoredObject<'leases'>) => leaseAfter(node, present, input, facts())
      remember(node, await rewrite({ store, clock }, 'leases', { key, change }), peer)
      return
    }
    if (owner === undefined) {
      if (input.kind === 'connection') awaitingNode.set(node, { input, peer })
      if (input.kind === 'disconnected') awaitingNode.delete(node)
      return
    }
    const first = leaseAfter(node, undefined, input, facts())
    if (first !== undefined) remember(node, await store.create('leases', first), peer)
  }

  const restore = async (node: StoredObject<'nodes'>) => {
    const key = { namespace: nodeLeaseNamespace, name: node.metadata.name }
    if ((await store.get('leases', key)) === undefined) await store.create('leases', restoredLease(node))
  }

  return {
    record: (node, input, peer) => inOrder(node, () => write(node, input, peer)),
    renew(node, peer) {
      const before = written.get(node)
      if (before === undefined || before.peer !== peer || inProgress.has(node)) return undefined
      const renewed = renewedLease(before.lease, clock.wallMs())
      if (renewed === undefined) return undefined
      // Its version is that of the last write: a change by another client is a conflict, and then it is read again.
      const updated = store.update('leases', renewed).then(
        (lease) => remember(node, lease, peer),
        () => write(node, { kind: 'heartbeat' }, peer),
      )
      return track(node, updated)
    },
    async nodeChanged(node, isNew) {
      const { name } = node.metadata
      const awaiting = awaitingNode.get(name)
      awaitingNode.delete(name)
      if (awaiting !== undefined) await inOrder(name, () => write(name, awaiting.input, awaiting.peer))
      else if (isNew && hasReported(node)) await inOrder(name, () => restore(node))
    },
    nodeDeleted: ({ metadata: { name, uid } }) =>
      inOrder(name, async () => {
        written.delete(name)
        const lease = await store.get('leases', { namespace: nodeLeaseNamespace, name })
        if (lease === undefined) return
        const isStillWanted = (fresh: StoredObject<'leases'>) => isOwnedBy(fresh, uid)
        await removeObject({ store, clock }, 'leases', lease, { isStillWanted })
      }),
  }
}

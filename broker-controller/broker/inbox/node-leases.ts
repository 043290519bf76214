/** Each node's lease: made for its Node, renewed by what the node says, gone with its Node. */
import { nodeLeaseNamespace } from '../../../api/lease.ts'
import type { Clock } from '../../../daemon/clock.ts'
import { removeIfThere, rewrite } from '../../store/rewrite.ts'
import type { Store, StoredObject } from '../../store/store.ts'
import type { Peer } from '../broker.ts'
import { hasReported, isOwnedBy, type LeaseNews, leaseAfter, renewedLease, restoredLease } from './node-report.ts'

/** Everything about one lease is done in the order it is asked for. Rejects with the store's error. */
export interface NodeLeases {
  /** A node without a Node object gets no lease; its greeting is kept for it. */
  tell(node: string, news: LeaseNews, peer: Peer): Promise<void>
  /** A node that reported to an earlier process of the controller has a lease again, without a renewal. */
  nodeCame(node: StoredObject<'nodes'>, isNew: boolean): Promise<void>
  /**
   * Renews the lease of a node that is online, where nothing else of it changes and nothing is under way for it. `peer` must
   * be the very object that was given before. undefined: none of that is known, `tell` does it.
   */
  renew(node: string, peer: Peer): Promise<void> | undefined
  nodeWent(node: StoredObject<'nodes'>): Promise<void>
}

export function nodeLeases({ store, clock }: { readonly store: Store; readonly clock: Clock }): NodeLeases {
  const last = new Map<string, Promise<void>>()
  /** Leases as they were last written here, and for which connection. */
  const known = new Map<string, { readonly lease: StoredObject<'leases'>; readonly peer: Peer }>()
  const greetings = new Map<string, { readonly news: LeaseNews; readonly peer: Peer }>()

  const inTurn = (node: string, work: () => Promise<void>) => {
    const before = last.get(node)?.catch(() => undefined) ?? Promise.resolve()
    return underWay(node, before.then(work))
  }

  const underWay = (node: string, done: Promise<void>) => {
    last.set(node, done)
    const isOver = () => void (last.get(node) === done && last.delete(node))
    done.then(isOver, isOver)
    return done
  }

  const remember = (node: string, lease: StoredObject<'leases'> | undefined, peer: Peer) => {
    if (lease === undefined) known.delete(node)
    else known.set(node, { lease, peer })
  }

  const write = async (node: string, news: LeaseNews, peer: Peer) => {
    const key = { namespace: nodeLeaseNamespace, name: node }
    const owner = await store.get('nodes', { namespace: '', name: node })
    const facts = () => ({ nowMs: clock.wallMs(), ...peer, nodeUID: owner?.metadata.uid })
    if ((await store.get('leases', key)) !== undefined) {
      const change = (present: StoredObject<'leases'>) => leaseAfter(node, present, news, facts())
      remember(node, await rewrite({ store, clock }, 'leases', { key, change }), peer)
      return
    }
    if (owner === undefined) {
      if (news.news === 'connection') greetings.set(node, { news, peer })
      if (news.news === 'disconnected') greetings.delete(node)
      return
    }
    const first = leaseAfter(node, undefined, news, facts())
    if (first !== undefined) remember(node, await store.create('leases', first), peer)
  }

  const restore = async (node: StoredObject<'nodes'>) => {
    const key = { namespace: nodeLeaseNamespace, name: node.metadata.name }
    if ((await store.get('leases', key)) === undefined) await store.create('leases', restoredLease(node))
  }

  return {
    tell: (node, news, peer) => inTurn(node, () => write(node, news, peer)),
    renew(node, peer) {
      const before = known.get(node)
      if (before === undefined || before.peer !== peer || last.has(node)) return undefined
      const renewed = renewedLease(before.lease, clock.wallMs())
      if (renewed === undefined) return undefined
      // Its version is that of the last write: somebody else's change is a conflict, and then it is read again.
      const written = store.update('leases', renewed).then(
        (lease) => remember(node, lease, peer),
        () => write(node, { news: 'heartbeat' }, peer),
      )
      return underWay(node, written)
    },
    async nodeCame(node, isNew) {
      const { name } = node.metadata
      const greeting = greetings.get(name)
      greetings.delete(name)
      if (greeting !== undefined) await inTurn(name, () => write(name, greeting.news, greeting.peer))
      else if (isNew && hasReported(node)) await inTurn(name, () => restore(node))
    },
    nodeWent: ({ metadata: { name, uid } }) =>
      inTurn(name, async () => {
        known.delete(name)
        const lease = await store.get('leases', { namespace: nodeLeaseNamespace, name })
        if (lease !== undefined && isOwnedBy(lease, uid)) await removeIfThere(store, 'leases', lease)
      }),
  }
}

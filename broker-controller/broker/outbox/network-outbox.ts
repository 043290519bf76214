/** Loop: Nodes → one retained message: how each node reaches the pods of the others. */
import { isDeepStrictEqual } from 'node:util'
import type { NetworkMessage, NetworkPeer } from '../../../api/network/pod-network.ts'
import type { Node } from '../../../api/node.ts'
import type { Clock } from '../../../daemon/clock.ts'
import { runController } from '../../../daemon/controller.ts'
import type { Log } from '../../../daemon/log.ts'
import { type Loop, runLoops } from '../../../daemon/run.ts'
import { workQueue } from '../../../daemon/work-queue.ts'
import { informer } from '../../store/informer.ts'
import type { Store } from '../../store/store.ts'
import type { Broker } from '../broker.ts'
import { keyOwners, networkPeer } from './network-peers.ts'
import { type Published, publishWaitMs } from './publish-pace.ts'

export type FleetOutboxNeeds = {
  readonly store: Store
  readonly broker: Pick<Broker, 'publish'>
  readonly clock: Clock
  readonly log: Log
  /** New at each start of the controller. */
  readonly epoch: string
}

export type NetworkFacts = Pick<NetworkMessage, 'clusterCIDR' | 'serviceCIDR' | 'ipv6' | 'clusterDomain' | 'wireguard'>

export type NetworkOutbox = Loop & {
  /** Nodes in the message. */
  nodeCount(): number
}

const onlyKey = 'network'

/** Publishes once all Nodes have been read, then after each change of what the message has of them. */
export function networkOutbox(
  { store, broker, clock, log, epoch }: FleetOutboxNeeds,
  facts: NetworkFacts,
): NetworkOutbox {
  const peers = new Map<string, NetworkPeer>()
  const queue = workQueue(clock)
  let published: Published | undefined
  let waitMs = 0
  let version = 0
  const owners = keyOwners()
  const sharing = new Set<string>()
  const peerOf = (name: string, node: Node | undefined) => {
    const peer = node && networkPeer(node, { wireguard: facts.wireguard !== undefined, ipv6: facts.ipv6 !== undefined })
    const isOwn = owners.claim(name, peer?.wireguardKey)
    if (peer?.wireguardKey === undefined || isOwn) {
      sharing.delete(name)
      return peer
    }
    if (!sharing.has(name)) log.warn('A node has the WireGuard key of another node', { node: name })
    sharing.add(name)
    const { wireguardKey: _, ...rest } = peer
    return rest
  }
  const nodes = informer({ store, clock, log }, 'nodes', (present, previous) => {
    const name = (present ?? previous)?.metadata.name ?? ''
    const peer = peerOf(name, present)
    if (isDeepStrictEqual(peer, peers.get(name))) return
    if (peer === undefined) peers.delete(name)
    else peers.set(name, peer)
    waitMs = publishWaitMs(published, clock.monotonicMs())
    queue.addAfter(onlyKey, waitMs)
  })
  const reconcile = async () => {
    version += 1
    const message: NetworkMessage = { epoch, version, ...facts, nodes: [...peers.values()].sort(byName) }
    await broker.publish({ kind: 'network' }, JSON.stringify(message))
    published = { atMs: clock.monotonicMs(), waitedMs: waitMs }
    return undefined
  }
  const publishing = async (signal: AbortSignal) => {
    // A node that receives a part of the peers would remove its routes to the others.
    await nodes.listed
    queue.add(onlyKey)
    if (!signal.aborted) await runController({ name: 'network-outbox', reconcile }, queue, log, signal)
  }
  return {
    name: 'network-outbox',
    nodeCount: () => peers.size,
    run: (signal) =>
      runLoops(
        [
          { name: 'network-outbox-nodes', run: nodes.run },
          { name: 'network-outbox-message', run: publishing },
        ],
        signal,
        log,
      ),
  }
}

function byName(a: NetworkPeer, b: NetworkPeer): number {
  return a.name < b.name ? -1 : 1
}

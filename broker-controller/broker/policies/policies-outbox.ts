/** Loop: NetworkPolicies, namespaces and pods → one retained message for each node, with the policies of the namespaces of its pods. */
import { type Reconciled, runController } from '../../../daemon/controller.ts'
import { type Loop, runLoops } from '../../../daemon/run.ts'
import { workQueue } from '../../../daemon/work-queue.ts'
import { informer } from '../../store/informer.ts'
import { awaitsCheckpoint, isOtherNode } from '../outbox/desired-content.ts'
import type { FleetOutboxNeeds } from '../outbox/network-outbox.ts'
import type { NodeOutboxNeeds } from '../outbox/node-outbox.ts'
import { type PolicyPublisherNeeds, policyPublisher } from './policy-publisher.ts'
import { policySources } from './policy-sources.ts'

export type PoliciesOutboxNeeds = Omit<FleetOutboxNeeds, 'broker'> &
  PolicyPublisherNeeds &
  Pick<NodeOutboxNeeds, 'origin' | 'checkpoints'> & {
    /** Pods of the fleet have addresses of both families. */
    readonly ipv6?: boolean
  }

/** What a node needs before its pods start: changes that come together are published in one message. */
const debounceMs = 20

/** Nothing is published before all objects have been read, and to each node only what differs from the last message. */
export function policiesOutbox(needs: PoliciesOutboxNeeds): Loop {
  const { clock, log, origin, checkpoints } = needs
  const messages = workQueue(clock)
  const publisher = policyPublisher(needs)
  const sources = policySources(needs, (node, because) =>
    messages.addAfter(node, because === 'policies' ? debounceMs : publisher.waitMs(node)),
  )
  const nodes = informer(needs, 'nodes', (present, previous) => {
    if (isOtherNode(present, previous)) messages.add((present ?? previous)?.metadata.name ?? '')
  })
  const publishAll = () => {
    for (const { metadata } of nodes.all()) messages.add(metadata.name)
  }
  checkpoints?.onClose(publishAll)

  const publish = async (name: string): Promise<Reconciled> => {
    const node = nodes.get({ namespace: '', name })
    if (node === undefined) return await publisher.withdraw(name)
    // A node that received the namespaces of such a store would close pods that only its checkpoint has.
    if (awaitsCheckpoint(node, checkpoints?.isOpen() ? origin?.id : undefined)) return undefined
    return await publisher.publish(name, node.metadata.uid, () => sources.contentOf(name))
  }

  const publishing = async (signal: AbortSignal) => {
    // A node that receives a part of the policies would let connections through that the others forbid.
    await Promise.all([sources.readInitially(), nodes.listed])
    if (signal.aborted) return
    publishAll()
    const messaging = runController({ name: 'policies-outbox', reconcile: publish }, messages, log, signal)
    await Promise.all([sources.followChanges(signal), messaging])
  }

  return {
    name: 'policies-outbox',
    run: (signal) =>
      runLoops(
        [
          ...sources.loops,
          { name: 'policies-outbox-nodes', run: nodes.run },
          { name: 'policies-outbox-messages', run: publishing },
        ],
        signal,
        log,
      ),
  }
}

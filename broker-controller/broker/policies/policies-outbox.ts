/** Loop: NetworkPolicies, namespaces and pods → one retained message for each node, with the policies of the namespaces of its pods. */
import { type Reconciled, runController } from '../../../daemon/controller.ts'
import { yieldTurn } from '../../../daemon/limits/turn-limit.ts'
import { type Loop, runLoops } from '../../../daemon/run.ts'
import { workQueue } from '../../../daemon/work-queue.ts'
import { informer, keyFrom, keyText } from '../../store/informer.ts'
import type { ObjectKey } from '../../store/store.ts'
import type { FleetOutboxNeeds } from '../outbox/network-outbox.ts'
import { followedPolicies } from './followed-policies.ts'
import { namespaceNodes } from './namespace-nodes.ts'
import { type NamespaceTexts, namespaceTexts, nodePolicies } from './node-policies.ts'
import { peerPod, policyPeers } from './policy-peers.ts'
import { mostPolicyText, type PolicyPublisherNeeds, policyPublisher } from './policy-publisher.ts'

export type PoliciesOutboxNeeds = Omit<FleetOutboxNeeds, 'broker'> & PolicyPublisherNeeds

/** What a node needs before its pods start: changes that come together are published in one message. */
const debounceMs = 20
/**
 * A change of a pod costs the selectors of its namespace, and the messages of the nodes that have them. Everything is done in turns of
 * the event loop that stay short: a namespace may have thousands of pods, and a policy a thousand peers.
 */
export function policiesOutbox({ store, broker, clock, log, epoch }: PoliciesOutboxNeeds): Loop {
  const peers = policyPeers()
  const policies = followedPolicies(peers)
  const places = namespaceNodes()
  const messages = workQueue(clock)
  const changes = workQueue(clock)
  const publisher = policyPublisher({ broker, clock, log, epoch })

  const follow = (kind: 'pod' | 'namespace' | 'policy') => (present?: Named, previous?: Named) =>
    changes.add(`${kind} ${keyText((present ?? previous)?.metadata ?? {})}`)
  const needs = { store, clock, log }
  const podLoop = informer(needs, 'pods', follow('pod'))
  const namespaceLoop = informer(needs, 'namespaces', follow('namespace'))
  const policyLoop = informer(needs, 'networkpolicies', follow('policy'))
  const nodeLoop = informer(needs, 'nodes', (present, previous) => {
    if (present?.metadata.uid !== previous?.metadata.uid) messages.add((present ?? previous)?.metadata.name ?? '')
  })

  const setsChanged = (sets: readonly string[]) => {
    for (const namespace of new Set(sets.flatMap(policies.usersOf))) {
      for (const node of places.nodesOf(namespace)) {
        messages.addAfter(node, publisher.waitMs(node))
      }
    }
  }
  const visitPod = async ({ namespace, name }: ObjectKey) => {
    const pod = podLoop.get({ namespace, name })
    const node = pod?.spec.hostNetwork ? undefined : pod?.spec.nodeName || undefined
    for (const other of places.put(namespace, name, node)) messages.addAfter(other, debounceMs)
    setsChanged(await peers.setPod(namespace, name, pod && peerPod(pod), yieldTurn))
  }
  const visitNamespace = async (key: ObjectKey) => {
    const namespace = namespaceLoop.get(key)
    setsChanged(await peers.setNamespace(key.name, namespace && (namespace.metadata.labels ?? {}), yieldTurn))
  }
  const visitPolicy = ({ namespace, name }: ObjectKey) => {
    const change = policies.set(namespace, name, policyLoop.get({ namespace, name }))
    if (change === 'none') return
    if (change === 'tooLarge')
      log.warn('A policy has too many peers: it allows nothing', { policy: `${namespace}/${name}` })
    for (const node of places.nodesOf(namespace)) messages.addAfter(node, debounceMs)
  }
  const visit = async (text: string): Promise<Reconciled> => {
    const [kind = '', key = ''] = text.split(' ')
    if (kind === 'pod') await visitPod(keyFrom(key))
    else if (kind === 'namespace') await visitNamespace(keyFrom(key))
    else visitPolicy(keyFrom(key))
    return undefined
  }

  const publish = async (node: string): Promise<Reconciled> => {
    const nodeUID = nodeLoop.get({ namespace: '', name: node })?.metadata.uid
    if (nodeUID === undefined) return await publisher.withdraw(node)
    return await publisher.publish(node, nodeUID, async () => {
      const parts: NamespaceTexts[] = []
      for (const namespace of places.namespacesOf(node)) {
        parts.push(await namespaceTexts(policies.of(namespace), peers.textOf, mostPolicyText, yieldTurn))
      }
      return nodePolicies(parts, mostPolicyText)
    })
  }

  const running = async (signal: AbortSignal) => {
    // A node that receives a part of the policies would let connections through that the others forbid.
    await Promise.all([podLoop, namespaceLoop, policyLoop, nodeLoop].map(({ listed }) => listed))
    for (const { metadata } of namespaceLoop.all()) await visit(`namespace ${keyText(metadata)}`)
    for (const { metadata } of [...podLoop.all()]) {
      await visit(`pod ${keyText(metadata)}`)
      await yieldTurn()
    }
    for (const { metadata } of [...policyLoop.all()]) {
      await visit(`policy ${keyText(metadata)}`)
      await yieldTurn()
    }
    for (const { metadata } of nodeLoop.all()) messages.add(metadata.name)
    if (signal.aborted) return
    const loops = [
      runController({ name: 'policies-outbox-changes', reconcile: visit }, changes, log, signal),
      runController({ name: 'policies-outbox', reconcile: publish }, messages, log, signal),
    ]
    await Promise.all(loops)
  }

  return {
    name: 'policies-outbox',
    run: (signal) =>
      runLoops(
        [
          { name: 'policies-outbox-pods', run: podLoop.run },
          { name: 'policies-outbox-namespaces', run: namespaceLoop.run },
          { name: 'policies-outbox-policies', run: policyLoop.run },
          { name: 'policies-outbox-nodes', run: nodeLoop.run },
          { name: 'policies-outbox-messages', run: running },
        ],
        signal,
        log,
      ),
  }
}

type Named = { readonly metadata: { readonly namespace?: string | undefined; readonly name?: string | undefined } }

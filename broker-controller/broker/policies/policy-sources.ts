/** Follows the objects from which the policies of nodes are made: NetworkPolicies, namespaces and pods. */
import { type Reconciled, runController } from '../../../daemon/controller.ts'
import { yieldTurn } from '../../../daemon/limits/turn-limit.ts'
import type { Loop } from '../../../daemon/run.ts'
import { workQueue } from '../../../daemon/work-queue.ts'
import { type InformerNeeds, informer, keyFrom, keyText } from '../../store/informer.ts'
import type { ObjectKey } from '../../store/store.ts'
import { followedPolicies } from './followed-policies.ts'
import { namespaceNodes } from './namespace-nodes.ts'
import { type NodePolicies, namespaceTexts, nodePolicies } from './node-policies.ts'
import { peerPod, policyPeers } from './policy-peers.ts'
import { mostPolicyText } from './policy-publisher.ts'

export interface PolicySources {
  /** What the message of the node has now. In several turns of the event loop. */
  contentOf(node: string): Promise<NodePolicies>
  /** Resolves when all objects have been read and taken in once, or when the loops stop before that. */
  readInitially(): Promise<void>
  /** Takes in the changes since then. */
  followChanges(signal: AbortSignal): Promise<void>
  readonly loops: readonly Loop[]
}

/** `policies`: of one of its namespaces, or which those are. `addresses`: of peers. */
export type PolicyCause = 'policies' | 'addresses'

/**
 * `changed` is called with the name of a node whose message may have changed. A change of a pod costs the selectors of its namespace. Everything is
 * done in turns of the event loop that stay short: a namespace may have thousands of pods, and a policy a thousand peers.
 */
export function policySources(
  needs: InformerNeeds & { readonly ipv6?: boolean },
  changed: (node: string, because: PolicyCause) => void,
): PolicySources {
  const { clock, log, ipv6 = false } = needs
  const peers = policyPeers()
  const policies = followedPolicies(peers, ipv6)
  const places = namespaceNodes()
  const changes = workQueue(clock)
  const follow = (kind: 'pod' | 'namespace' | 'policy') => (present?: Named, previous?: Named) =>
    changes.add(`${kind} ${keyText((present ?? previous)?.metadata ?? {})}`)
  const pods = informer(needs, 'pods', follow('pod'))
  const namespaces = informer(needs, 'namespaces', follow('namespace'))
  const objects = informer(needs, 'networkpolicies', follow('policy'))

  const setsChanged = (sets: readonly string[]) => {
    for (const namespace of new Set(sets.flatMap(policies.usersOf))) {
      for (const node of places.nodesOf(namespace)) changed(node, 'addresses')
    }
  }
  const visitPod = async ({ namespace, name }: ObjectKey) => {
    const pod = pods.get({ namespace, name })
    const node = pod?.spec.hostNetwork ? undefined : pod?.spec.nodeName || undefined
    for (const other of places.put(namespace, name, node)) changed(other, 'policies')
    setsChanged(await peers.setPod(namespace, name, pod && peerPod(pod, ipv6), yieldTurn))
  }
  const visitNamespace = async (key: ObjectKey) => {
    const namespace = namespaces.get(key)
    setsChanged(await peers.setNamespace(key.name, namespace && (namespace.metadata.labels ?? {}), yieldTurn))
  }
  const visitPolicy = ({ namespace, name }: ObjectKey) => {
    const change = policies.set(namespace, name, objects.get({ namespace, name }))
    if (change === 'none') return
    const policy = `${namespace}/${name}`
    if (change === 'tooLarge') log.warn('A policy has too many peers: it allows nothing', { policy })
    for (const node of places.nodesOf(namespace)) changed(node, 'policies')
  }
  const visit = async (text: string): Promise<Reconciled> => {
    const [kind = '', key = ''] = text.split(' ')
    if (kind === 'pod') await visitPod(keyFrom(key))
    else if (kind === 'namespace') await visitNamespace(keyFrom(key))
    else visitPolicy(keyFrom(key))
    return undefined
  }

  return {
    async contentOf(node) {
      const parts = []
      for (const namespace of places.namespacesOf(node)) {
        parts.push(await namespaceTexts(policies.of(namespace), peers.textOf, mostPolicyText, yieldTurn))
      }
      return nodePolicies(parts, mostPolicyText)
    },
    async readInitially() {
      await Promise.all([pods, namespaces, objects].map(({ listed }) => listed))
      const keys = [
        ...[...namespaces.all()].map(({ metadata }) => `namespace ${keyText(metadata)}`),
        ...[...pods.all()].map(({ metadata }) => `pod ${keyText(metadata)}`),
        ...[...objects.all()].map(({ metadata }) => `policy ${keyText(metadata)}`),
      ]
      for (const key of keys) {
        await visit(key)
        await yieldTurn()
      }
    },
    followChanges: (signal) =>
      runController({ name: 'policies-outbox-changes', reconcile: visit }, changes, log, signal),
    loops: [
      { name: 'policies-outbox-pods', run: pods.run },
      { name: 'policies-outbox-namespaces', run: namespaces.run },
      { name: 'policies-outbox-policies', run: objects.run },
    ],
  }
}

type Named = { readonly metadata: { readonly namespace?: string | undefined; readonly name?: string | undefined } }

/** All NetworkPolicies of the fleet with the peers that they name, kept up to date by single changes. */
import type { NetworkPolicy } from '../../../api/network/network-policy.ts'
import type { NamespacePolicies } from './node-policies.ts'
import type { PolicyPeers } from './policy-peers.ts'
import { policyState, type SelectingPolicy } from './policy-state.ts'

export interface FollowedPolicies {
  /** The policy as it is now; undefined: it is gone. Gives what changed. */
  set(namespace: string, name: string, policy: NetworkPolicy | undefined): PolicyChange
  of(namespace: string): NamespacePolicies
  /** Namespaces whose policies refer to the set. */
  usersOf(set: string): readonly string[]
}

export type PolicyChange = 'none' | 'changed' | 'tooLarge'

type Followed = Pick<SelectingPolicy, 'selectors'> & { readonly text: string }

/** `ipv6`: pods of the fleet have addresses of both families. */
export function followedPolicies(peers: PolicyPeers, ipv6 = false): FollowedPolicies {
  /** By namespace, then by name. */
  const policies = new Map<string, Map<string, Followed>>()
  /** By set, then by namespace: how many policies refer to it. */
  const users = new Map<string, Map<string, number>>()

  const use = (set: string, namespace: string, by: 1 | -1) => {
    const counts = users.get(set) ?? new Map<string, number>()
    const count = (counts.get(namespace) ?? 0) + by
    if (count > 0) counts.set(namespace, count)
    else counts.delete(namespace)
    if (counts.size > 0) users.set(set, counts)
    else users.delete(set)
  }

  /** The new selectors first: sets that both have are kept. */
  const follow = (namespace: string, before: Followed | undefined, after: Followed | undefined) => {
    for (const selector of after?.selectors.values() ?? []) {
      peers.add(selector)
      use(selector.name, namespace, 1)
    }
    for (const set of before?.selectors.keys() ?? []) {
      peers.remove(set)
      use(set, namespace, -1)
    }
  }

  return {
    set(namespace, name, policy) {
      const inNamespace = policies.get(namespace) ?? new Map<string, Followed>()
      const before = inNamespace.get(name)
      const next = policy && policyState(policy, ipv6)
      const after = next && { selectors: next.selectors, text: JSON.stringify(next.state) }
      if (before?.text === after?.text) return 'none'
      follow(namespace, before, after)
      if (after === undefined) inNamespace.delete(name)
      else inNamespace.set(name, after)
      if (inNamespace.size > 0) policies.set(namespace, inNamespace)
      else policies.delete(namespace)
      return next?.isTooLarge ? 'tooLarge' : 'changed'
    },
    of(namespace) {
      const inOrder = [...(policies.get(namespace) ?? [])].sort(([one], [other]) => (one < other ? -1 : 1))
      return {
        namespace,
        policies: inOrder.map(([, { text }]) => text),
        sets: new Set(inOrder.flatMap(([, { selectors }]) => [...selectors.keys()])),
      }
    },
    usersOf: (set) => [...(users.get(set)?.keys() ?? [])],
  }
}

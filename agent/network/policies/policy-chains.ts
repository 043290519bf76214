/** The names of the chains of NetworkPolicies. A name of nft has at most 255 characters. */
import { createHash } from 'node:crypto'

type Named = { readonly namespace: string; readonly name: string }

/** What a policy allows: `ingress-policy/shop/db`. */
export function policyChain(direction: 'ingress' | 'egress', { namespace, name }: Named): string {
  return `${direction}-policy/${namespace}/${fitting(name)}`
}

/** What all policies of one pod allow: `ingress-pod/shop/db-0`. */
export function podChain(direction: 'ingress' | 'egress', { namespace, name }: Named): string {
  return `${direction}-pod/${namespace}/${fitting(name)}`
}

/** Namespace and name of the pod that the chain is of: `shop/db-0`. */
export function podOfChain(chain: string): string {
  return chain.slice(chain.indexOf('/') + 1)
}

/** The map of the addresses of isolated pods to their chains. */
export function isolationMap(direction: 'ingress' | 'egress'): string {
  return `${direction}-pods`
}

const longest = 150

/** A longer name ends with a hash of it. */
function fitting(name: string): string {
  if (name.length <= longest) return name
  return `${name.slice(0, longest - 20)}/${createHash('sha256').update(name).digest('hex').slice(0, 16)}`
}

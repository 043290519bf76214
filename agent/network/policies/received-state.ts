/** What a node has received of its policies, in whichever way. */
import type { PoliciesMessage } from '../../../api/network/node-policies.ts'

/**
 * Undefined: nothing yet, from the controller or the checkpoint. `none`: the fleet has no policies, as its controller publishes none, or this node has never
 * received any.
 */
export type ReceivedPolicies = PoliciesMessage | 'none' | undefined

/**
 * Used with a damaged checkpoint or while a message does not arrive: no namespace is known, so all pods are closed
 * until the controller is back.
 */
export const closedPolicies: PoliciesMessage = { epoch: '', version: 0, namespaces: [], sets: [], policies: [] }

/** Does it have the same rules? A file with it is as good as one with the other, but for addresses of peers. */
export function haveSameRules(one: ReceivedPolicies, other: ReceivedPolicies): boolean {
  if (typeof one !== 'object' || typeof other !== 'object') return one === other
  return rulesText(one) === rulesText(other)
}

function rulesText({ namespaces, policies }: PoliciesMessage): string {
  return JSON.stringify([namespaces, policies])
}

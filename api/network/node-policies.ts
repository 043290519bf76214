/** What a node is sent of the NetworkPolicies of its pods: what they select there, and the addresses of their peers (docs/mqtt.md). */
import { LabelSelectorSchema } from '../meta.ts'
import { type Described, integer, list, object, oneOf, optional, text } from '../schema.ts'

/**
 * Characters of a message: some 70,000 addresses of peers. The node's nft holds all of them in memory when it puts them into the kernel.
 */
export const longestPoliciesMessage = 1024 * 1024

/** All values of a rule left out: every port of the protocol. `endPort`: of a range that begins with `port`. */
const PolicyPortStateSchema = object({
  protocol: oneOf('TCP', 'UDP', 'SCTP'),
  port: optional(integer),
  endPort: optional(integer),
  /** Name of a port of the selected pod's containers. */
  name: optional(text),
})
export type PolicyPortState = Described<typeof PolicyPortStateSchema>

/**
 * A connection is allowed if its peer and its port match, or if it goes to one of `destinations`. `peers` left out: anyone; `ports` left out:
 * every port and protocol; an empty list matches nothing.
 */
const PolicyRuleStateSchema = object({
  /** `sets`: by name. `ranges`: `10.0.0.0-10.0.0.255`, in order, without overlaps; `ipv6Ranges`: those of IPv6, undefined: none. */
  peers: optional(object({ sets: list(text), ranges: list(text), ipv6Ranges: optional(list(text)) })),
  ports: optional(list(PolicyPortStateSchema)),
  /** Names of sets whose elements have a port. */
  destinations: optional(list(text)),
})
export type PolicyRuleState = Described<typeof PolicyRuleStateSchema>

/** A direction that is left out is not isolated by the policy. */
export const PolicyStateSchema = object({
  namespace: text,
  name: text,
  podSelector: LabelSelectorSchema,
  ingress: optional(list(PolicyRuleStateSchema)),
  egress: optional(list(PolicyRuleStateSchema)),
})
export type PolicyState = Described<typeof PolicyStateSchema>

/**
 * The addresses of the pods that a selector matches, shared by the rules that have it. The name follows from the selector. Of a named port:
 * `10.244.1.5 . tcp . 8080`. `ipv6Elements`: those of IPv6; default: none.
 */
export const PeerSetStateSchema = object({
  name: text,
  kind: oneOf('address', 'port'),
  elements: list(text),
  ipv6Elements: optional(list(text)),
})
export type PeerSetState = Described<typeof PeerSetStateSchema>

/**
 * `namespaces`: those of which the message has every policy; pods of others are not known to be allowed anything. `version` only rises,
 * within one `epoch`.
 */
export const PoliciesMessageSchema = object({
  epoch: text,
  version: integer,
  namespaces: list(text),
  sets: list(PeerSetStateSchema),
  policies: list(PolicyStateSchema),
})
export type PoliciesMessage = Described<typeof PoliciesMessageSchema>

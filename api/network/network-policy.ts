/** networking.k8s.io/v1 NetworkPolicy: which connections the pods that it selects may have. */
import { LabelSelectorSchema, ObjectMetaSchema } from '../meta.ts'
import { type Described, field, integer, intOrString, list, object, oneOf, optional, pointer, text } from '../schema.ts'

const IPBlockSchema = object('networking.v1.IPBlock', {
  cidr: field(1, optional(text)),
  except: field(2, optional(list(text))),
})
export type IPBlock = Described<typeof IPBlockSchema>

const NetworkPolicyPortSchema = object('networking.v1.NetworkPolicyPort', {
  protocol: pointer(1, optional(text)),
  /** A number, or the name of a port of a container. Absent: every port. */
  port: pointer(2, optional(intOrString)),
  endPort: pointer(3, optional(integer)),
})
export type NetworkPolicyPort = Described<typeof NetworkPolicyPortSchema>

const NetworkPolicyPeerSchema = object('networking.v1.NetworkPolicyPeer', {
  podSelector: pointer(1, optional(LabelSelectorSchema)),
  namespaceSelector: pointer(2, optional(LabelSelectorSchema)),
  ipBlock: pointer(3, optional(IPBlockSchema)),
})
export type NetworkPolicyPeer = Described<typeof NetworkPolicyPeerSchema>

const NetworkPolicyIngressRuleSchema = object('networking.v1.NetworkPolicyIngressRule', {
  ports: field(1, optional(list(NetworkPolicyPortSchema))),
  from: field(2, optional(list(NetworkPolicyPeerSchema))),
})

const NetworkPolicyEgressRuleSchema = object('networking.v1.NetworkPolicyEgressRule', {
  ports: field(1, optional(list(NetworkPolicyPortSchema))),
  to: field(2, optional(list(NetworkPolicyPeerSchema))),
})

const NetworkPolicySpecSchema = object('networking.v1.NetworkPolicySpec', {
  podSelector: field(1, optional(LabelSelectorSchema)),
  ingress: field(2, optional(list(NetworkPolicyIngressRuleSchema))),
  egress: field(3, optional(list(NetworkPolicyEgressRuleSchema))),
  policyTypes: field(4, optional(list(text))),
})
export type NetworkPolicySpec = Described<typeof NetworkPolicySpecSchema>

export const NetworkPolicySchema = object({
  apiVersion: oneOf('networking.k8s.io/v1'),
  kind: oneOf('NetworkPolicy'),
  metadata: field(1, ObjectMetaSchema),
  spec: field(2, optional(NetworkPolicySpecSchema)),
})
export type NetworkPolicy = Described<typeof NetworkPolicySchema>

/** The directions in which the pods of a policy are isolated (networking/v1 PolicyType). */
export const policyTypes = ['Ingress', 'Egress'] as const

/** What every node is sent of the Services and their endpoints: enough to forward packets and to answer names (docs/mqtt.md). */
import { bool, type Described, integer, list, object, oneOf, optional, text } from '../schema.ts'

/**
 * Messages that all Services are divided into, so that a change of one sends some kB again and not all. A node reads topics one by
 * one, without wildcards: the number is part of the protocol.
 */
export const serviceShards = 16

/**
 * Characters of a message of the network or of a shard that nodes read: some 10,000 endpoints, which take less than 100 ms to decode on an
 * x86-64 core (agent/budget.test.ts).
 */
export const longestFleetMessage = 2 * 1024 * 1024

const EndpointPortSchema = object({ name: optional(text), port: integer, protocol: oneOf('TCP', 'UDP') })

/** `ready` is false and `serving` is true for a pod that ends and still answers. `zones`: hints, the zones that should use it. */
const EndpointAddressSchema = object({
  ip: text,
  hostname: optional(text),
  /** The name of the pod, where a pod is behind the address. */
  pod: optional(text),
  node: optional(text),
  zone: optional(text),
  zones: optional(list(text)),
  ready: bool,
  serving: bool,
  terminating: bool,
})
export type EndpointAddressState = Described<typeof EndpointAddressSchema>

const EndpointSetsSchema = list(object({ ports: list(EndpointPortSchema), addresses: list(EndpointAddressSchema) }))

/** A Service as every node receives it; values that a Service may leave out are those of its defaults. */
export const ServiceStateSchema = object({
  namespace: text,
  name: text,
  type: oneOf('ClusterIP', 'NodePort', 'LoadBalancer', 'ExternalName'),
  /** Empty: the Service is headless or a name only. */
  clusterIPs: list(text),
  externalIPs: optional(list(text)),
  /** Addresses of `status.loadBalancer` that the fleet itself answers for. */
  loadBalancerIPs: optional(list(text)),
  /** The only node that takes those addresses, also of `ipv6`, and answers ARP and neighbour discovery for them. Default: the network leads them to nodes, or they are those of nodes. */
  loadBalancerNode: optional(text),
  /** Who may use those: `loadBalancerSourceRanges`. */
  sourceRanges: optional(list(text)),
  externalName: optional(text),
  ports: list(
    object({ name: optional(text), port: integer, protocol: oneOf('TCP', 'UDP'), nodePort: optional(integer) }),
  ),
  /** Seconds for which a client stays with its endpoint. */
  affinitySeconds: optional(integer),
  internalTrafficPolicy: oneOf('Cluster', 'Local'),
  externalTrafficPolicy: oneOf('Cluster', 'Local'),
  healthCheckNodePort: optional(integer),
  publishNotReadyAddresses: optional(bool),
  /** Another program forwards to it (its label names one); nodes answer its names only. */
  proxiedElsewhere: optional(bool),
  /** The port of an endpoint has the name of the Service's port that it is behind. */
  endpoints: EndpointSetsSchema,
  /** Its IPv6 addresses, where it has some; those outside of it are of IPv4. Agents of earlier versions keep using IPv4. */
  ipv6: optional(
    object({
      clusterIPs: list(text),
      externalIPs: optional(list(text)),
      loadBalancerIPs: optional(list(text)),
      sourceRanges: optional(list(text)),
      endpoints: EndpointSetsSchema,
    }),
  ),
})
export type ServiceState = Described<typeof ServiceStateSchema>

/** All Services of one shard. `version` only rises, within one `epoch`. */
export const ServicesMessageSchema = object({ epoch: text, version: integer, services: list(ServiceStateSchema) })
export type ServicesMessage = Described<typeof ServicesMessageSchema>

/** The shard of a Service: FNV-1a over the code points of `namespace/name`, modulo the number of shards. */
export function serviceShardOf(namespace: string, name: string): number {
  let hash = 0x811c9dc5
  for (const unit of `${namespace}/${name}`) hash = Math.imul(hash ^ (unit.codePointAt(0) ?? 0), 0x01000193) >>> 0
  return hash % serviceShards
}

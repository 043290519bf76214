/** What every node is sent of the network of the fleet, so that it can reach the pods of the others (docs/mqtt.md). */
import { bool, type Described, integer, list, object, optional, text } from '../schema.ts'

/** UDP, of VXLAN in Linux before it had a port assigned, and of flannel: what networks of Kubernetes let through. */
export const tunnelPort = 8472

/**
 * `nodes` has each node with an address range for its pods: `address` is the InternalIP that the others reach it by. Nodes of one
 * `segment` share a link, so that a route to a range names the node as its gateway. `version` only rises, within one `epoch`.
 * `wireguard`: between segments; undefined: VXLAN. `ipv6`: of a fleet whose pods have addresses of both families; agents of earlier versions
 * keep using IPv4.
 */
export const NetworkMessageSchema = object({
  epoch: text,
  version: integer,
  clusterCIDR: text,
  serviceCIDR: text,
  ipv6: optional(object({ clusterCIDR: text, serviceCIDR: text })),
  /** Domain of the names of Services and pods, without dots at its ends. */
  clusterDomain: text,
  /** Nodes listen on this UDP port. */
  wireguard: optional(object({ port: integer })),
  nodes: list(
    object({
      name: text,
      podCIDR: text,
      address: text,
      /** `address`: its IPv6 InternalIP; undefined: it has none. */
      ipv6: optional(object({ podCIDR: text, address: optional(text) })),
      segment: text,
      /** UDP, at which it proves `address`; undefined: its agent is of an earlier version, and is not probed. */
      probePort: optional(integer),
      /** Value of its label `topology.kubernetes.io/zone`. */
      zone: optional(text),
      wireguardKey: optional(text),
      /** `HOST:PORT`, or `none`: other nodes cannot reach it. Default: `address` and the port of the fleet. */
      wireguardEndpoint: optional(text),
      /** It passes packets on between nodes that cannot reach each other. */
      relay: optional(bool),
    }),
  ),
})
export type NetworkMessage = Described<typeof NetworkMessageSchema>
export type NetworkPeer = NetworkMessage['nodes'][number]

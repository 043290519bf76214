/** The network of pods as this node takes part in it. */
import type { ServiceRoute } from './host-routes.ts'
import type { PodRoute, Tunnel } from './tunnels.ts'

/** What nodes have of each IP family. */
export type FamilyNetwork = {
  readonly clusterCIDR: string
  /** Range of the addresses of Services. */
  readonly serviceCIDR: string
  /** Range of the pods of this node. */
  readonly podCIDR: string
  /**
   * Addresses of the nodes whose processes may reach all pods, as in Kubernetes. Without nodes behind WireGuard: they
   * use the address of their tunnel end, and their own address may belong to any machine here.
   */
  readonly nodeAddresses: readonly string[]
  readonly routes: readonly PodRoute[]
  /** Undefined: processes of the machine need none. */
  readonly serviceRoute?: ServiceRoute
}

/** IPv4, except `ipv6`. */
export type PeerNetwork = FamilyNetwork & {
  /** The InternalIP of this node. */
  readonly address: string
  /** Undefined: pods of this node have no IPv6 addresses. */
  readonly ipv6?: FamilyNetwork
  /** Why pods of some nodes, or of this one, have no connection by IPv6, each as a sentence. */
  readonly ipv6Gaps?: readonly string[]
  /** This node's end of the tunnel; undefined where VXLAN would have no other one. */
  readonly tunnel: Tunnel | undefined
  /** Without a route to them, packets to pods are refused: they must not leave this node unencrypted. */
  readonly isGuarded: boolean
  /** The nodes whose pods are reached through another one: its name by theirs. */
  readonly relays: ReadonlyMap<string, string>
  /** Why pods of some nodes cannot have a route, each as a sentence. */
  readonly gaps: readonly string[]
}

/** Conflicts between Docker's networks and the addresses of pods, and how they are resolved. */
import type Dockerode from 'dockerode'
import { type Cidr, cidrsOverlap, formatCidr, parseCidr } from '../../../api/text/cidr.ts'
import { nodeLabel } from './labels.ts'

/**
 * `node`: pods reach those of their own node, and Docker gives their packets the node's address. `routed`: pods keep their addresses
 * on the way to other nodes; our own rules decide what reaches them (agent/network/peers/peer-rules.ts).
 */
export type NetworkMode = 'node' | 'routed'

export type DockerNetwork = {
  readonly id: string
  readonly name: string
  /** The node whose agent created it; undefined: Bramble did not create it. */
  readonly node: string | undefined
  readonly ranges: readonly Cidr[]
  /** Docker gives its containers addresses of IPv6, too. */
  readonly hasIPv6: boolean
}

export function networkOf({ Id, Name, Labels, IPAM, EnableIPv6 }: Dockerode.NetworkInspectInfo): DockerNetwork {
  const labels: { readonly [name: string]: string | undefined } = Labels ?? {}
  const ranges = (IPAM?.Config ?? []).flatMap(({ Subnet = '' }) => parseCidr(Subnet) ?? [])
  return { id: Id, name: Name, node: labels[nodeLabel], ranges, hasIPv6: EnableIPv6 === true }
}

/** Docker's own network filter ignores a container that was never started. */
export function isOn({ id, name }: DockerNetwork, { HostConfig, NetworkSettings }: Dockerode.ContainerInfo): boolean {
  const attached = Object.entries(NetworkSettings?.Networks ?? {})
  return (
    [id, name].includes(HostConfig?.NetworkMode ?? '') ||
    attached.some(([key, { NetworkID }]) => key === name || NetworkID === id)
  )
}

/** Docker assigns an address range to one network only. */
export function networksInTheWay(podCIDR: string, networks: readonly DockerNetwork[]): readonly DockerNetwork[] {
  const pods = parseCidr(podCIDR)
  if (pods === undefined) return []
  return networks.filter(({ ranges }) => ranges.some((range) => cidrsOverlap(range, pods)))
}

/** This node's networks for ranges that it no longer has. `name`: of the network it needs. */
export function outdatedNetworks(
  nodeName: string,
  name: string,
  networks: readonly DockerNetwork[],
): readonly DockerNetwork[] {
  return networks.filter((network) => network.node === nodeName && network.name !== name)
}

/** Why the network stays, and what to do. `containers`: the number of containers that use it, running or not. */
export function networkUsed(podCIDR: string, { name, node, ranges }: DockerNetwork, containers: number): string {
  const range = ranges.map(formatCidr).join(', ')
  const belongs = `addresses of podCIDR ${podCIDR} belong to Docker network ${name} (${range})`
  const elsewhere = 'give one of the fleets another clusterCIDR'
  if (node === undefined) {
    return `${belongs}, which Bramble did not create: if nothing needs it, run 'docker network rm ${name}'; else give the fleet a clusterCIDR that no other network has`
  }
  const count = containers === 1 ? '1 container' : `${containers} containers`
  return `${belongs} of node ${node}, which ${count} of this machine use: if that node runs here too, ${elsewhere}; if it is no longer used, remove its containers with 'docker rm -f $(docker ps -aq --filter label=${nodeLabel}=${node})'`
}

/** Docker fixes the options of a network when it is created: each mode has a network of its own. */
export function networkName(nodeName: string, podCIDR: string, mode: NetworkMode): string {
  const name = `bramble_${nodeName}_${podCIDR.replace(/[^0-9a-f.]/g, '-')}`
  return mode === 'routed' ? `${name}_routed` : name
}

export function modeOfNetwork({ name }: DockerNetwork): NetworkMode {
  return name.endsWith('_routed') ? 'routed' : 'node'
}

/** Docker's name for the interface of a network of its driver `bridge`. */
export function bridgeOf(networkID: string): string {
  return `br-${networkID.slice(0, 12)}`
}

/** Engines before version 28 ignore the second one; later ones would drop packets that other machines send to a pod. */
export function networkOptions(mode: NetworkMode): { readonly [name: string]: string } {
  if (mode === 'node') return {}
  return {
    'com.docker.network.bridge.enable_ip_masquerade': 'false',
    'com.docker.network.bridge.gateway_mode_ipv4': 'nat-unprotected',
  }
}

/** Conflicts between Docker's networks and the addresses of pods, and how they are resolved. */
import { type Cidr, cidrsOverlap, formatCidr, parseCidr } from '../../../api/text/cidr.ts'
import { formatIPv6, formatIPv6Range, parseIPv6Range } from '../../../api/text/ipv6-range.ts'
import type { JsonShape, Kept } from './json-reader.ts'
import { nodeLabel } from './labels.ts'

/**
 * Label of a network that other machines may send to: its gateway mode, as far as the engine supported it when the
 * network was created.
 */
const gatewayModeLabel = 'bramble.dev/gateway-mode'
const unprotected = 'nat-unprotected'

/**
 * `dual`: as `routed`, with addresses of both IP families. `node`: pods reach those of their own node, and Docker gives their packets the node's address. `routed`: pods keep their addresses
 * on the way to other nodes; our own rules decide what reaches them (agent/network/peers/peer-rules.ts).
 */
export type NetworkMode = 'node' | 'routed' | 'dual'

export type DockerNetwork = {
  readonly id: string
  readonly name: string
  /** The node whose agent created it; undefined: Bramble did not create it. */
  readonly node: string | undefined
  readonly ranges: readonly Cidr[]
  /** Docker gives its containers IPv6 addresses, too. */
  readonly hasIPv6: boolean
  /** In canonical form. */
  readonly ipv6Ranges: readonly string[]
  /** The engine that made it knew the mode in which other machines may send to its containers. */
  readonly isUnprotected: boolean
}

export const networksShape = {
  list: {
    fields: {
      Id: 'text',
      Name: 'text',
      Labels: { fields: { [nodeLabel]: 'text', [gatewayModeLabel]: 'text' } },
      IPAM: { fields: { Config: { list: { fields: { Subnet: 'text' } } } } },
      EnableIPv6: 'flag',
    },
  },
} as const satisfies JsonShape

/** Fields of a list of containers that concern their networks. */
export const attachedShape = {
  list: {
    fields: {
      Id: 'text',
      Labels: { fields: { [nodeLabel]: 'text' } },
      HostConfig: { fields: { NetworkMode: 'text' } },
      NetworkSettings: { fields: { Networks: { map: { fields: { NetworkID: 'text' } } } } },
      Ports: { list: { fields: { IP: 'text' } } },
    },
  },
} as const satisfies JsonShape

export type AttachedContainer = Kept<typeof attachedShape>[number]

export function networkOf({
  Id = '',
  Name = '',
  Labels = {},
  IPAM,
  EnableIPv6,
}: Kept<typeof networksShape>[number]): DockerNetwork {
  const ranges = (IPAM?.Config ?? []).flatMap(({ Subnet = '' }) => parseCidr(Subnet) ?? [])
  const ofIPv6 = (IPAM?.Config ?? []).flatMap(({ Subnet = '' }) => parseIPv6Range(Subnet) ?? [])
  return {
    ...{ id: Id, name: Name, node: Labels[nodeLabel], ranges, hasIPv6: EnableIPv6 === true },
    ipv6Ranges: ofIPv6.map(formatIPv6Range),
    isUnprotected: Labels[gatewayModeLabel] === unprotected,
  }
}

/** Docker's own network filter ignores a container that was never started. */
export function isOn({ id, name }: DockerNetwork, { HostConfig, NetworkSettings }: AttachedContainer): boolean {
  const attached = Object.entries(NetworkSettings?.Networks ?? {})
  return (
    [id, name].includes(HostConfig?.NetworkMode ?? '') ||
    attached.some(([key, network]) => key === name || network?.NetworkID === id)
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
  return mode === 'node' ? name : `${name}_${mode}`
}

export function modeOfNetwork({ name }: DockerNetwork): NetworkMode {
  return (['routed', 'dual'] as const).find((mode) => name.endsWith(`_${mode}`)) ?? 'node'
}

/** Docker's name for the interface of a network of its driver `bridge`. */
export function bridgeOf(networkID: string): string {
  return `br-${networkID.slice(0, 12)}`
}

/**
 * Whether the engine drops what other machines send to a container, in the raw table, unless the network of the container has a mode
 * without that: Docker from version 28 on (API 1.48; moby, libnetwork/drivers/bridge/port_mapping_linux.go). It takes the mode of a
 * network that an earlier version made for the usual one, whatever options the network has (bridge_store.go).
 */
export function protectsContainers(apiVersion: string | undefined): boolean {
  const [major = 0, minor = 0] = (apiVersion ?? '').split('.').map(Number)
  return major > 1 || (major === 1 && minor >= 48)
}

type Texts = { readonly [name: string]: string }
export type NetworkSettings = { readonly labels: Texts; readonly options: Texts }

/** `protects`: see `protectsContainers`. Version 27 refuses the mode as unknown, and earlier ones ignore it. */
export function networkSettings(mode: NetworkMode, protects: boolean): NetworkSettings {
  if (mode === 'node') return { labels: {}, options: {} }
  const ownAddresses = { 'com.docker.network.bridge.enable_ip_masquerade': 'false' }
  if (!protects) return { labels: {}, options: ownAddresses }
  return {
    labels: { [gatewayModeLabel]: unprotected },
    options: {
      ...ownAddresses,
      'com.docker.network.bridge.gateway_mode_ipv4': unprotected,
      ...(mode === 'dual' && { 'com.docker.network.bridge.gateway_mode_ipv6': unprotected }),
    },
  }
}

/** The addresses that Docker gives out. Of IPv6 it takes the gateway from the request only, before version 27. */
export function addressPools(podCIDR: string, ipv6CIDR: string | undefined) {
  const ipv6 = parseIPv6Range(ipv6CIDR ?? '')
  const pool = ipv6 && { Subnet: formatIPv6Range(ipv6), Gateway: formatIPv6(ipv6.first + 1n) }
  return [{ Subnet: podCIDR }, ...(pool ? [pool] : [])]
}

/** What `bramble-agent network` prints: how this node reaches the pods of the others, and what is missing. */
import type { NetworkMessage } from '../../api/network/pod-network.ts'
import type { ServiceState } from '../../api/network/service-endpoints.ts'
import { type NetworkObstacle, obstacleText } from './gate/network-obstacle.ts'
import type { FamilyNetwork, PeerNetwork } from './peers/family-network.ts'
import { peerNetworkOf } from './peers/peer-network.ts'
import { type HostLinks, type MadeRoutes, planRoutes } from './peers/route-steps.ts'
import { type PodRoute, tunnelDevice, wireguardDevice } from './peers/tunnels.ts'
import { type AddressProofs, unprovenAddresses, unprovenNodes } from './probes/proven-network.ts'
import { textColumns } from './text-columns.ts'
import { contactOf, noContactWith, type PeerContact, type WireguardState } from './wireguard/wireguard-plan.ts'

export type NetworkFindings = {
  readonly nodeName: string
  /** What this node has received; undefined: the fleet has no network of its own, or this node no part in it. */
  readonly message: NetworkMessage | undefined
  /** Why it has no part. */
  readonly obstacle?: NetworkObstacle | undefined
  /** The same. */
  readonly services: readonly ServiceState[]
  /** Which addresses of nodes may be used. */
  readonly proofs: AddressProofs
  /** Addresses of load balancers that this machine has. */
  readonly heldAddresses: ReadonlySet<string>
  readonly links: HostLinks
  readonly made: MadeRoutes
  /** The table of rules is in the kernel. */
  readonly hasRules: boolean
  /** The machine has IPv6 on. */
  readonly hasIPv6: boolean
  /** The machine has no IPv6, or rules keep it away from pods. */
  readonly isIPv6Closed: boolean
  /** What pods with IPv6 addresses need; read only where they have some. */
  readonly ipv6?: { readonly hasRules: boolean; readonly dockerAccepts: boolean; readonly forwards: boolean }
  /** Docker's rules accept packets with our mark. */
  readonly dockerAccepts: boolean
  readonly forwards: boolean
  /** Packets between pods of this node pass the rules. */
  readonly filtersBridges: boolean
  readonly isolated: readonly IsolatedPod[]
  /** undefined: there is no interface, or it cannot be read. */
  readonly wireguard?: WireguardState | undefined
  readonly nowSeconds: number
}

/** A pod of this node whose connections NetworkPolicies restrict. */
export type IsolatedPod = {
  /** `shop/db-0`; undefined: it has none, as the policies of its namespace are not known. */
  readonly pod: string | undefined
  readonly address: string
  readonly directions: readonly ('ingress' | 'egress')[]
}

export type NetworkReport = {
  readonly node: string
  /** Undefined: see `NetworkFindings.message`. */
  readonly network?: {
    readonly podCIDR: string
    readonly clusterCIDR: string
    readonly serviceCIDR: string
    readonly ipv6?: { readonly podCIDR: string; readonly clusterCIDR: string; readonly serviceCIDR: string }
    readonly nodes: readonly NodeRoute[]
    readonly services: {
      readonly total: number
      /** Those that have no endpoint that is ready, as sorted `NAMESPACE/NAME`; names for other names of DNS need none. */
      readonly withoutEndpoints: readonly string[]
    }
    /** Those for which one node answers. */
    readonly loadBalancers: readonly BalancedAddress[]
    /** Pods of this node whose connections NetworkPolicies restrict. */
    readonly isolated: readonly IsolatedPod[]
  }
  /** What is missing, as sentences. */
  readonly problems: readonly string[]
}

export type NodeRoute = {
  readonly name: string
  readonly podCIDR: string
  readonly address: string
  readonly way: 'route' | 'tunnel' | 'wireguard' | 'none'
  /** The node that passes packets on. */
  readonly relay?: string
  readonly state:
    | 'in place'
    | 'missing'
    | 'not proven'
    | 'this node'
    | 'not reached'
    | Exclude<PeerContact, 'in contact'>
  /** undefined: the pods have no IPv6 addresses. */
  readonly ipv6?: { readonly podCIDR: string; readonly state: 'in place' | 'missing' | 'this node' | 'not reached' }
}

export type BalancedAddress = {
  readonly address: string
  /** `NAMESPACE/NAME` */
  readonly service: string
  readonly node: string
  readonly state: 'in place' | 'missing' | 'other node'
}

/** Report of a node that takes no part in a network of the fleet. */
export function reportWithoutNetwork(node: string, obstacle: NetworkObstacle | undefined): NetworkReport {
  return { node, problems: obstacle === undefined ? [] : [`${obstacleText(obstacle)}. ${obstacle.remedy}`] }
}

type RouteFacts = {
  readonly isReached: boolean
  readonly isMissing: boolean
  readonly isProven: boolean
  readonly contact: PeerContact
}

/** The route to the pods of another node. */
function routeState({ isReached, isMissing, isProven, contact }: RouteFacts): NodeRoute['state'] {
  if (!isReached) return 'not reached'
  if (isMissing) return isProven ? 'missing' : 'not proven'
  return contact === 'in contact' ? 'in place' : contact
}

export function networkReport(findings: NetworkFindings): NetworkReport {
  const { nodeName: node, message, links, made } = findings
  if (message === undefined) return reportWithoutNetwork(node, findings.obstacle)
  const wanted = peerNetworkOf(message, node, findings.hasIPv6)
  const { steps, inTheWay, ipv6InTheWay, overlaps } = planRoutes(wanted, { ...made, ...asMade(wanted?.tunnel) }, links)
  const contacts = contactsOf(wanted, findings)
  const missing = steps.flatMap((step) => (step.step === 'addRoute' ? [step.route.range] : []))
  const unproven = new Set(unprovenNodes(message, node, findings.proofs))
  const ipv6State = (range: string) => {
    if (!wanted?.ipv6?.routes.some((route) => route.range === range)) return 'not reached'
    return missing.concat(ipv6InTheWay.join()).some((text) => text.includes(range)) ? 'missing' : 'in place'
  }
  const nodes = message.nodes.map(({ name, podCIDR, address, ipv6 }): NodeRoute => {
    const route = wanted?.routes.find(({ range }) => range === podCIDR)
    const isMissing = missing.includes(podCIDR) || inTheWay.some((text) => text.includes(podCIDR))
    const relay = wanted?.relays.get(name)
    const contact = contacts.get(podCIDR)?.contact ?? 'in contact'
    const state = routeState({ isReached: route !== undefined, isMissing, isProven: !unproven.has(name), contact })
    return {
      ...{ name, podCIDR, address, way: wayOf(route), ...(relay && { relay }) },
      state: name === node ? 'this node' : state,
      ...(wanted?.ipv6 &&
        ipv6 && {
          ipv6: { podCIDR: ipv6.podCIDR, state: name === node ? 'this node' : ipv6State(ipv6.podCIDR) },
        }),
    }
  })
  const loadBalancers = balancedAddresses(findings)
  const lacking = loadBalancers.filter(({ state }) => state === 'missing').map(({ address }) => address)
  const isUnproven = nodes.some(({ state }) => state === 'not proven')
  const absent = nodes.filter(({ state }) => state === 'missing').map(({ name }) => name)
  return {
    node,
    ...(wanted && {
      network: {
        podCIDR: wanted.podCIDR,
        clusterCIDR: wanted.clusterCIDR,
        serviceCIDR: message.serviceCIDR,
        ...(wanted.ipv6 && { ipv6: rangesOf(wanted.ipv6) }),
        nodes,
        services: servicesOf(findings),
        loadBalancers,
        isolated: findings.isolated,
      },
    }),
    problems: [
      ...(wanted === undefined ? ['The controller has not assigned a range for pods to this node'] : []),
      ...(findings.hasRules ? [] : ['The table of rules is not in the kernel (nft list table ip bramble)']),
      ...ipv6Problems(wanted, findings),
      ...(findings.isIPv6Closed || wanted?.ipv6 !== undefined
        ? []
        : ['No rules keep IPv6 away from pods (nft list table ip6 bramble)']),
      ...(findings.dockerAccepts ? [] : ['Docker drops packets between nodes: our rule in DOCKER-USER is missing']),
      ...(findings.forwards ? [] : ['The kernel forwards no packets: set net.ipv4.ip_forward=1']),
      ...(findings.filtersBridges ? [] : [bridgeProblem]),
      ...(absent.length === 0 ? [] : [`No route to the pods of ${absent.join(', ')}`]),
      ...(isUnproven ? unprovenAddresses(message, node, findings.proofs) : []),
      ...inTheWay,
      ...ipv6InTheWay,
      ...overlaps,
      ...(wanted?.gaps ?? []),
      ...(wanted?.ipv6Gaps ?? []),
      ...new Set([...contacts.values()].flatMap(({ silence }) => silence)),
      ...(lacking.length === 0
        ? []
        : [`This node does not answer for ${lacking.join(', ')}: another machine does, or the agent is not running`]),
    ],
  }
}

function servicesOf({ services }: NetworkFindings) {
  const isWithout = ({ type, endpoints }: ServiceState) =>
    type !== 'ExternalName' && !endpoints.some(({ addresses }) => addresses.some(({ ready }) => ready))
  const names = services.filter(isWithout).map(({ namespace, name }) => `${namespace}/${name}`)
  return { total: services.length, withoutEndpoints: names.sort() }
}

function rangesOf({ podCIDR, clusterCIDR, serviceCIDR }: FamilyNetwork) {
  return { podCIDR, clusterCIDR, serviceCIDR }
}

function ipv6Problems(wanted: PeerNetwork | undefined, { ipv6 }: NetworkFindings): readonly string[] {
  if (wanted?.ipv6 === undefined || ipv6 === undefined) return []
  return [
    ...(ipv6.hasRules ? [] : ['The table of rules is not in the kernel (nft list table ip6 bramble)']),
    ...(ipv6.dockerAccepts ? [] : ['Docker drops IPv6 packets between nodes: our rule in DOCKER-USER is missing']),
    ...(ipv6.forwards ? [] : ['The kernel forwards no IPv6 packets: set net.ipv6.conf.all.forwarding=1']),
  ]
}

/** A tunnel whose ends are not read: what is in the kernel of it counts as made. */
function asMade(tunnel: PeerNetwork['tunnel']): Partial<MadeRoutes> {
  if (tunnel?.kind === 'wireguard')
    return {
      wireguardAddress: tunnel.address,
      tunnelIPv6: tunnel.ipv6 === undefined ? {} : { [wireguardDevice]: tunnel.ipv6 },
    }
  return { tunnelPeers: tunnel?.peers ?? [] }
}

/** By the range of pods: of the peer that has it. */
function contactsOf(wanted: PeerNetwork | undefined, { wireguard, nowSeconds }: NetworkFindings) {
  const contacts = new Map<string, { readonly contact: PeerContact; readonly silence: readonly string[] }>()
  if (wanted?.tunnel?.kind !== 'wireguard' || wireguard === undefined) return contacts
  for (const peer of wanted.tunnel.peers) {
    const contact = contactOf(peer, wireguard.peers.get(peer.publicKey), nowSeconds)
    const silence = contact === 'no contact yet' ? [noContactWith(peer)] : []
    for (const range of peer.ranges) contacts.set(range, { contact, silence })
  }
  return contacts
}

function balancedAddresses({ services, heldAddresses, nodeName }: NetworkFindings): readonly BalancedAddress[] {
  const all = services.flatMap(({ namespace, name, loadBalancerNode: node, loadBalancerIPs = [], ipv6 }) => {
    const addresses = [...loadBalancerIPs, ...(ipv6?.loadBalancerIPs ?? [])]
    return node === undefined ? [] : addresses.map((address) => ({ address, service: `${namespace}/${name}`, node }))
  })
  return all
    .map((one): BalancedAddress => {
      const state = heldAddresses.has(one.address) ? 'in place' : 'missing'
      return { ...one, state: one.node === nodeName ? state : 'other node' }
    })
    .sort((a, b) => (a.service < b.service ? -1 : 1))
}

const bridgeProblem =
  'Packets between pods of this node pass no rules: load the module br_netfilter and set net.bridge.bridge-nf-call-iptables=1'

function wayOf(route: PodRoute | undefined): NodeRoute['way'] {
  if (route === undefined) return 'none'
  if (route.device === undefined) return 'route'
  return route.device === tunnelDevice ? 'tunnel' : 'wireguard'
}

export function networkText({ node, network, problems }: NetworkReport): string {
  const absent =
    problems.length > 0
      ? 'it is not part of the network of the fleet'
      : 'the fleet has no network of its own (podNetwork: node), or this node has not received it'
  const lines =
    network === undefined
      ? [`Node ${node}: ${absent}`]
      : [
          `Node ${node}: ${rangesText(network)}`,
          ...(network.ipv6 === undefined ? [] : [`IPv6: ${rangesText(network.ipv6)}`]),
          '',
          ...textColumns([
            ['NODE', 'PODS', 'ADDRESS', 'BY', 'STATE', ...(network.ipv6 === undefined ? [] : ['IPV6 PODS', 'IPV6'])],
            ...network.nodes.map(({ name, podCIDR, address, way, relay, state, ipv6 }) => [
              ...[name, podCIDR, address],
              ...[relay === undefined ? way : `relay ${relay}`, state],
              ...(network.ipv6 === undefined ? [] : [ipv6?.podCIDR ?? '-', ipv6?.state ?? '-']),
            ]),
          ]),
          ...serviceLines(network.services),
          ...balancerLines(network.loadBalancers),
          ...(network.isolated.length === 0
            ? []
            : ['', ...textColumns([['POD', 'ADDRESS', 'ISOLATED'], ...network.isolated.map(isolatedRow)])]),
        ]
  const found = problems.map((problem) => `- ${problem}`)
  return `${[...lines, ...(found.length === 0 ? [] : ['', 'Problems:', ...found])].join('\n')}\n`
}

function rangesText(ranges: { readonly podCIDR: string; readonly clusterCIDR: string; readonly serviceCIDR: string }) {
  return `pods ${ranges.podCIDR} of ${ranges.clusterCIDR}, Services ${ranges.serviceCIDR}`
}

function isolatedRow({ pod = '<unknown policies>', address, directions }: IsolatedPod): readonly string[] {
  return [pod, address, directions.join(', ')]
}

/** A line of the terminal has room for some names. */
const mostNames = 5

function serviceLines({ total, withoutEndpoints: names }: NonNullable<NetworkReport['network']>['services']) {
  if (total === 0) return []
  const more = names.length > mostNames ? `, and ${names.length - mostNames} more` : ''
  const named = names.length === 0 ? '' : ` (${names.slice(0, mostNames).join(', ')}${more})`
  return ['', `Services: ${total}, of which ${names.length} have no endpoint that is ready${named}`]
}

function balancerLines(all: readonly BalancedAddress[]): readonly string[] {
  if (all.length === 0) return []
  const rows = all.map(({ address, service, node, state }) => [address, service, node, state])
  return ['', ...textColumns([['LOAD BALANCER', 'SERVICE', 'NODE', 'STATE'], ...rows])]
}

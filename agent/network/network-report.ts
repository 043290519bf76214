/** What `bramble-agent network` prints: how this node reaches the pods of the others, and what is missing. */
import type { NetworkMessage } from '../../api/network/pod-network.ts'
import { type PodRoute, peerNetworkOf } from './peers/peer-network.ts'
import { type HostLinks, type MadeRoutes, planRoutes } from './peers/route-steps.ts'

export type NetworkFindings = {
  readonly nodeName: string
  /** Of the checkpoint; undefined: the fleet has no network of its own. */
  readonly message: NetworkMessage | undefined
  readonly links: HostLinks
  readonly made: MadeRoutes
  /** The table of rules is in the kernel. */
  readonly hasRules: boolean
  /** Docker's rules accept packets with our mark. */
  readonly dockerAccepts: boolean
  readonly forwards: boolean
  readonly isolated: readonly IsolatedPod[]
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
    readonly nodes: readonly NodeRoute[]
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
  readonly way: 'route' | 'tunnel' | 'none'
  readonly state: 'in place' | 'missing' | 'this node' | 'not reached'
}

export function networkReport(findings: NetworkFindings): NetworkReport {
  const { nodeName: node, message, links, made } = findings
  if (message === undefined) return { node, problems: [] }
  const wanted = peerNetworkOf(message, node)
  const { steps, inTheWay } = planRoutes(wanted, { ...made, tunnelPeers: wanted?.tunnel?.peers ?? [] }, links)
  const missing = steps.flatMap((step) => (step.step === 'addRoute' ? [step.route.range] : []))
  const nodes = message.nodes.map(({ name, podCIDR, address }): NodeRoute => {
    const route = wanted?.routes.find(({ range }) => range === podCIDR)
    const isMissing = missing.includes(podCIDR) || inTheWay.some((text) => text.includes(podCIDR))
    const state = name === node ? 'this node' : route === undefined ? 'not reached' : isMissing ? 'missing' : 'in place'
    return { name, podCIDR, address, way: wayOf(route), state }
  })
  const absent = nodes.filter(({ state }) => state === 'missing').map(({ name }) => name)
  return {
    node,
    ...(wanted && {
      network: {
        podCIDR: wanted.podCIDR,
        clusterCIDR: wanted.clusterCIDR,
        serviceCIDR: message.serviceCIDR,
        nodes,
        isolated: findings.isolated,
      },
    }),
    problems: [
      ...(wanted === undefined ? ['The controller has not assigned a range for pods to this node'] : []),
      ...(findings.hasRules ? [] : ['The table of rules is not in the kernel (nft list table ip bramble)']),
      ...(findings.dockerAccepts ? [] : ['Docker drops packets between nodes: our rule in DOCKER-USER is missing']),
      ...(findings.forwards ? [] : ['The kernel forwards no packets: set net.ipv4.ip_forward=1']),
      ...(absent.length === 0 ? [] : [`No route to the pods of ${absent.join(', ')}`]),
      ...inTheWay,
    ],
  }
}

function wayOf(route: PodRoute | undefined): NodeRoute['way'] {
  if (route === undefined) return 'none'
  return route.device === undefined ? 'route' : 'tunnel'
}

export function networkText({ node, network, problems }: NetworkReport): string {
  const lines =
    network === undefined
      ? [`Node ${node}: the fleet has no network of its own (podNetwork: node), or this node has not received it`]
      : [
          `Node ${node}: pods ${network.podCIDR} of ${network.clusterCIDR}, Services ${network.serviceCIDR}`,
          '',
          ...table([
            ['NODE', 'PODS', 'ADDRESS', 'BY', 'STATE'],
            ...network.nodes.map(({ name, podCIDR, address, way, state }) => [name, podCIDR, address, way, state]),
          ]),
          ...(network.isolated.length === 0
            ? []
            : ['', ...table([['POD', 'ADDRESS', 'ISOLATED'], ...network.isolated.map(isolatedRow)])]),
        ]
  const found = problems.map((problem) => `- ${problem}`)
  return `${[...lines, ...(found.length === 0 ? [] : ['', 'Problems:', ...found])].join('\n')}\n`
}

function isolatedRow({ pod = '<unknown policies>', address, directions }: IsolatedPod): readonly string[] {
  return [pod, address, directions.join(', ')]
}

function table(rows: readonly (readonly string[])[]): readonly string[] {
  const widths = (rows[0] ?? []).map((_, column) => Math.max(...rows.map((row) => row[column]?.length ?? 0)))
  return rows.map((row) =>
    row
      .map((cell, column) => cell.padEnd(widths[column] ?? 0))
      .join('  ')
      .trimEnd(),
  )
}

/** Nodes without an engine or an agent: network namespaces on one link, with a bridge for pods each, and routes to each other's. */
import { randomBytes } from 'node:crypto'
import { nftTable } from '../../agent/adapters/network/nft/nft.ts'
import { baseRules } from '../../agent/network/base-rules.ts'
import { allRules, chainDeletion, ruleChanges } from '../../agent/network/rule-changes.ts'
import { ipv4Rules, ipv6Rules, type RuleFamily } from '../../agent/network/rule-family.ts'
import { noRules, type RuleSet } from '../../agent/network/rule-set.ts'
import { rulesOfServices } from '../../agent/network/services/rules-of-services.ts'
import type { ServiceState } from '../../api/network/service-endpoints.ts'
import { type EndpointProgram, endpointProgram } from './endpoint-programs.ts'
import { commandOrThrow } from './machine-commands.ts'
import { bridgeMac, portForwards } from './machine-network.ts'
import { type OwnSpace, ownSpace } from './own-space.ts'

export type BareNode = {
  readonly name: string
  readonly address: string
  /** Prefix of its pods' addresses: `10.244.N.`, `fd00:10:244:N::`. */
  readonly pods: string
  readonly space: OwnSpace
  /** A program on the network of the node itself. */
  readonly host: EndpointProgram
  /** A program on the network of a new pod. */
  pod(name: string): Promise<EndpointProgram & { readonly ip: string; readonly inside: OwnSpace }>
  /** What the rules of Services become with these Services, by a change or as a whole. `silent`: nodes that do not answer it. */
  apply(services: readonly ServiceState[], whole?: boolean, silent?: readonly string[]): Promise<void>
  /** What other rules become, such as those of policies, once there are rules of Services. */
  applyOthers(rules: RuleSet): Promise<void>
}

type Ending = Parameters<typeof ownSpace>[0]

/** The addresses of one family. What ends with a dot or colon is the beginning of an address. */
export type AddressPlan = {
  readonly family: RuleFamily
  readonly link: string
  readonly linkBits: number
  readonly podRange: string
  /** Address prefix of the pods of a node. */
  readonly pods: (node: number) => string
  readonly podBits: number
  readonly serviceRange: string
  /** Range of load balancer addresses. */
  readonly balancerRange: string
  /** Forwards packets, and passes those between ports of a bridge through the rules. */
  readonly settings: readonly string[]
}

export const ipv4Plan: AddressPlan = {
  ...{ family: ipv4Rules, link: '192.168.7.', linkBits: 24, podRange: '10.244.0.0/16', podBits: 24 },
  ...{ pods: (node) => `10.244.${node}.`, serviceRange: '10.96.0.0/16', balancerRange: '192.0.2.0/24' },
  settings: ['net.ipv4.ip_forward=1', 'net.bridge.bridge-nf-call-iptables=1'],
}
export const ipv6Plan: AddressPlan = {
  ...{ family: ipv6Rules, link: 'fd00:7::', linkBits: 64, podRange: 'fd00:10:244::/56', podBits: 64 },
  ...{ pods: (node) => `fd00:10:244:${node}::`, serviceRange: 'fd00:10:96::/112', balancerRange: '2001:db8::/64' },
  settings: ['net.ipv6.conf.all.forwarding=1', 'net.bridge.bridge-nf-call-ip6tables=1'],
}

export type BareFleet = {
  readonly nodes: readonly [BareNode, BareNode]
  /** On the same link, and no node. It has routes to the ranges of Services and of load balancers through the first node. */
  readonly stranger: EndpointProgram
  readonly strangerAddress: string
}

/** Two nodes, `pi-1` in the zone `hall` and `pi-2` in the zone `yard`, and a stranger. Gone when the test ends. */
export async function bareFleet(t: Ending, plan: AddressPlan = ipv4Plan): Promise<BareFleet> {
  const wire = await ownSpace(t)
  await wire.run('ip', 'link', 'add', 'wire', 'up', 'type', 'bridge')
  const first = await bareNode(t, wire, plan, { number: 1, zone: 'hall' })
  const second = await bareNode(t, wire, plan, { number: 2, zone: 'yard' })
  await first.space.run('ip', 'route', 'add', `${plan.pods(2)}0/${plan.podBits}`, 'via', second.address)
  await second.space.run('ip', 'route', 'add', `${plan.pods(1)}0/${plan.podBits}`, 'via', first.address)
  const outside = await plugIn(t, wire, plan, 9)
  for (const range of [plan.serviceRange, plan.balancerRange]) {
    await outside.run('ip', 'route', 'add', range, 'via', first.address)
  }
  const stranger = endpointProgram(t, 'stranger', outside.name, hostOf(plan))
  return { nodes: [first, second], stranger, strangerAddress: `${plan.link}9` }
}

function hostOf({ family }: AddressPlan) {
  return family.family === 'IPv4' ? '0.0.0.0' : '::'
}

async function plugIn(t: Ending, wire: OwnSpace, plan: AddressPlan, number: number): Promise<OwnSpace> {
  const space = await ownSpace(t)
  await cable(wire, `to-${number}`, space, 'eth0', ['master', 'wire'])
  await addAddress(space, `${plan.link}${number}/${plan.linkBits}`, 'eth0')
  return space
}

/** IPv6 without duplicate address detection, during which an address is not used. */
async function addAddress(space: OwnSpace, address: string, device: string) {
  await space.run('ip', 'address', 'add', address, 'dev', device, ...(address.includes(':') ? ['nodad'] : []))
}

/** Both ends are up, and the bridge forwards between them. `options`: of the end in `from`. */
async function cable(from: OwnSpace, near: string, to: OwnSpace, far: string, options: readonly string[]) {
  await from.run('ip', 'link', 'add', near, 'type', 'veth', 'peer', 'name', far, 'netns', to.name)
  await from.run('ip', 'link', 'set', near, ...options, 'up')
  await to.run('ip', 'link', 'set', far, 'up')
  await portForwards(near, from.name)
}

type Numbered = { readonly number: number; readonly zone: string }

async function bareNode(t: Ending, wire: OwnSpace, plan: AddressPlan, { number, zone }: Numbered): Promise<BareNode> {
  const { family, link, podBits } = plan
  const space = await plugIn(t, wire, plan, number)
  const [name, address, pods] = [`pi-${number}`, `${link}${number}`, plan.pods(number)]
  await space.run('ip', 'route', 'add', 'default', 'via', `${link}254`)
  await space.run('ip', 'link', 'add', 'pods', 'address', bridgeMac, 'up', 'type', 'bridge')
  await addAddress(space, `${pods}1/${podBits}`, 'pods')
  await space.run('sysctl', '-qw', ...plan.settings)
  const table = nftTable(family, await space.tool('nft'))
  const ranges = { clusterCIDR: plan.podRange, serviceCIDR: plan.serviceRange }
  const place = { nodeName: name, zone, ...ranges, addresses: [address], family }
  const rules = rulesOfServices(place)
  let applied: RuleSet | undefined
  let others = noRules
  let last = 1
  return {
    name,
    address,
    pods,
    space,
    host: endpointProgram(t, name, space.name, hostOf(plan)),
    async pod(podName) {
      const inside = await ownSpace(t)
      const ip = `${pods}${++last}`
      const port = `v${randomBytes(4).toString('hex')}`
      await cable(space, port, inside, 'eth0', ['master', 'pods'])
      await commandOrThrow('bridge', ['-n', space.name, 'link', 'set', 'dev', port, 'hairpin', 'on'])
      await addAddress(inside, `${ip}/${podBits}`, 'eth0')
      await inside.run('ip', 'route', 'add', 'default', 'via', `${pods}1`)
      return { ...endpointProgram(t, podName, inside.name, hostOf(plan)), ip, inside }
    },
    async apply(services, whole = false, silentNodes = []) {
      const rulesNow = silentNodes.length === 0 ? rules : rulesOfServices({ ...place, silentNodes })
      const after = rulesNow(new Map(services.map((one) => [`${one.namespace}/${one.name}`, one])))
      const before = applied
      applied = after
      const { commands, retired } =
        before === undefined || whole
          ? allRules(await table.list(), [baseRules(family), after, others], family)
          : ruleChanges([{ before, after }], family)
      if (commands !== '') await table.apply(commands)
      if (retired.length > 0) await table.apply(chainDeletion(retired, family))
    },
    async applyOthers(after) {
      const before = others
      others = after
      const { commands, retired } = ruleChanges([{ before, after }], family)
      if (commands !== '') await table.apply(commands)
      if (retired.length > 0) await table.apply(chainDeletion(retired, family))
    },
  }
}

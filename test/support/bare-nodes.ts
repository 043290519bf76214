/** Nodes without an engine or an agent: network namespaces on one link, with a bridge for pods each, and routes to each other's. */
import { randomBytes } from 'node:crypto'
import { nftTable } from '../../agent/adapters/network/nft.ts'
import { baseRules } from '../../agent/network/base-rules.ts'
import { allRules, chainDeletion, ruleChanges } from '../../agent/network/rule-changes.ts'
import type { RuleSet } from '../../agent/network/rule-set.ts'
import { rulesOfServices } from '../../agent/network/services/rules-of-services.ts'
import type { ServiceState } from '../../api/network/service-endpoints.ts'
import { type EndpointProgram, endpointProgram } from './endpoint-programs.ts'
import { commandOrThrow } from './machine-commands.ts'
import { type OwnSpace, ownSpace } from './own-space.ts'

export type BareNode = {
  readonly name: string
  readonly address: string
  /** Of its pods: `10.244.N`. */
  readonly pods: string
  readonly space: OwnSpace
  /** A program on the network of the node itself. */
  readonly host: EndpointProgram
  /** A program on the network of a new pod. */
  pod(name: string): Promise<EndpointProgram & { readonly ip: string }>
  /** What the rules of Services become with these Services, by a change or as a whole. `silent`: nodes that do not answer it. */
  apply(services: readonly ServiceState[], whole?: boolean, silent?: readonly string[]): Promise<void>
}

type Ending = Parameters<typeof ownSpace>[0]

export const serviceRange = '10.96.0.0/16'
/** Of the addresses of load balancers. */
const balancerRange = '192.0.2.0/24'
const podRange = '10.244.0.0/16'
const link = '192.168.7'

export type BareFleet = {
  readonly nodes: readonly [BareNode, BareNode]
  /** On the same link, and no node. It has routes to the ranges of Services and of load balancers through the first node. */
  readonly stranger: EndpointProgram
  readonly strangerAddress: string
}

/** Two nodes, `pi-1` in the zone `hall` and `pi-2` in the zone `yard`, and a stranger. Gone when the test ends. */
export async function bareFleet(t: Ending): Promise<BareFleet> {
  const wire = await ownSpace(t)
  await wire.run('ip', 'link', 'add', 'wire', 'up', 'type', 'bridge')
  const first = await bareNode(t, wire, 1, 'hall')
  const second = await bareNode(t, wire, 2, 'yard')
  await first.space.run('ip', 'route', 'add', '10.244.2.0/24', 'via', second.address)
  await second.space.run('ip', 'route', 'add', '10.244.1.0/24', 'via', first.address)
  const outside = await plugIn(t, wire, 9)
  for (const range of [serviceRange, balancerRange]) {
    await outside.run('ip', 'route', 'add', range, 'via', first.address)
  }
  const stranger = endpointProgram(t, 'stranger', outside.name)
  return { nodes: [first, second], stranger, strangerAddress: `${link}.9` }
}

async function plugIn(t: Ending, wire: OwnSpace, number: number): Promise<OwnSpace> {
  const space = await ownSpace(t)
  await cable(wire, `to-${number}`, space, 'eth0', ['master', 'wire'])
  await space.run('ip', 'address', 'add', `${link}.${number}/24`, 'dev', 'eth0')
  return space
}

/** Both ends are up. `options`: of the end in `from`. */
async function cable(from: OwnSpace, near: string, to: OwnSpace, far: string, options: readonly string[]) {
  await from.run('ip', 'link', 'add', near, 'type', 'veth', 'peer', 'name', far, 'netns', to.name)
  await from.run('ip', 'link', 'set', near, ...options, 'up')
  await to.run('ip', 'link', 'set', far, 'up')
}

async function bareNode(t: Ending, wire: OwnSpace, number: number, zone: string): Promise<BareNode> {
  const space = await plugIn(t, wire, number)
  const [name, address, pods] = [`pi-${number}`, `${link}.${number}`, `10.244.${number}`]
  await space.run('ip', 'route', 'add', 'default', 'via', `${link}.254`)
  await space.run('ip', 'link', 'add', 'pods', 'up', 'type', 'bridge')
  await space.run('ip', 'address', 'add', `${pods}.1/24`, 'dev', 'pods')
  await space.run('sysctl', '-qw', 'net.ipv4.ip_forward=1', 'net.bridge.bridge-nf-call-iptables=1')
  const table = nftTable(await space.tool('nft'))
  const place = { nodeName: name, zone, clusterCIDR: podRange, serviceCIDR: serviceRange, addresses: [address] }
  const rules = rulesOfServices(place)
  let applied: RuleSet | undefined
  let last = 1
  return {
    name,
    address,
    pods,
    space,
    host: endpointProgram(t, name, space.name),
    async pod(podName) {
      const inside = await ownSpace(t)
      const ip = `${pods}.${++last}`
      const port = `v${randomBytes(4).toString('hex')}`
      await cable(space, port, inside, 'eth0', ['master', 'pods'])
      await commandOrThrow('bridge', ['-n', space.name, 'link', 'set', 'dev', port, 'hairpin', 'on'])
      await inside.run('ip', 'address', 'add', `${ip}/24`, 'dev', 'eth0')
      await inside.run('ip', 'route', 'add', 'default', 'via', `${pods}.1`)
      return { ...endpointProgram(t, podName, inside.name), ip }
    },
    async apply(services, whole = false, silentNodes = []) {
      const rulesNow = silentNodes.length === 0 ? rules : rulesOfServices({ ...place, silentNodes })
      const after = rulesNow(new Map(services.map((one) => [`${one.namespace}/${one.name}`, one])))
      const before = applied
      applied = after
      const { commands, retired } =
        before === undefined || whole
          ? allRules(await table.list(), [baseRules, after])
          : ruleChanges([{ before, after }])
      if (commands !== '') await table.apply(commands)
      if (retired.length > 0) await table.apply(chainDeletion(retired))
    },
  }
}

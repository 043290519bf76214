/**
 * The rules of host ports at IPv6 addresses. Docker's proxy, which opens those of IPv4, would give a client the address of the node,
 * which policies let pass. Of IPv4 there are rules for the port of the node's name server, which Docker cannot open beside it.
 */
import { nodeDnsAddress } from '../../../api/network/cluster-dns.ts'
import { isOpenAtIPv6, meetsNameServer, whyUnreachable } from '../../../api/network/host-port-address.ts'
import { canonicalIPv6, hostPort, type IPFamily } from '../../../api/text/ip-address.ts'
import type { LocalPod, PodHostPort } from '../policies/policy-rules.ts'
import { inNames, ipv4Rules, ipv6Rules, type RuleFamily } from '../rule-family.ts'
import { noRules, type RuleChain, type RuleElements, type RuleSet } from '../rule-set.ts'

/** `pods`: those for which the rules were made, by UID. */
export type HostPortRules = RuleSet & { readonly pods: ReadonlyMap<string, LocalPod> }

/** Those of the pod that rules lead to it; none of a pod without an IPv6 address. */
export function portsOfIPv6({ ipv6, hostPorts = [] }: LocalPod): readonly PodHostPort[] {
  if (ipv6 === undefined) return []
  return hostPorts.filter(({ hostIP }) => isOpenAtIPv6(hostIP) && whyUnreachable(hostIP) === undefined)
}

/** Those of the pod that IPv4 rules lead to it: each at all addresses of the node. */
export function portsOfIPv4({ hostPorts = [] }: LocalPod): readonly PodHostPort[] {
  return hostPorts.filter(({ port, hostIP }) => meetsNameServer(port, hostIP))
}

type PortFamily = {
  readonly rules: RuleFamily
  readonly portsOf: (pod: LocalPod) => readonly PodHostPort[]
  readonly addressOf: (pod: LocalPod) => string | undefined
  /** Addresses of the machine at which they are not open. */
  readonly exceptions: string
}
const portFamilies: Readonly<Record<IPFamily, PortFamily>> = {
  IPv4: {
    rules: ipv4Rules,
    portsOf: portsOfIPv4,
    addressOf: ({ ip }) => ip,
    exceptions: `{ ${ipv4Rules.loopback}, ${nodeDnsAddress} }`,
  },
  IPv6: { rules: ipv6Rules, portsOf: portsOfIPv6, addressOf: ({ ipv6 }) => ipv6, exceptions: ipv6Rules.loopback },
}

/** `pods`: by UID. Where two have one port and address, the later one gets the connections. Without such ports there are no rules at all. */
export function hostPortRules(pods: ReadonlyMap<string, LocalPod>, family: IPFamily): HostPortRules {
  const { rules, portsOf, addressOf } = portFamilies[family]
  const chains = new Map<string, RuleChain>()
  const everywhere = new Map<string, string>()
  const atOne = new Map<string, string>()
  const itself = new Map<string, string>()
  for (const pod of pods.values())
    for (const { protocol, port, containerPort, hostIP } of portsOf(pod)) {
      const ip = addressOf(pod) ?? ''
      const address = addressOfPort(hostIP)
      const key = `${protocol} . ${port}`
      const chain = `host-port/${address === undefined ? '' : `${inNames(address)}/`}${protocol}/${port}`
      chains.set(chain, { rules: [`meta l4proto ${protocol} dnat to ${hostPort(ip, containerPort)}`] })
      if (address === undefined) everywhere.set(key, `goto ${chain}`)
      else atOne.set(`${address} . ${key}`, `goto ${chain}`)
      itself.set(`${ip} . ${ip}`, '')
    }
  if (chains.size === 0) return { ...noRules, pods }
  return {
    chains: new Map([...entryChains(portFamilies[family]), ...chains]),
    sets: new Map([
      ['host-ports', { kind: 'map', type: `${byPort} : verdict`, elements: everywhere }],
      ['host-port-ips', { kind: 'map', type: `${rules.address} . ${byPort} : verdict`, elements: atOne }],
      ['host-port-pods', { kind: 'set', type: `${rules.address} . ${rules.address}`, elements: itself }],
    ] satisfies [string, RuleElements][]),
    pods,
  }
}

const byPort = 'inet_proto . inet_service'

/** The IPv6 address of a `hostIP`; undefined: each IPv6 address of the node. */
export function addressOfPort(hostIP: string): string | undefined {
  const address = canonicalIPv6(hostIP)
  return address === '::' ? undefined : address
}

/**
 * Next to the chains of the other parts (base-rules.ts): a Service comes first, and a connection that it has translated is not translated
 * again. An address that this node does not have belongs to another machine, and is left alone.
 */
function entryChains({ rules: { ip }, exceptions }: PortFamily): readonly (readonly [string, RuleChain])[] {
  const toThisNode = `fib daddr type local ${ip} daddr != ${exceptions}`
  const translating: readonly string[] = [
    `${toThisNode} ${ip} daddr . meta l4proto . th dport vmap @host-port-ips`,
    `${toThisNode} meta l4proto . th dport vmap @host-ports`,
  ]
  return [
    ['host-ports-prerouting', { base: { type: 'nat', hook: 'prerouting', priority: -99 }, rules: translating }],
    ['host-ports-output', { base: { type: 'nat', hook: 'output', priority: -99 }, rules: translating }],
    [
      'host-ports-postrouting',
      {
        base: { type: 'nat', hook: 'postrouting', priority: 99 },
        // A pod that reached itself would answer itself directly, past the translation.
        rules: [`ct status dnat ${ip} saddr . ${ip} daddr @host-port-pods masquerade fully-random`],
      },
    ],
  ]
}

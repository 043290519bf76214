/** The choice of the node's address, in the kubelet's order without a cloud provider (pkg/kubelet/nodestatus/setters.go, NodeAddress). */
import { BlockList, isIP } from 'node:net'
import type { NodeAddress } from '../../../api/node.ts'

export type Interface = { readonly name: string; readonly addresses: readonly string[] }

export type AddressFacts = {
  /** The configured addresses, the primary one first; none: choose one. */
  readonly nodeIPs: readonly string[]
  readonly nodeName: string
  readonly hostname: string
  /** The addresses of the node's name, from the name server or /etc/hosts. */
  readonly resolved: readonly string[]
  readonly interfaces: readonly Interface[]
  /** Interfaces with a default route, the preferred first. */
  readonly defaultInterfaces: readonly string[]
}

export type ChosenAddress = { readonly ips: readonly string[] } | { readonly because: string }

export function chooseNodeIP(facts: AddressFacts): ChosenAddress {
  const { nodeIPs, hostname, resolved, interfaces, defaultInterfaces } = facts
  const own = new Set(interfaces.flatMap(({ addresses }) => addresses))
  if (nodeIPs.length > 0) {
    const absent = nodeIPs.find((ip) => !own.has(ip))
    if (absent === undefined) return { ips: nodeIPs }
    return { because: `nodeIP ${absent} is on no interface of this machine (${[...own].join(', ')})` }
  }
  if (isIP(hostname) !== 0) return { ips: [hostname] }
  const usable = (addresses: readonly string[]) => addresses.filter((ip) => own.has(ip) && isReachable(ip))
  const named = preferred(usable(resolved))
  if (named !== undefined) return { ips: [named] }
  for (const name of defaultInterfaces) {
    const ip = preferred(usable(interfaces.find((one) => one.name === name)?.addresses ?? []))
    if (ip !== undefined) return { ips: [ip] }
  }
  return { because: 'No address: the node name resolves to no address of this machine, and there is no default route' }
}

/** An IPv6 address of an interface, as the kernel has it. */
export type IPv6Address = {
  readonly interface: string
  /** In canonical form. */
  readonly address: string
  /** Temporary, deprecated or not proven to be the only one of its link (RFC 4862): it may change at any time. */
  readonly isPassing: boolean
}

/**
 * That which a node of a fleet with IPv6 has beside `ip`, on the same interface: a unique local one (RFC 4193) before a global one, which
 * changes with the provider; `last`, while it is there; else the first by its text. Undefined: there is none.
 */
export function otherAddress(
  ip: string,
  interfaces: readonly Interface[],
  all: readonly IPv6Address[],
  last?: string,
): string | undefined {
  const link = isIP(ip) === 4 ? interfaces.find(({ addresses }) => addresses.includes(ip))?.name : undefined
  const lasting = all.filter((one) => one.interface === link && !one.isPassing).map(({ address }) => address)
  const local = lasting.filter((address) => /^f[cd]/.test(address))
  const global = lasting.filter((address) => /^[23][0-9a-f]{3}:/.test(address))
  const best = local.length > 0 ? local : global
  return best.find((address) => address === last) ?? best.sort()[0]
}

export function nodeAddresses(ips: readonly string[], hostname: string): readonly NodeAddress[] {
  return [
    ...ips.map((address): NodeAddress => ({ type: 'InternalIP', address })),
    { type: 'Hostname', address: hostname },
  ]
}

/** The first IPv4 address, else the first address. */
function preferred(addresses: readonly string[]): string | undefined {
  return addresses.find((ip) => isIP(ip) === 4) ?? addresses[0]
}

const unreachable = new BlockList()
unreachable.addSubnet('127.0.0.0', 8)
unreachable.addSubnet('169.254.0.0', 16)
unreachable.addSubnet('224.0.0.0', 4)
unreachable.addAddress('0.0.0.0')
unreachable.addAddress('::1', 'ipv6')
unreachable.addAddress('::', 'ipv6')
unreachable.addSubnet('fe80::', 10, 'ipv6')
unreachable.addSubnet('ff00::', 8, 'ipv6')

/** Neither loopback, link-local nor multicast. */
function isReachable(ip: string): boolean {
  return !unreachable.check(ip, isIP(ip) === 6 ? 'ipv6' : 'ipv4')
}

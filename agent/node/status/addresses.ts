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

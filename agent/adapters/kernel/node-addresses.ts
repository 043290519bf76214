/** The node's addresses, from the interfaces, the routing table and the name server. */
import { lookup } from 'node:dns/promises'
import { readFileSync } from 'node:fs'
import { networkInterfaces } from 'node:os'
import { join } from 'node:path'
import type { NodeAddress } from '../../../api/node.ts'
import { formatIPv6 } from '../../../api/text/ipv6-range.ts'
import type { Clock } from '../../../daemon/clock.ts'
import { within } from '../../../daemon/deadline.ts'
import {
  chooseNodeIP,
  type Interface,
  type IPv6Address,
  nodeAddresses,
  otherAddress,
} from '../../node/status/addresses.ts'
import { textOf } from './kernel-files.ts'
import { hasOwnAddress } from './own-address.ts'

export type AddressNeeds = {
  readonly root: string
  readonly clock: Clock
  readonly interfaces?: () => readonly Interface[]
  readonly resolve?: (name: string) => Promise<readonly string[]>
  /** Whether the machine has this address. */
  readonly isOwn?: (address: string) => Promise<boolean>
  /** The fleet has IPv6: an IPv6 address is reported beside the IPv4 address. */
  readonly withIPv6?: () => boolean
}

export type AddressSettings = {
  readonly nodeName: string
  readonly hostname: string
  readonly nodeIPs: readonly string[]
}

const resolveMs = 2_000
/** Interval of name server queries: names change rarely, and the server may be remote. */
const resolvedForMs = 5 * 60_000
/**
 * Listing all interfaces takes long on a node with many pods, because each pod has one. Until this time the list is renewed only
 * when an IPv4 route or an IPv6 address changed, or the machine has lost the address: DHCP may assign another one of the same network,
 * which leaves all routes as they were.
 */
const chosenForMs = 60_000

/** Rejects with the reason when the machine has no address usable for a node. */
export function hostAddresses(needs: AddressNeeds, settings: AddressSettings): () => Promise<readonly NodeAddress[]> {
  const { root, clock, interfaces = machineInterfaces, resolve = addressesOf, isOwn = hasOwnAddress } = needs
  const { withIPv6 = () => false } = needs
  const { nodeName, hostname, nodeIPs } = settings
  let resolved: readonly string[] = []
  let askedMs = Number.NEGATIVE_INFINITY

  const resolvedName = async () => {
    const nowMs = clock.monotonicMs()
    if (nodeIPs.length > 0 || nowMs - askedMs < resolvedForMs) return resolved
    askedMs = nowMs
    // An unresolved name is not an error: most Pis are in no name server.
    resolved = await within(resolveMs, 'No answer from the name server', resolve(nodeName)).catch(() => [])
    return resolved
  }

  let last: ChosenAddresses | undefined

  const isValid = async ({ ips, network, chosenMs }: ChosenAddresses, networkNow: string, nowMs: number) =>
    network === networkNow && nowMs - chosenMs < chosenForMs && (await Promise.all(ips.map(isOwn))).every(Boolean)

  return async () => {
    const ofIPv6 = textOf(join(root, 'proc/net/if_inet6')) ?? ''
    const isDual = withIPv6() && nodeIPs.length === 0
    const network = [textOf(join(root, 'proc/net/route')) ?? '', ofIPv6, isDual].join('\n')
    const nowMs = clock.monotonicMs()
    if (last === undefined || !(await isValid(last, network, nowMs))) {
      const found = interfaces()
      const chosen = chooseNodeIP({
        nodeIPs,
        nodeName,
        hostname,
        resolved: await resolvedName(),
        interfaces: found,
        defaultInterfaces: defaultInterfaces(root),
      })
      const before = last?.ips[1]
      last = undefined
      if ('because' in chosen) throw new Error(chosen.because)
      const [first = ''] = chosen.ips
      const other = isDual ? otherAddress(first, found, ipv6AddressesIn(ofIPv6), before) : undefined
      last = { ips: other === undefined ? chosen.ips : [...chosen.ips, other], network, chosenMs: nowMs }
    }
    return nodeAddresses(last.ips, hostname)
  }
}

/** `network`: the routes and addresses of the machine at that time. */
type ChosenAddresses = { readonly ips: readonly string[]; readonly network: string; readonly chosenMs: number }

function machineInterfaces(): readonly Interface[] {
  return Object.entries(networkInterfaces()).map(([name, addresses = []]) => ({
    name,
    addresses: addresses.map(({ address }) => address),
  }))
}

/** Flags of linux/if_addr.h: IFA_F_TEMPORARY, IFA_F_DADFAILED, IFA_F_DEPRECATED, IFA_F_TENTATIVE. */
const passing = 0x01 | 0x08 | 0x20 | 0x40

/** `/proc/net/if_inet6`: address, index, length, scope, flags and interface, in hexadecimal. */
function ipv6AddressesIn(text: string): readonly IPv6Address[] {
  return text.split('\n').flatMap((line) => {
    const [digits = '', , , , flags = '', name = ''] = line.trim().split(/\s+/)
    if (!/^[0-9a-f]{32}$/.test(digits)) return []
    const address = formatIPv6(BigInt(`0x${digits}`))
    return [{ interface: name, address, isPassing: (Number.parseInt(flags, 16) & passing) !== 0 }]
  })
}

async function addressesOf(name: string): Promise<readonly string[]> {
  return (await lookup(name, { all: true })).map(({ address }) => address)
}

/** Interfaces with a default route, in the kernel's order of preference; IPv4 before IPv6. */
export function defaultInterfaces(root: string): readonly string[] {
  const v4 = rows(join(root, 'proc/net/route'))
    .filter(([, destination, , , , , , mask]) => destination === '00000000' && mask === '00000000')
    .map(([name = '', , , , , , metric]) => ({ name, metric: Number(metric) }))
  const v6 = rows(join(root, 'proc/net/ipv6_route'))
    .filter(([destination, length]) => /^0{32}$/.test(destination ?? '') && length === '00')
    .map((row) => ({ name: row[9] ?? '', metric: Number.parseInt(row[5] ?? '', 16) }))
    .filter(({ name }) => name !== 'lo') // the kernel's own "unreachable"
  const sorted = [v4, v6].flatMap((routes) => routes.toSorted((a, b) => a.metric - b.metric))
  return [...new Set(sorted.map(({ name }) => name))]
}

function rows(path: string): readonly (readonly string[])[] {
  try {
    return readFileSync(path, 'utf8')
      .split('\n')
      .map((line) => line.trim().split(/\s+/))
  } catch {
    return [] // a kernel without IPv6 has no such file
  }
}

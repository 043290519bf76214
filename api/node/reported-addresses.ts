/**
 * Which addresses a node may report for itself and its pods. Endpoints and NetworkPolicies of other nodes have the addresses of pods, and
 * routes those of nodes: a node that reports the address of somebody else would get that one's traffic, or its rights.
 */
import type { Node } from '../node.ts'
import type { Pod, PodStatus } from '../pod.ts'
import { firstRangeOf, rangeHas } from '../text/address-block.ts'
import { withPairedPodIPs } from '../validation/address-pairs.ts'

export type AddressRules = {
  /** With `podNetwork: routed`: the pods of a node have addresses of its `spec.podCIDRs`. Else of a bridge of its engine. */
  readonly isRouted: boolean
  /** Address ranges of the pods of all nodes. */
  readonly podRanges: readonly string[]
  readonly serviceRanges: readonly string[]
}

/** Without a network between nodes: no range is known, and no other node uses the addresses. */
export const bridgeRules: AddressRules = { isRouted: false, podRanges: [], serviceRanges: [] }

const special: { readonly [range: string]: string } = {
  '0.0.0.0/8': 'is not an address of a machine',
  '127.0.0.0/8': 'is a loopback address',
  '169.254.0.0/16': 'is a link-local address',
  '224.0.0.0/4': 'is a multicast address',
  '240.0.0.0/4': 'is not an address of a machine',
  '::/128': 'is not an address of a machine',
  '::1/128': 'is a loopback address',
  '::ffff:0:0/96': 'is an IPv4 address in IPv6 notation',
  'fe80::/10': 'is a link-local address',
  'ff00::/8': 'is a multicast address',
}
const specialRangeOf = firstRangeOf(Object.keys(special))

/** Why packets to this address reach no one machine; undefined: they may. */
export function specialAddressProblem(ip: string): string | undefined {
  const range = specialRangeOf(ip)
  return range && special[range]
}

export function internalIPsOf({ status }: Node): readonly string[] {
  return (status?.addresses ?? []).filter(({ type }) => type === 'InternalIP').map(({ address }) => address)
}

/** Why this is not the InternalIP of a node; undefined: it may be. Whether it is its own is proven by the nodes (docs/decisions/0032). */
export function internalIPProblem(
  ip: string,
  { isRouted, podRanges, serviceRanges }: AddressRules,
): string | undefined {
  const problem = specialAddressProblem(ip)
  if (problem !== undefined || !isRouted) return problem
  if (podRanges.some((range) => rangeHas(range, ip))) return 'is in the range of pods'
  return serviceRanges.some((range) => rangeHas(range, ip)) ? 'is in the range of Services' : undefined
}

/** Why this is not an address of this pod on its node; undefined: it may be. `isOfAnother`: another node has it as InternalIP. */
export function podIPProblem(
  ip: string,
  pod: Pod,
  node: Node | undefined,
  { isRouted }: AddressRules,
  isOfAnother: (ip: string) => boolean,
): string | undefined {
  const problem = specialAddressProblem(ip)
  if (problem !== undefined) return problem
  if (pod.spec.hostNetwork) return hostIPProblem(ip, node)
  if (!isRouted) return isOfAnother(ip) ? 'is the InternalIP of another node' : undefined
  const { podCIDR, podCIDRs = podCIDR ? [podCIDR] : [] } = node?.spec ?? {}
  if (podCIDRs.some((range) => rangeHas(range, ip))) return undefined
  return `is not in the spec.podCIDRs of the node (${podCIDRs.join(', ') || 'none yet'})`
}

export function hostIPProblem(ip: string, node: Node | undefined): string | undefined {
  const own = node === undefined ? [] : internalIPsOf(node)
  return own.includes(ip) ? undefined : `is not an InternalIP of the node (${own.join(', ') || 'none yet'})`
}

/** An address that is not used, with its field: `podIP 127.0.0.1 is a loopback address`. */
export type WrongAddress = string

export type AdmittedStatus<T> = { readonly status: T; readonly wrong: readonly WrongAddress[] }

/** The status without the addresses that the pod cannot have. */
export function withOwnAddresses(
  status: PodStatus,
  pod: Pod,
  node: Node | undefined,
  rules: AddressRules,
  isOfAnother: (ip: string) => boolean,
): AdmittedStatus<PodStatus> {
  const wrong = new Set<WrongAddress>()
  const isFine = (field: string, ip: string, problem: string | undefined): boolean => {
    if (problem !== undefined) wrong.add(`${field} ${ip} ${problem}`)
    return problem === undefined
  }
  const isPods = (ip: string) => isFine('podIP', ip, podIPProblem(ip, pod, node, rules, isOfAnother))
  const isHosts = (ip: string) => isFine('hostIP', ip, hostIPProblem(ip, node))
  const { podIP, podIPs, hostIP, hostIPs, ...others } = status
  const kept: PodStatus = {
    ...others,
    ...(hostIP !== undefined && (hostIP === '' || isHosts(hostIP)) && { hostIP }),
    ...(hostIPs && { hostIPs: hostIPs.filter(({ ip }) => isHosts(ip)) }),
    ...(podIP !== undefined && (podIP === '' || isPods(podIP)) && { podIP }),
    ...(podIPs && { podIPs: podIPs.filter(({ ip }) => isPods(ip)) }),
  }
  return wrong.size === 0 ? { status, wrong: [] } : { status: withPairedPodIPs(kept), wrong: [...wrong] }
}

/** The status of a Node without InternalIPs that no node can have. */
export function withPossibleAddresses<S extends Pick<NonNullable<Node['status']>, 'addresses'>>(
  status: S,
  rules: AddressRules,
): AdmittedStatus<S> {
  const wrong: WrongAddress[] = []
  const addresses = (status.addresses ?? []).filter(({ type, address }) => {
    const problem = type === 'InternalIP' ? internalIPProblem(address, rules) : undefined
    if (problem !== undefined) wrong.push(`InternalIP ${address} ${problem}`)
    return problem === undefined
  })
  return wrong.length === 0 ? { status, wrong } : { status: { ...status, addresses }, wrong }
}

/** Lists of addresses or ranges with at most one of each IP family: the first is primary (pkg/apis/core/validation/validation.go). */
import type { Node } from '../node.ts'
import type { Pod, PodStatus } from '../pod.ts'
import { duplicate, invalid, type Problem } from '../problem.ts'
import { parseAddressBlock } from '../text/address-block.ts'
import { ipVersion } from '../text/ip-address.ts'
import { ipProblems } from './endpoints-validation.ts'
import { repeatedPlaces } from './repeated.ts'

/** `podCIDR` is the first of `podCIDRs`, and wins where they differ (Convert_v1_NodeSpec_To_core_NodeSpec). */
export function withPairedRanges(node: Node): Node {
  const { podCIDR, podCIDRs = [] } = node.spec ?? {}
  const first = podCIDR || podCIDRs[0]
  if (first === undefined) return node
  return { ...node, spec: { ...node.spec, podCIDR: first, podCIDRs: podCIDRs[0] === first ? podCIDRs : [first] } }
}

export function nodeRangeProblems({ spec = {} }: Node): readonly Problem[] {
  const { podCIDRs = [] } = spec
  const field = 'spec.podCIDRs'
  const blocks = podCIDRs.map(parseAddressBlock)
  const wrong = podCIDRs.flatMap((range, index) =>
    blocks[index] === undefined
      ? [invalid(`${field}[${index}]`, range, 'must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)')]
      : [],
  )
  if (wrong.length > 0) return wrong
  return [
    ...(areOfDifferentFamilies(blocks.map((block) => block?.version))
      ? []
      : [invalid(field, podCIDRs, 'may specify no more than one CIDR for each IP family')]),
    ...repeated(field, podCIDRs),
  ]
}

/** As Kubernetes stores it: `podIP` is the first of `podIPs`, and wins where they differ (Convert_v1_PodStatus_To_core_PodStatus). */
export function withPairedPodIPs(status: PodStatus): PodStatus {
  const { podIP, podIPs = [] } = status
  const first = podIP || podIPs[0]?.ip
  if (first === undefined) return status
  return { ...status, podIP: first, podIPs: podIPs[0]?.ip === first ? podIPs : [{ ip: first }] }
}

/** validatePodIPs and validateHostIPs. */
export function podAddressProblems({ status }: Pod): readonly Problem[] {
  const { hostIP = '', hostIPs = [], podIPs = [] } = status ?? {}
  const [first] = hostIPs
  return [
    ...addressProblems('status.podIPs', podIPs),
    ...(first === undefined || first.ip === hostIP
      ? []
      : [invalid('status.hostIPs[0].ip', first.ip, 'must be equal to `hostIP`')]),
    ...addressProblems('status.hostIPs', hostIPs),
  ]
}

function addressProblems(field: string, addresses: readonly { readonly ip: string }[]): readonly Problem[] {
  const wrong = addresses.flatMap(({ ip }, index) => ipProblems(`${field}[${index}]`, ip))
  if (wrong.length > 0) return wrong
  const values = addresses.map(({ ip }) => ({ IP: ip }))
  return [
    ...(areOfDifferentFamilies(addresses.map(({ ip }) => ipVersion(ip)))
      ? []
      : [invalid(field, values, 'may specify no more than one IP for each IP family')]),
    ...repeated(field, values),
  ]
}

function areOfDifferentFamilies(versions: readonly (4 | 6 | undefined)[]): boolean {
  return new Set(versions).size === versions.length
}

function repeated(field: string, values: readonly unknown[]): readonly Problem[] {
  const places = repeatedPlaces(values.map((value) => JSON.stringify(value)))
  return values.flatMap((value, index) => (places.has(index) ? [duplicate(`${field}[${index}]`, value)] : []))
}

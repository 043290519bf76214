/** The ranges of a fleet whose pods and Services have addresses of both IP families. */
import { parseAddressBlock } from '../text/address-block.ts'
import {
  formatIPv6Range,
  type IPv6Range,
  ipv6RangesOverlap,
  isRoutableIPv6,
  parseIPv6Range,
} from '../text/ipv6-range.ts'

export type IPv6Ranges = { readonly clusterCIDR: string; readonly serviceCIDR: string }

/** Prefix length of a node's pod range: Kubernetes' default (`--node-cidr-mask-size-ipv6`). */
export const ipv6NodeMaskSize = 64

const ranges = {
  // At most 2^16 nodes, as Kubernetes (clusterSubnetMaxDiff).
  clusterCIDR: { least: ipv6NodeMaskSize - 16, most: ipv6NodeMaskSize - 1, example: 'fd00:10:244::/56' },
  // kube-apiserver accepts no more than 20 bits, and no fewer than eight addresses.
  serviceCIDR: { least: 108, most: 125, example: 'fd00:10:96::/112' },
} as const

type Field = keyof typeof ranges

export type RangePair = { readonly ipv4?: string; readonly ipv6?: string; readonly problem?: string }

/** What a setting names: one IPv4 range, or that and one of IPv6 behind a comma. `usual`: an IPv4 range, for the message. */
export function rangePair(field: Field, text: string, usual: string): RangePair {
  const parts = text.split(',').map((part) => part.trim())
  const [first = '', second] = parts
  const [version, secondVersion] = parts.map((part) => parseAddressBlock(part)?.version)
  const pair = `${usual},${ranges[field].example}`
  const refused = (because: string) => ({ problem: `${field}: ${JSON.stringify(text)} ${because} (like ${pair})` })
  if (parts.length > 2) return refused('must have at most one range of each IP family')
  if (second === undefined) {
    return version === 6
      ? refused('has no IPv4 range, which every pod and Service has an address of: set it before that of IPv6')
      : { ipv4: first }
  }
  if (version === 6 && secondVersion === 4) {
    return refused('has IPv6 first, and the first address of pods and Services is one of IPv4: change the order')
  }
  if (secondVersion !== 6) return refused('must be an IPv4 range, or one of IPv4 and one of IPv6')
  return { ipv4: first, ipv6: second }
}

/** In canonical form, or what is wrong with them; neither: the fleet has no IPv6 addresses. */
export function ipv6Ranges(given: { readonly [F in Field]: string | undefined }): {
  readonly ranges?: IPv6Ranges
  readonly problems: readonly string[]
} {
  const { clusterCIDR, serviceCIDR } = given
  if (clusterCIDR === undefined && serviceCIDR === undefined) return { problems: [] }
  if (clusterCIDR === undefined) return { problems: [onlyOne('serviceCIDR', 'clusterCIDR')] }
  if (serviceCIDR === undefined) return { problems: [onlyOne('clusterCIDR', 'serviceCIDR')] }
  const [pods, services] = [rangeOf('clusterCIDR', clusterCIDR), rangeOf('serviceCIDR', serviceCIDR)]
  const wrong = [pods, services].filter((one) => typeof one === 'string')
  if (typeof pods === 'string' || typeof services === 'string') return { problems: wrong }
  if (ipv6RangesOverlap(pods, services)) {
    return { problems: [`serviceCIDR: ${serviceCIDR} must not overlap clusterCIDR ${clusterCIDR}`] }
  }
  return { ranges: { clusterCIDR: formatIPv6Range(pods), serviceCIDR: formatIPv6Range(services) }, problems: [] }
}

function onlyOne(has: Field, lacks: Field): string {
  return `${has} has an IPv6 range and ${lacks} has none: add one (like ${ranges[lacks].example}) or remove that of ${has}`
}

/** The range, or what is wrong with it. */
function rangeOf(field: Field, text: string): IPv6Range | string {
  const { least, most, example } = ranges[field]
  const range = parseIPv6Range(text)
  if (range !== undefined && range.bits >= least && range.bits <= most && isRoutableIPv6(range.first)) return range
  const wanted = `must be an IPv6 range of /${least} to /${most}, global or unique local`
  return `${field}: ${JSON.stringify(text)} ${wanted} (like ${example})`
}

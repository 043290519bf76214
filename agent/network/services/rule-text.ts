/** Text from messages that becomes a part of a rule: what is not exactly of the expected form is left out. */
import { dnsLabelProblem } from '../../../api/names.ts'
import { parseCidr } from '../../../api/text/cidr.ts'
import { isIPv4 } from '../../../api/text/ip-address.ts'

/** Addresses of IPv6 among them are not for this table. */
export function ipv4Of(addresses: readonly string[] | undefined): readonly string[] {
  return [...new Set(addresses?.filter(isIPv4))]
}

/** The IPv4 ranges among `ranges`. kube-proxy accepts blanks around them, as the API does. */
export function ipv4RangesOf(ranges: readonly string[] | undefined): readonly string[] {
  const trimmed = (ranges ?? []).map((range) => range.trim())
  return [...new Set(trimmed.filter((range) => parseCidr(range) !== undefined && isIPv4(range.replace(/\/.*/, ''))))]
}

/** Names of namespaces and Services are DNS labels: together they fit in the 255 characters of a chain's name. */
export function isLabel(text: string): boolean {
  return dnsLabelProblem(text) === undefined
}

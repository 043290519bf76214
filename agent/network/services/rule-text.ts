/** Text from messages that becomes a part of a rule: what is not exactly of the expected form is left out. */
import { cidrsOverlap, parseCidr } from '../../../api/text/cidr.ts'

/** An address as nft prints it, without leading zeros. */
const address = /^(?:(?:25[0-5]|2[0-4]\d|1\d\d|[1-9]?\d)(?:\.(?!$)|$)){4}$/

export function isIPv4(text: string): boolean {
  return address.test(text)
}

/** Addresses of IPv6 among them are not for this table. */
export function ipv4Of(addresses: readonly string[] | undefined): readonly string[] {
  return [...new Set(addresses?.filter(isIPv4))]
}

/** The IPv4 ranges among `ranges`. kube-proxy accepts blanks around them, as the API does. */
export function ipv4RangesOf(ranges: readonly string[] | undefined): readonly string[] {
  const trimmed = (ranges ?? []).map((range) => range.trim())
  return [...new Set(trimmed.filter((range) => parseCidr(range) !== undefined && isIPv4(range.replace(/\/.*/, ''))))]
}

const label = /^[a-z0-9](?:[-a-z0-9]{0,61}[a-z0-9])?$/

/** Names of namespaces and Services are DNS labels: together they fit in the 255 characters of a chain's name. */
export function isLabel(text: string): boolean {
  return label.test(text)
}

/** Whether the range has the address; both of IPv4. */
export function isWithin(ip: string, range: string): boolean {
  const [one, other] = [parseCidr(`${ip}/32`), parseCidr(range)]
  return one !== undefined && other !== undefined && cidrsOverlap(one, other)
}

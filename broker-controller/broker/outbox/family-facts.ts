/** How nodes are sent the addresses of each IP family; those of the other one are left out. */
import { hasIPv6Range, parseAddressBlock } from '../../../api/text/address-block.ts'
import { canonicalIPv6, type IPFamily, isIPv4 } from '../../../api/text/ip-address.ts'
import { formatIPv6Range, maskedIPv6Range } from '../../../api/text/ipv6-range.ts'

export type FamilyFacts = {
  readonly family: IPFamily
  /** The address as nodes read it; undefined: it is not an address of this family. */
  address(text: string): string | undefined
  /** The range as nodes read it, without leading zeros and bits beyond its mask, which kube-apiserver accepts. */
  range(text: string): string | undefined
  /** Whether the text is a range that means no client of this family. */
  isForeignRange(text: string): boolean
  /** A range of no client. */
  readonly noClient: string
}

export const familyFacts: { readonly [family in IPFamily]: FamilyFacts } = {
  IPv4: {
    family: 'IPv4',
    address: (text) => (isIPv4(text) ? text : undefined),
    range(text) {
      const block = parseAddressBlock(text)
      return block?.version === 4 ? `${block.bytes.join('.')}/${block.bits}` : undefined
    },
    isForeignRange: hasIPv6Range,
    noClient: '0.0.0.0/32',
  },
  IPv6: {
    family: 'IPv6',
    address: (text) => native(canonicalIPv6(text)),
    range(text) {
      const range = maskedIPv6Range(text)
      return range && native(formatIPv6Range(range))
    },
    isForeignRange: (text) => parseAddressBlock(text) !== undefined,
    noClient: '::/128',
  },
}

/** No IPv6 packet has an IPv4-mapped address. */
function native(text: string | undefined): string | undefined {
  return text?.includes('.') ? undefined : text
}

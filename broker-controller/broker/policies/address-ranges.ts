/** The addresses of the blocks of a rule, as ranges that do not overlap: what packet filters can look an address up in. */
import type { IPBlock } from '../../../api/network/network-policy.ts'
import { parseAddressBlock } from '../../../api/text/address-block.ts'
import { formatIPv4 } from '../../../api/text/cidr.ts'
import type { IPFamily } from '../../../api/text/ip-address.ts'
import { boundsOfIPv6Range, formatIPv6, maskedIPv6Range } from '../../../api/text/ipv6-range.ts'

/** First and last address, as numbers. */
type Range = readonly [first: bigint, last: bigint]

const families: {
  readonly [family in IPFamily]: { rangeOf(text: string): Range | undefined; format(address: bigint): string }
} = {
  IPv4: {
    rangeOf(text) {
      const block = parseAddressBlock(text)
      if (block?.version !== 4) return undefined
      const first = block.bytes.reduce((sum, byte) => (sum << 8n) | BigInt(byte), 0n)
      return [first, first + (1n << BigInt(32 - block.bits)) - 1n]
    },
    format: (address) => formatIPv4(Number(address)),
  },
  IPv6: {
    rangeOf(text) {
      const range = maskedIPv6Range(text)
      return range && boundsOfIPv6Range(range)
    },
    format: formatIPv6,
  },
}

/** `10.0.0.0-10.0.0.255`, in order; ranges that touch each other are one. Blocks of the other family have none. */
export function addressRanges(blocks: readonly IPBlock[], family: IPFamily = 'IPv4'): readonly string[] {
  const { format } = families[family]
  const ranges = blocks.flatMap((block) => rangesOf(block, family)).sort(byFirst)
  const joined: Range[] = []
  for (const range of ranges) {
    const last = joined.at(-1)
    if (last === undefined || range[0] > last[1] + 1n) joined.push(range)
    else if (range[1] > last[1]) joined[joined.length - 1] = [last[0], range[1]]
  }
  const usable = family === 'IPv6' ? joined.flatMap(withoutMappedBounds) : joined
  return usable.map(([first, last]) => `${format(first)}-${format(last)}`)
}

function rangesOf({ cidr = '', except = [] }: IPBlock, family: IPFamily): readonly Range[] {
  const { rangeOf } = families[family]
  const whole = rangeOf(cidr)
  if (whole === undefined) return []
  const holes = except.flatMap((text) => {
    const hole = rangeOf(text)
    return hole === undefined ? [] : [hole]
  })
  const found: Range[] = []
  let [next] = whole
  for (const [first, last] of holes.sort(byFirst)) {
    if (first > next) found.push([next, first - 1n])
    if (last >= next) next = last + 1n
  }
  if (next <= whole[1]) found.push([next, whole[1]])
  return found
}

/** `::ffff:0:0/96` */
const mapped: Range = [0xffff_0000_0000n, 0xffff_ffff_ffffn]

/** No IPv6 packet has an IPv4-mapped address, and nodes take none: a range begins behind them, and ends before. */
function withoutMappedBounds([first, last]: Range): readonly Range[] {
  const isMapped = (address: bigint) => address >= mapped[0] && address <= mapped[1]
  const range: Range = [isMapped(first) ? mapped[1] + 1n : first, isMapped(last) ? mapped[0] - 1n : last]
  return range[0] <= range[1] ? [range] : []
}

function byFirst([one]: Range, [other]: Range): number {
  return one < other ? -1 : Number(one > other)
}

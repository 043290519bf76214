/** The IPv4 addresses of the blocks of a rule, as ranges that do not overlap: what packet filters can look an address up in. */
import type { IPBlock } from '../../../api/network/network-policy.ts'
import { parseAddressBlock } from '../../../api/text/address-block.ts'
import { formatIPv4 } from '../../../api/text/cidr.ts'

/** First and last address, as numbers. */
type Range = readonly [first: number, last: number]

/** `10.0.0.0-10.0.0.255`, in order; ranges that touch each other are one. Blocks of IPv6 have none. */
export function addressRanges(blocks: readonly IPBlock[]): readonly string[] {
  const ranges = blocks.flatMap(rangesOf).sort(([one], [other]) => one - other)
  const joined: Range[] = []
  for (const range of ranges) {
    const last = joined.at(-1)
    if (last !== undefined && range[0] <= last[1] + 1)
      joined[joined.length - 1] = [last[0], Math.max(last[1], range[1])]
    else joined.push(range)
  }
  return joined.map(([first, last]) => `${formatIPv4(first)}-${formatIPv4(last)}`)
}

function rangesOf({ cidr = '', except = [] }: IPBlock): readonly Range[] {
  const whole = rangeOf(cidr)
  if (whole === undefined) return []
  const holes = except.flatMap((text) => {
    const hole = rangeOf(text)
    return hole === undefined ? [] : [hole]
  })
  const found: Range[] = []
  let [next] = whole
  for (const [first, last] of holes.sort(([one], [other]) => one - other)) {
    if (first > next) found.push([next, first - 1])
    next = Math.max(next, last + 1)
  }
  if (next <= whole[1]) found.push([next, whole[1]])
  return found
}

function rangeOf(text: string): Range | undefined {
  const block = parseAddressBlock(text)
  if (block?.version !== 4) return undefined
  const first = block.bytes.reduce((sum, byte) => sum * 256 + byte, 0)
  return [first, first + 2 ** (32 - block.bits) - 1]
}

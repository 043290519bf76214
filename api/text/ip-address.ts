/** Recognizes IP addresses in text. */

/** As Kubernetes names them (core/v1 IPFamily). */
export type IPFamily = 'IPv4' | 'IPv6'
export const ipFamilies: readonly IPFamily[] = ['IPv4', 'IPv6']
export type ByFamily<T> = Readonly<Record<IPFamily, T>>

/** One for each family. */
export function byFamily<T>(make: (family: IPFamily) => T): ByFamily<T> {
  return { IPv4: make('IPv4'), IPv6: make('IPv6') }
}

/** One of IPv4 or IPv6, without a zone. */
export function isIPAddress(text: string): boolean {
  return isIPv4(text) || isIPv6(text)
}

/** 4 or 6; undefined when it is not an address. */
export function ipVersion(text: string): 4 | 6 | undefined {
  if (isIPv4(text)) return 4
  return isIPv6(text) ? 6 : undefined
}

/** Four numbers without leading zeros. */
export function isIPv4(text: string): boolean {
  const parts = text.split('.')
  return parts.length === 4 && parts.every((part) => /^(0|[1-9]\d{0,2})$/.test(part) && Number(part) <= 255)
}

/** Eight groups; `::` once for one or more of zeros; the last two may be written as an IPv4 address. */
function isIPv6(text: string): boolean {
  const [left = '', right, ...more] = text.split('::')
  if (more.length > 0) return false
  if (right === undefined) return groupsIn(left, true) === 8
  const before = groupsIn(left, false)
  const after = groupsIn(right, true)
  return before !== undefined && after !== undefined && before + after < 8
}

/** undefined if one of them is invalid. */
function groupsIn(text: string, mayEndInIPv4: boolean): number | undefined {
  if (text === '') return 0
  const groups = text.split(':')
  const last = groups.at(-1) ?? ''
  const embedded = mayEndInIPv4 && isIPv4(last)
  const plain = embedded ? groups.slice(0, -1) : groups
  if (!plain.every((group) => /^[0-9a-fA-F]{1,4}$/.test(group))) return undefined
  return plain.length + (embedded ? 2 : 0)
}

/** Not 0. */
const group = '[1-9a-f][0-9a-f]{0,3}'
/** Most canonical forms: eight groups, or at most six and `::`, where no group is 0, and no IPv4-mapped address. */
const usualForm = new RegExp(
  `^(?:${group}(?::${group}){7}|(?!::ffff:)(?=(?:[^:]*:){2,6}[^:]*$)(?:${group}(?::${group})*)?::(?:${group}(?::${group})*)?)$`,
)

/**
 * The form of an IPv6 address that RFC 5952 recommends, with the last two groups of an IPv4-mapped one as an IPv4 address, as Go
 * prints it; undefined: it is not an IPv6 address.
 */
export function canonicalIPv6(text: string): string | undefined {
  // One expression costs a tenth of what follows, and messages have thousands of addresses.
  if (usualForm.test(text)) return text
  if (!isIPv6(text)) return undefined
  const [left = '', right] = text.split('::')
  const [before, after] = [numbersIn(left), numbersIn(right ?? '')]
  const groups = [...before, ...Array.from({ length: 8 - before.length - after.length }, () => 0), ...after]
  const [high = 0, low = 0] = groups.slice(6)
  const isMapped = groups.slice(0, 5).every((group) => group === 0) && groups[5] === 0xffff
  if (isMapped) return `::ffff:${[high >> 8, high & 255, low >> 8, low & 255].join('.')}`
  const words = groups.map((group) => group.toString(16))
  const zeros = longestZeros(groups)
  if (zeros.length < 2) return words.join(':')
  return `${words.slice(0, zeros.at).join(':')}::${words.slice(zeros.at + zeros.length).join(':')}`
}

function numbersIn(groups: string): readonly number[] {
  if (groups === '') return []
  return groups.split(':').flatMap((group) => {
    if (!group.includes('.')) return [Number.parseInt(group, 16)]
    const [a = 0, b = 0, c = 0, d = 0] = group.split('.').map(Number)
    return [a * 256 + b, c * 256 + d]
  })
}

/** The first of the longest runs of zeros. */
function longestZeros(groups: readonly number[]): { readonly at: number; readonly length: number } {
  let longest = { at: 0, length: 0 }
  for (let at = 0; at < groups.length; at++) {
    const end = groups.findIndex((group, index) => index >= at && group !== 0)
    const length = (end < 0 ? groups.length : end) - at
    if (length > longest.length) longest = { at, length }
  }
  return longest
}

/** `10.244.1.5:80`, `[fd00::5]:80`: a host as URLs name it; a name stays as it is. */
export function hostPort(host: string, port: number): string {
  return host.includes(':') ? `[${host}]:${port}` : `${host}:${port}`
}

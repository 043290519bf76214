/** Recognizes IP addresses in text. */

/** One of IPv4 or IPv6, without a zone. */
export function isIPAddress(text: string): boolean {
  return isIPv4(text) || isIPv6(text)
}

/** 4 or 6; undefined when it is no address. */
export function ipVersion(text: string): 4 | 6 | undefined {
  if (isIPv4(text)) return 4
  return isIPv6(text) ? 6 : undefined
}

function isIPv4(text: string): boolean {
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

/** undefined when one of them is none. */
function groupsIn(text: string, mayEndInIPv4: boolean): number | undefined {
  if (text === '') return 0
  const groups = text.split(':')
  const last = groups.at(-1) ?? ''
  const embedded = mayEndInIPv4 && isIPv4(last)
  const plain = embedded ? groups.slice(0, -1) : groups
  if (!plain.every((group) => /^[0-9a-fA-F]{1,4}$/.test(group))) return undefined
  return plain.length + (embedded ? 2 : 0)
}

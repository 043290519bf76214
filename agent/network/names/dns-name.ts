/**
 * Names of DNS: bytes on the wire (RFC 1035, section 3.1) and text. The text is in lower case and without the final dot; a byte that
 * is not a printable ASCII character, and a dot or backslash inside a label, is `\` and three decimal digits.
 */

/** The root is ''. */
export type NameText = string

const longestName = 255
const longestLabel = 63
/** Each follows an earlier position, so a name that needs more of them is built to cost time. */
const mostPointers = 16

/** `end`: offset of the byte after the name in the bytes it was read from. */
export type NameRead = { readonly name: NameText; readonly end: number }

/**
 * undefined: it is not a name, does not end within `bytes`, or is longer than 255 bytes. `mayPoint`: it may end in a pointer to an earlier
 * name (RFC 1035, section 4.1.4).
 */
export function readName(bytes: Uint8Array, from: number, mayPoint: boolean): NameRead | undefined {
  const labels: string[] = []
  let [at, length, pointers] = [from, 1, 0]
  let end: number | undefined
  let earliest = from
  for (;;) {
    const size = bytes[at]
    if (size === undefined) return undefined
    if (size === 0) return { name: labels.join('.'), end: end ?? at + 1 }
    if (size >= 0xc0) {
      const to = pointerIn(size, bytes[at + 1])
      pointers += 1
      // Only backwards: so it ends, whatever the bytes are.
      if (!mayPoint || at + 1 >= bytes.length || to >= earliest || pointers > mostPointers) return undefined
      end ??= at + 2
      at = to
      earliest = to
      continue
    }
    length += size + 1
    if (size > longestLabel || length > longestName || at + 1 + size > bytes.length) return undefined
    labels.push(labelText(bytes, at + 1, size))
    at += size + 1
  }
}

function pointerIn(high: number, low = 0): number {
  return ((high & 0x3f) << 8) | low
}

function labelText(bytes: Uint8Array, from: number, size: number): string {
  let text = ''
  for (let at = from; at < from + size; at++) {
    const byte = bytes[at] ?? 0
    if (byte >= 0x41 && byte <= 0x5a) text += String.fromCharCode(byte + 32)
    else if (byte > 0x20 && byte < 0x7f && byte !== 0x2e && byte !== 0x5c) text += String.fromCharCode(byte)
    else text += `\\${String(byte).padStart(3, '0')}`
  }
  return text
}

/** undefined: a label has no or more than 63 bytes, or all of it more than 255. */
export function writeName(name: NameText): Uint8Array | undefined {
  if (name === '') return new Uint8Array(1)
  const bytes: number[] = []
  for (const label of name.split('.')) {
    const own = label.replace(/\\(\d{3})/g, (_, digits: string) => String.fromCharCode(Number(digits) & 255))
    if (own.length === 0 || own.length > longestLabel) return undefined
    bytes.push(own.length)
    for (let at = 0; at < own.length; at++) bytes.push(own.charCodeAt(at) & 255)
  }
  bytes.push(0)
  return bytes.length > longestName ? undefined : Uint8Array.from(bytes)
}

/** Bech32 (BIP 173) without its limit of length, as age writes keys. Pure. */

const alphabet = 'qpzry9x8gf2tvdw0s3jn54khce6mua7l'
const generators = [0x3b6a57b2, 0x26508e6d, 0x1ea119fa, 0x3d4233dd, 0x2a1462b3]
const checksumLength = 6

/** In lower case. */
export function bech32(prefix: string, data: Uint8Array): string {
  const values = regrouped(data, 8, 5) ?? []
  const sum = checksum([...expanded(prefix), ...values, ...new Array<number>(checksumLength).fill(0)]) ^ 1
  const check = Array.from({ length: checksumLength }, (_, i) => (sum >>> (5 * (checksumLength - 1 - i))) & 31)
  return `${prefix}1${[...values, ...check].map((value) => alphabet[value]).join('')}`
}

/** undefined: the text is not one with this prefix, or has a wrong letter. */
export function fromBech32(prefix: string, text: string): Buffer | undefined {
  const lower = text.toLowerCase()
  if (text !== lower && text !== text.toUpperCase()) return undefined
  if (!lower.startsWith(`${prefix}1`)) return undefined
  const values = [...lower.slice(prefix.length + 1)].map((letter) => alphabet.indexOf(letter))
  if (values.length < checksumLength || values.includes(-1)) return undefined
  if (checksum([...expanded(prefix), ...values]) !== 1) return undefined
  const data = regrouped(values.slice(0, -checksumLength), 5, 8)
  return data && Buffer.from(data)
}

function expanded(prefix: string): readonly number[] {
  const codes = [...prefix].map((letter) => letter.charCodeAt(0))
  return [...codes.map((code) => code >>> 5), 0, ...codes.map((code) => code & 31)]
}

function checksum(values: readonly number[]): number {
  let sum = 1
  for (const value of values) {
    const top = sum >>> 25
    sum = ((sum & 0x1ffffff) << 5) ^ value
    for (const [i, generator] of generators.entries()) if ((top >>> i) & 1) sum ^= generator
  }
  return sum >>> 0
}

/** Bits in groups of another size. undefined: the bits that are left are not the zeros of an encoder. */
function regrouped(from: Iterable<number>, fromBits: number, toBits: number): number[] | undefined {
  const groups: number[] = []
  let [held, bits] = [0, 0]
  for (const value of from) {
    held = (held << fromBits) | value
    bits += fromBits
    while (bits >= toBits) {
      bits -= toBits
      groups.push((held >>> bits) & ((1 << toBits) - 1))
      held &= (1 << bits) - 1
    }
  }
  if (toBits < fromBits) {
    if (bits > 0) groups.push((held << (toBits - bits)) & ((1 << toBits) - 1))
  } else if (bits >= fromBits || held !== 0) return undefined
  return groups
}

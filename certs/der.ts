/** ASN.1 in DER, as certificates are written in. node-forge's words stop at this file. */
import type { asn1 } from 'node-forge'
import forge from 'node-forge/lib/asn1.js'

/** One DER value. */
export type Der = asn1.Asn1

const universal = forge.Class.UNIVERSAL
const context = forge.Class.CONTEXT_SPECIFIC
const types = {
  boolean: forge.Type.BOOLEAN,
  integer: forge.Type.INTEGER,
  bits: forge.Type.BITSTRING,
  octets: forge.Type.OCTETSTRING,
  oid: forge.Type.OID,
  utf8: forge.Type.UTF8,
  sequence: forge.Type.SEQUENCE,
  set: forge.Type.SET,
  printable: forge.Type.PRINTABLESTRING,
  ia5: forge.Type.IA5STRING,
  utcTime: forge.Type.UTCTIME,
  time: forge.Type.GENERALIZEDTIME,
}

export function sequence(...items: readonly Der[]): Der {
  return forge.create(universal, types.sequence, true, [...items])
}

export function set(...items: readonly Der[]): Der {
  return forge.create(universal, types.set, true, [...items])
}

export function oid(dotted: string): Der {
  return forge.create(universal, types.oid, false, forge.oidToDer(dotted).getBytes())
}

/** A number that is not negative, from its bytes, highest first. */
export function derInteger(bytes: Uint8Array): Der {
  const from = bytes.findIndex((byte) => byte !== 0)
  const digits = from < 0 ? Uint8Array.of(0) : bytes.subarray(from)
  const signed = (digits[0] ?? 0) >= 0x80 ? Uint8Array.of(0, ...digits) : digits
  return forge.create(universal, types.integer, false, letters(signed))
}

export function truth(value: boolean): Der {
  return forge.create(universal, types.boolean, false, value ? '\xff' : '\0')
}

export function utf8(text: string): Der {
  return forge.create(universal, types.utf8, false, letters(Buffer.from(text, 'utf8')))
}

export function octets(bytes: Uint8Array): Der {
  return forge.create(universal, types.octets, false, letters(bytes))
}

/** Whole bytes, or all but the last `unused` bits of them. */
export function bits(bytes: Uint8Array, unused = 0): Der {
  return forge.create(universal, types.bits, false, String.fromCharCode(unused) + letters(bytes))
}

/** UTCTime until 2049 and GeneralizedTime from then on, as RFC 5280 asks. Whole seconds. */
export function instant(ms: number): Der {
  const date = new Date(Math.floor(ms / 1000) * 1000)
  return date.getUTCFullYear() < 2050
    ? forge.create(universal, types.utcTime, false, forge.dateToUtcTime(date))
    : forge.create(universal, types.time, false, forge.dateToGeneralizedTime(date))
}

/** `[tag]` around other values. */
export function tagged(tag: number, ...items: readonly Der[]): Der {
  return forge.create(context, tag, true, [...items])
}

/** `[tag] IMPLICIT` bytes. */
export function taggedBytes(tag: number, bytes: Uint8Array): Der {
  return forge.create(context, tag, false, letters(bytes))
}

export function encode(value: Der): Buffer {
  return Buffer.from(forge.toDer(value).getBytes(), 'latin1')
}

/** Throws when the bytes are not exactly one DER value. */
export function decodeDer(bytes: Uint8Array): Der {
  return forge.fromDer(letters(bytes), { strict: true, decodeBitStrings: false, maxDepth: 24 })
}

/** The values inside a sequence, a set or a `[tag]`; undefined: the value is not of that kind. */
export function itemsOf(value: Der | undefined, kind: 'sequence' | 'set' | number): readonly Der[] | undefined {
  if (value === undefined || !Array.isArray(value.value)) return undefined
  const [tagClass, type] = typeof kind === 'number' ? [context, kind] : [universal, types[kind]]
  return value.tagClass === tagClass && value.type === type ? value.value : undefined
}

export function isContextTag(value: Der, tag: number): boolean {
  return value.tagClass === context && value.type === tag
}

export function oidOf(value: Der | undefined): string | undefined {
  const bytes = bytesOf(value, 'oid')
  return bytes === undefined || bytes.length === 0 ? undefined : forge.derToOid(letters(bytes))
}

/** The content of a value that holds no others. Of bits: only whole bytes. */
export function bytesOf(value: Der | undefined, kind: 'octets' | 'bits' | 'oid' | 'integer'): Buffer | undefined {
  if (value === undefined || typeof value.value !== 'string') return undefined
  if (value.tagClass !== universal || value.type !== types[kind]) return undefined
  const content = Buffer.from(value.value, 'latin1')
  if (kind !== 'bits') return content
  return content[0] === 0 ? content.subarray(1) : undefined
}

/** Text in one of the forms that names are written in. */
export function derText(value: Der | undefined): string | undefined {
  if (value === undefined || value.tagClass !== universal || typeof value.value !== 'string') return undefined
  if (value.type === types.utf8) return Buffer.from(value.value, 'latin1').toString('utf8')
  return value.type === types.printable || value.type === types.ia5 ? value.value : undefined
}

export function toPem(label: string, bytes: Uint8Array): string {
  const lines =
    Buffer.from(bytes)
      .toString('base64')
      .match(/.{1,64}/g) ?? []
  return [`-----BEGIN ${label}-----`, ...lines, `-----END ${label}-----`, ''].join('\n')
}

/** The bytes of the text's only PEM block, which must be of this kind; undefined otherwise. */
export function fromPem(label: string, text: string): Buffer | undefined {
  const [begin, end, block] = [`-----BEGIN ${label}-----`, `-----END ${label}-----`, text.trim()]
  if (!block.startsWith(begin) || !block.endsWith(end)) return undefined
  const body = block.slice(begin.length, -end.length)
  return /^[A-Za-z0-9+/=\s]+$/.test(body) ? Buffer.from(body, 'base64') : undefined
}

function letters(bytes: Uint8Array): string {
  return Buffer.from(bytes).toString('latin1')
}

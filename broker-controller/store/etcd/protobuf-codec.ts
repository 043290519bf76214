/**
 * Protobuf messages described by tables of their fields: encoded without what is empty, decoded without what is unknown
 * (protobuf.dev, "Encoding"). Integers of 64 bits that may exceed a JavaScript number are decimal text.
 */

/** How one value is written to the wire and read from it. `read` is given a varint or the bytes of a field with a length. */
export interface FieldKind<Out, In = Out> {
  readonly wire: 0 | 2
  readonly empty: Out
  readonly isList: boolean
  /** undefined: the value is empty, and is left out. */
  write(value: In): readonly Encoded[]
  /** `before`: what an earlier field of the same number gave. */
  read(value: bigint | Buffer, before: Out): Out
}
type Encoded = bigint | Uint8Array

export type Codec<Out, In> = {
  readonly encode: (value: In) => Buffer
  /** Throws RangeError where the bytes are no message. */
  readonly decode: (bytes: Buffer) => Out
}

type Fields = { readonly [name: string]: readonly [number, FieldKind<unknown, never>] }
type OutOf<F extends Fields> = {
  readonly [N in keyof F]: F[N] extends readonly [number, FieldKind<infer Out, never>] ? Out : never
}
type InOf<F extends Fields> = {
  readonly [N in keyof F]?: F[N] extends readonly [number, FieldKind<unknown, infer In>] ? In : never
}

const varintWire = 0
const lengthWire = 2

/** int64, int32 or an enum whose values fit a JavaScript number, such as a revision. */
export const int64: FieldKind<number> = {
  wire: varintWire,
  empty: 0,
  isList: false,
  write: (value) => (value === 0 ? [] : [BigInt.asUintN(64, BigInt(value))]),
  read: (value) => Number(BigInt.asIntN(64, asVarint(value))),
}

/** int64 or uint64 of which every bit counts, such as the ID of a lease: decimal text; '' where it is 0. */
export const id64: FieldKind<string> = {
  wire: varintWire,
  empty: '',
  isList: false,
  write: (value) => (value === '' ? [] : [BigInt.asUintN(64, BigInt(value))]),
  read: (value) => String(BigInt.asIntN(64, asVarint(value))),
}

export const boolValue: FieldKind<boolean> = {
  wire: varintWire,
  empty: false,
  isList: false,
  write: (value) => (value ? [1n] : []),
  read: (value) => asVarint(value) !== 0n,
}

export const bytesValue: FieldKind<Buffer, Uint8Array> = {
  wire: lengthWire,
  empty: Buffer.alloc(0),
  isList: false,
  write: (value) => (value.length === 0 ? [] : [value]),
  read: (value) => asBytes(value),
}

export const textValue: FieldKind<string> = {
  wire: lengthWire,
  empty: '',
  isList: false,
  write: (value) => (value === '' ? [] : [Buffer.from(value)]),
  read: (value) => asBytes(value).toString('utf8'),
}

/** A message inside another one; undefined: it is not there. One that is there and empty is written, as `oneof` needs it. */
export function oneMessage<Out, In>(codec: Codec<Out, In>): FieldKind<Out | undefined, In> {
  return {
    wire: lengthWire,
    empty: undefined,
    isList: false,
    write: (value) => [codec.encode(value)],
    read: (value) => codec.decode(asBytes(value)),
  }
}

export function messageList<Out, In>(codec: Codec<Out, In>): FieldKind<readonly Out[], readonly In[]> {
  return {
    wire: lengthWire,
    empty: [],
    isList: true,
    write: (values) => values.map(codec.encode),
    read(value, before) {
      const item = codec.decode(asBytes(value))
      // The list belongs to the message that is being decoded.
      if (before.length === 0) return [item]
      ;(before as Out[]).push(item)
      return before
    },
  }
}

/** The codec of a message with these fields: name → number and kind. */
export function messageCodec<const F extends Fields>(fields: F): Codec<OutOf<F>, InOf<F>> {
  const entries = Object.entries(fields)
  const names = new Map(entries.map(([name, [number, kind]]) => [number, { name, kind }]))
  const empty = Object.fromEntries(entries.map(([name, [, kind]]) => [name, kind.empty]))
  return {
    encode(value) {
      const given: { readonly [name: string]: unknown } = value
      const pieces: Uint8Array[] = []
      for (const [name, [number, kind]] of entries) {
        if (given[name] === undefined) continue
        for (const encoded of kind.write(given[name] as never)) {
          pieces.push(varint(BigInt(number * 8 + kind.wire)))
          if (typeof encoded === 'bigint') pieces.push(varint(encoded))
          else pieces.push(varint(BigInt(encoded.length)), encoded)
        }
      }
      return Buffer.concat(pieces)
    },
    decode(encoded) {
      const value: Record<string, unknown> = { ...empty }
      for (const { number, content } of fieldsIn(encoded)) {
        const field = names.get(number)
        if (field !== undefined) value[field.name] = field.kind.read(content, value[field.name])
      }
      return value as OutOf<F>
    },
  }
}

function* fieldsIn(encoded: Buffer): Generator<{ readonly number: number; readonly content: bigint | Buffer }> {
  for (let at = 0; at < encoded.length; ) {
    const tag = readVarint(encoded, at)
    const [number, wire] = [Number(tag.value >> 3n), Number(tag.value & 7n)]
    at = tag.end
    if (wire === varintWire) {
      const { value, end } = readVarint(encoded, at)
      at = end
      yield { number, content: value }
      continue
    }
    const length = wire === lengthWire ? readVarint(encoded, at) : { value: fixedLength(wire), end: at }
    at = length.end + Number(length.value)
    if (at > encoded.length) throw new RangeError('The message ends within a field')
    if (wire === lengthWire) yield { number, content: encoded.subarray(length.end, at) }
  }
}

/** Of the wire types of 64 and 32 bits: no message here has such a field, and an unknown one is skipped. */
function fixedLength(wire: number): bigint {
  if (wire === 1) return 8n
  if (wire === 5) return 4n
  throw new RangeError(`There is no wire type ${wire}`)
}

function readVarint(encoded: Buffer, from: number): { readonly value: bigint; readonly end: number } {
  let small = 0
  let at = from
  // Almost all fit 28 bits: without bigints, which are slow.
  for (let shift = 0; shift < 28; shift += 7) {
    const byte = byteAt(encoded, at++)
    small |= (byte & 0x7f) << shift
    if (byte < 0x80) return { value: BigInt(small), end: at }
  }
  let value = BigInt(small)
  for (let shift = 28n; shift < 70n; shift += 7n) {
    const byte = byteAt(encoded, at++)
    value |= BigInt(byte & 0x7f) << shift
    if (byte < 0x80) return { value, end: at }
  }
  throw new RangeError('An integer has more than 64 bits')
}

function byteAt(encoded: Buffer, at: number): number {
  const byte = encoded[at]
  if (byte === undefined) throw new RangeError('The message ends within an integer')
  return byte
}

function varint(value: bigint): Uint8Array {
  const encoded: number[] = []
  let left = value
  while (left > 0x7fn) {
    encoded.push(Number(left & 0x7fn) | 0x80)
    left >>= 7n
  }
  encoded.push(Number(left))
  return Uint8Array.from(encoded)
}

function asVarint(value: bigint | Buffer): bigint {
  if (typeof value === 'bigint') return value
  throw new RangeError('A field has bytes in the place of an integer')
}

function asBytes(value: bigint | Buffer): Buffer {
  if (typeof value !== 'bigint') return value
  throw new RangeError('A field has an integer in the place of bytes')
}

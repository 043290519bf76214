/**
 * Protobuf messages described by tables of their fields: encoded without what is empty, decoded without what is unknown
 * (protobuf.dev, "Encoding"). Integers of 64 bits that may exceed a JavaScript number are decimal text.
 */
import {
  type BytesReader,
  type BytesWriter,
  bytesWriter,
  readBytes,
  readEnd,
  readVarint,
  skipBytes,
  skipVarint,
  writeBytes,
  writeVarint,
  written,
} from './protobuf-bytes.ts'

/** How one value is written to the wire and read from it. */
export interface FieldKind<Out, In = Out> {
  readonly wire: 0 | 2
  readonly empty: Out
  /** In front of what was written before; nothing where the value is empty. */
  write(to: BytesWriter, tag: number, value: In): void
  /** The value that begins where the reader is. `before`: what an earlier field of the same number gave. */
  read(from: BytesReader, before: Out): Out
}

export type Codec<Out, In> = {
  readonly encode: (value: In) => Buffer
  /** Throws RangeError if the bytes are not a message. */
  readonly decode: (bytes: Buffer) => Out
  /** In front of what was written before. */
  readonly write: (to: BytesWriter, value: In) => void
  /** Up to the end of what is read. */
  readonly read: (from: BytesReader) => Out
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
  write(to, tag, value) {
    if (value === 0) return
    writeVarint(to, value < 0 ? BigInt.asUintN(64, BigInt(value)) : value)
    writeVarint(to, tag)
  },
  read(from) {
    const value = readVarint(from)
    return typeof value === 'number' ? value : Number(BigInt.asIntN(64, value))
  },
}

/** int64 or uint64 of which every bit counts, such as the ID of a lease: decimal text; '' where it is 0. */
export const id64: FieldKind<string> = {
  wire: varintWire,
  empty: '',
  write(to, tag, value) {
    if (value === '') return
    writeVarint(to, BigInt.asUintN(64, BigInt(value)))
    writeVarint(to, tag)
  },
  read: (from) => String(BigInt.asIntN(64, BigInt(readVarint(from)))),
}

export const boolValue: FieldKind<boolean> = {
  wire: varintWire,
  empty: false,
  write(to, tag, value) {
    if (!value) return
    writeVarint(to, 1)
    writeVarint(to, tag)
  },
  read: (from) => BigInt(readVarint(from)) !== 0n,
}

export const bytesValue: FieldKind<Buffer, Uint8Array> = {
  wire: lengthWire,
  empty: Buffer.alloc(0),
  write(to, tag, value) {
    if (value.length === 0) return
    writeBytes(to, value)
    writeVarint(to, value.length)
    writeVarint(to, tag)
  },
  read: readBytes,
}

export const textValue: FieldKind<string> = {
  wire: lengthWire,
  empty: '',
  write: (to, tag, value) => bytesValue.write(to, tag, Buffer.from(value)),
  read: (from) => readBytes(from).toString('utf8'),
}

/** A message inside another one; undefined: it is not there. One that is there and empty is written, as `oneof` needs it. */
export function oneMessage<Out, In>(codec: Codec<Out, In>): FieldKind<Out | undefined, In> {
  return {
    wire: lengthWire,
    empty: undefined,
    write: (to, tag, value) => writeMessage(codec, to, tag, value),
    read: (from) => readMessage(codec, from),
  }
}

/** A list of texts. */
export const textList: FieldKind<readonly string[]> = {
  wire: lengthWire,
  empty: [],
  write(to, tag, values) {
    for (const value of [...values].reverse()) {
      const bytes = Buffer.from(value)
      writeBytes(to, bytes)
      writeVarint(to, bytes.length)
      writeVarint(to, tag)
    }
  },
  read(from, before) {
    const item = readBytes(from).toString('utf8')
    if (before.length === 0) return [item]
    ;(before as string[]).push(item)
    return before
  },
}

type Texts = { readonly [key: string]: string }

/** `map<string, string>`: a list of pairs on the wire, of which the last of a key counts. */
export const textMap: FieldKind<Texts> = {
  wire: lengthWire,
  empty: {},
  write(to, tag, values) {
    for (const [key, value] of Object.entries(values).reverse()) writeMessage(textPair, to, tag, { key, value })
  },
  read(from, before) {
    const { key, value } = readMessage(textPair, from)
    return Object.fromEntries([...Object.entries(before), [key, value]])
  },
}

export function messageList<Out, In>(codec: Codec<Out, In>): FieldKind<readonly Out[], readonly In[]> {
  return {
    wire: lengthWire,
    empty: [],
    write(to, tag, values) {
      for (const value of [...values].reverse()) writeMessage(codec, to, tag, value)
    },
    read(from, before) {
      const item = readMessage(codec, from)
      // The list belongs to the message that is being decoded.
      if (before.length === 0) return [item]
      ;(before as Out[]).push(item)
      return before
    },
  }
}

function writeMessage<In>(codec: Codec<unknown, In>, to: BytesWriter, tag: number, value: In): void {
  const end = written(to)
  codec.write(to, value)
  writeVarint(to, written(to) - end)
  writeVarint(to, tag)
}

function readMessage<Out>(codec: Codec<Out, never>, from: BytesReader): Out {
  const { end } = from
  from.end = readEnd(from)
  const value = codec.read(from)
  from.end = end
  return value
}

/** The codec of a message with these fields: name → number and kind. */
export function messageCodec<const F extends Fields>(fields: F): Codec<OutOf<F>, InOf<F>> {
  const entries = Object.entries(fields).map(([name, [number, kind]]) => ({ name, kind, tag: number * 8 + kind.wire }))
  const backwards = entries.toReversed()
  const byNumber = new Map(Object.entries(fields).map(([name, [number, kind]]) => [number, { name, kind }]))
  const empty = Object.fromEntries(entries.map(({ name, kind }) => [name, kind.empty]))
  const write = (to: BytesWriter, value: InOf<F>) => {
    const given: { readonly [name: string]: unknown } = value
    for (const { name, kind, tag } of backwards) {
      if (given[name] !== undefined) kind.write(to, tag, given[name] as never)
    }
  }
  const read = (from: BytesReader) => {
    const value: Record<string, unknown> = { ...empty }
    while (from.at < from.end) {
      const tag = Number(readVarint(from))
      const field = byNumber.get(Math.floor(tag / 8))
      const wire = tag % 8
      if (field === undefined) skip(from, wire)
      else if (wire !== field.kind.wire) throw new RangeError(`Field ${field.name} has the wire type ${wire}`)
      else value[field.name] = field.kind.read(from, value[field.name])
    }
    return value as OutOf<F>
  }
  return {
    write,
    read,
    encode(value) {
      const to = bytesWriter()
      write(to, value)
      return to.bytes.subarray(to.at)
    },
    decode: (bytes) => read({ bytes, at: 0, end: bytes.length }),
  }
}

function skip(from: BytesReader, wire: number): void {
  if (wire === varintWire) skipVarint(from)
  else if (wire === lengthWire) from.at = readEnd(from)
  else skipBytes(from, fixedLength(wire))
}

/** Bytes of the 64-bit and 32-bit wire types: no message here has such a field, and an unknown one is skipped. */
function fixedLength(wire: number): number {
  if (wire === 1) return 8
  if (wire === 5) return 4
  throw new RangeError(`There is no wire type ${wire}`)
}

const textPair = messageCodec({ key: [1, textValue], value: [2, textValue] })

/**
 * The bytes of protobuf messages (protobuf.dev, "Encoding"). They are written from the end to the beginning: the length of a message is
 * known when it is written in front of it. Integers are numbers up to 2^53, and bigints only above: those are slow.
 */

/** `at`: where the bytes begin that were written; there is room in front of them. */
export type BytesWriter = { bytes: Buffer; at: number }

/** `end`: of the message that is being read. */
export type BytesReader = { readonly bytes: Buffer; at: number; end: number }

const firstRoom = 512

export function bytesWriter(): BytesWriter {
  return { bytes: Buffer.allocUnsafe(firstRoom), at: firstRoom }
}

/** How many bytes were written. */
export function written({ bytes, at }: BytesWriter): number {
  return bytes.length - at
}

export function writeBytes(to: BytesWriter, value: Uint8Array): void {
  makeRoom(to, value.length)
  to.at -= value.length
  to.bytes.set(value, to.at)
}

/** `value`: not negative. */
export function writeVarint(to: BytesWriter, value: number | bigint): void {
  if (value > Number.MAX_SAFE_INTEGER) {
    writeBytes(to, longVarint(BigInt(value)))
    return
  }
  let left = Number(value)
  let length = 1
  for (let rest = left; rest >= 0x80; rest = Math.floor(rest / 0x80)) length += 1
  makeRoom(to, length)
  to.at -= length
  let at = to.at
  for (; left >= 0x80; left = Math.floor(left / 0x80)) to.bytes[at++] = (left % 0x80) + 0x80
  to.bytes[at] = left
}

function longVarint(value: bigint): Uint8Array {
  const encoded: number[] = []
  let left = value
  for (; left > 0x7fn; left >>= 7n) encoded.push(Number(left & 0x7fn) | 0x80)
  encoded.push(Number(left))
  return Uint8Array.from(encoded)
}

function makeRoom(to: BytesWriter, length: number): void {
  if (to.at >= length) return
  const used = written(to)
  const larger = Buffer.allocUnsafe(2 * to.bytes.length + length)
  to.bytes.copy(larger, larger.length - used, to.at)
  to.at = larger.length - used
  to.bytes = larger
}

/** Throws RangeError, as all that reads. */
export function readVarint(from: BytesReader): number | bigint {
  let small = 0
  for (let shift = 0; shift < 28; shift += 7) {
    const byte = readByte(from)
    small |= (byte & 0x7f) << shift
    if (byte < 0x80) return small
  }
  let value = BigInt(small)
  for (let shift = 28n; shift < 70n; shift += 7n) {
    const byte = readByte(from)
    value |= BigInt(byte & 0x7f) << shift
    if (byte < 0x80) return value
  }
  throw new RangeError('An integer has more than 64 bits')
}

export function skipVarint(from: BytesReader): void {
  for (let length = 1; readByte(from) >= 0x80; length++) {
    if (length === 10) throw new RangeError('An integer has more than 64 bits')
  }
}

/** Reads the length of a field: the position after its content. */
export function readEnd(from: BytesReader): number {
  const length = Number(readVarint(from))
  const end = from.at + length
  if (end > from.end) throw new RangeError('The message ends within a field')
  return end
}

/** The content of a field with a length, in the memory of the message. */
export function readBytes(from: BytesReader): Buffer {
  const end = readEnd(from)
  const content = from.bytes.subarray(from.at, end)
  from.at = end
  return content
}

export function skipBytes(from: BytesReader, length: number): void {
  from.at += length
  if (from.at > from.end) throw new RangeError('The message ends within a field')
}

function readByte(from: BytesReader): number {
  const byte = from.at < from.end ? from.bytes[from.at] : undefined
  if (byte === undefined) throw new RangeError('The message ends within an integer')
  from.at += 1
  return byte
}

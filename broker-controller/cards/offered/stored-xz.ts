/** Bytes as a stream of .xz that stores them as they are: its size depends on theirs alone. Pure. https://tukaani.org/xz/xz-file-format.txt */

/** CRC32, the check that every reader has. */
const streamFlags = Buffer.from([0, 1])
const mostBytes = 65_536

/** Throws for more than one chunk of LZMA2 can store. */
export function storedXz(bytes: Uint8Array): Buffer {
  if (bytes.length === 0 || bytes.length > mostBytes) throw new RangeError(`Not 1 to ${mostBytes} bytes`)
  const header = Buffer.concat([Buffer.from([0xfd, 0x37, 0x7a, 0x58, 0x5a, 0]), checked(streamFlags)])
  // Its length in units of four, less one; one filter: LZMA2 with the smallest dictionary.
  const blockHeader = checked(Buffer.from([2, 0, 0x21, 1, 0, 0, 0, 0]))
  const size = bytes.length - 1
  // A chunk that resets the dictionary and is not compressed, and the end of chunks.
  const chunks = Buffer.concat([Buffer.from([1, size >> 8, size & 0xff]), bytes, Buffer.from([0])])
  const index = checked(
    padded(Buffer.from([0, 1, ...numberBytes(blockHeader.length + chunks.length + 4), ...numberBytes(bytes.length)])),
  )
  const footer = Buffer.alloc(6)
  footer.writeUInt32LE(index.length / 4 - 1)
  streamFlags.copy(footer, 4)
  return Buffer.concat([
    ...[header, blockHeader, padded(chunks), crc32(bytes)],
    ...[index, crc32(footer), footer, Buffer.from('YZ')],
  ])
}

function checked(bytes: Buffer): Buffer {
  return Buffer.concat([bytes, crc32(bytes)])
}

function padded(bytes: Buffer): Buffer {
  return Buffer.concat([bytes, Buffer.alloc((4 - (bytes.length % 4)) % 4)])
}

/** Seven bits in each byte, the lowest first. */
function numberBytes(value: number): number[] {
  return value < 0x80 ? [value] : [(value & 0x7f) | 0x80, ...numberBytes(value >> 7)]
}

function crc32(bytes: Uint8Array): Buffer {
  let crc = -1
  for (const byte of bytes) {
    crc ^= byte
    for (let bit = 0; bit < 8; bit++) crc = (crc >>> 1) ^ (crc & 1 ? 0xedb88320 : 0)
  }
  const result = Buffer.alloc(4)
  result.writeUInt32LE(~crc >>> 0)
  return result
}

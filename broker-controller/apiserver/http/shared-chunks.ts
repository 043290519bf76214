/** Chunks of HTTP/1.1 (RFC 9112, 7.1) for bytes that many clients receive, as an event of a watch. */

const chunks = new WeakMap<Uint8Array, Uint8Array>()

/** The bytes as one chunk: the same for each call with the same bytes, which must not change any more. */
export function chunkOf(bytes: Uint8Array): Uint8Array {
  return chunks.get(bytes) ?? framed(bytes)
}

function framed(bytes: Uint8Array): Uint8Array {
  const chunk = Buffer.concat([Buffer.from(`${bytes.length.toString(16)}\r\n`), bytes, lineEnd])
  chunks.set(bytes, chunk)
  return chunk
}

const lineEnd = Buffer.from('\r\n')

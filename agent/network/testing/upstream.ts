/** Answers as other name servers make them, for tests; it shares no code with the forwarder. */

export type Given = {
  readonly code?: number
  readonly isTruncated?: boolean
  readonly addresses?: readonly string[]
  readonly ttl?: number
  /** The SOA of an answer without records, with this time to live and this limit. */
  readonly soa?: { readonly ttl: number; readonly limit: number }
  /** It has an OPT record. */
  readonly hasOptions?: boolean
}

/** The answer to `question`, which has nothing but a question and maybe options. */
export function upstreamAnswer(question: Buffer, given: Given = {}): Buffer {
  const { code = 0, isTruncated = false, addresses = [], ttl = 60, soa, hasOptions = false } = given
  let end = 12
  while ((question[end] ?? 0) > 0) end += 1 + (question[end] ?? 0)
  end += 5
  const number = (value: number, size: 2 | 4) => {
    const bytes = Buffer.alloc(size)
    bytes.writeUIntBE(value, 0, size)
    return bytes
  }
  const records = addresses.map((address) =>
    Buffer.concat([
      Buffer.from([0xc0, 12, 0, 1, 0, 1]),
      number(ttl, 4),
      number(4, 2),
      Buffer.from(address.split('.').map(Number)),
    ]),
  )
  const authority =
    soa === undefined
      ? []
      : [
          Buffer.concat([
            Buffer.from([0, 0, 6, 0, 1]),
            number(soa.ttl, 4),
            number(22, 2),
            Buffer.from([0, 0]),
            ...[1, 2, 3, 4, soa.limit].map((value) => number(value, 4)),
          ]),
        ]
  const options = hasOptions ? [Buffer.from([0, 0, 41, 0x10, 0, 0, 0, 0, 0, 0, 0])] : []
  const head = Buffer.from(question.subarray(0, 12))
  head[2] = 0x81 | (isTruncated ? 2 : 0)
  head[3] = 0x80 | code
  for (const [index, count] of [1, records.length, authority.length, options.length].entries()) {
    head.writeUInt16BE(count, 4 + index * 2)
  }
  return Buffer.concat([head, question.subarray(12, end), ...records, ...authority, ...options])
}

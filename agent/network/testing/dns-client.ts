/** A client's side of DNS, for tests: it shares no code with the server. */

const numbers = { A: 1, NS: 2, CNAME: 5, SOA: 6, PTR: 12, TXT: 16, AAAA: 28, SRV: 33, OPT: 41, ANY: 255 } as const
export type RecordType = keyof typeof numbers

export type Asked = {
  readonly id?: number
  /** Bytes that the client takes over UDP; undefined: it does not use EDNS. */
  readonly udpBytes?: number
  readonly isSecurityAware?: boolean
}

export function dnsQuestion(name: string, type: RecordType, { id = 7, udpBytes, isSecurityAware }: Asked = {}): Buffer {
  const labels = name.split('.').filter((label) => label !== '')
  const question = [
    ...labels.flatMap((label) => [label.length, ...Buffer.from(label, 'latin1')]),
    0,
    0,
    numbers[type],
    0,
    1,
  ]
  const flags = isSecurityAware === true ? 0x80 : 0
  const options = udpBytes === undefined ? [] : [0, 0, 41, udpBytes >> 8, udpBytes & 255, 0, 0, flags, 0, 0, 0]
  const head = [id >> 8, id & 255, 1, 0, 0, 1, 0, 0, 0, 0, 0, udpBytes === undefined ? 0 : 1]
  return Buffer.from([...head, ...question, ...options])
}

/** `data`: of A, AAAA and TXT the text; of SRV `PRIORITY WEIGHT PORT TARGET`; of the others names, and numbers after them. */
export type SeenRecord = { readonly name: string; readonly type: string; readonly ttl: number; readonly data: string }

export type SeenAnswer = {
  readonly id: number
  readonly code: number
  readonly isAuthoritative: boolean
  readonly isTruncated: boolean
  readonly isRecursionAvailable: boolean
  readonly question: string
  readonly answers: readonly SeenRecord[]
  readonly authorities: readonly SeenRecord[]
  readonly additional: readonly SeenRecord[]
}

/** Throws if the bytes are not an answer, or something follows it. */
export function seenAnswer(bytes: Buffer): SeenAnswer {
  const at = { offset: 12 }
  const [questions = 0, answers = 0, authorities = 0, additional = 0] = [4, 6, 8, 10].map((from) =>
    bytes.readUInt16BE(from),
  )
  if ((bytes.readUInt8(2) & 0x80) === 0) throw new Error('It is a question')
  const question = questions === 0 ? '' : `${nameAt(bytes, at)} ${typeAt(bytes, at)}`
  if (questions > 0) at.offset += 2
  const records = (count: number) => Array.from({ length: count }, () => recordAt(bytes, at))
  const seen = {
    id: bytes.readUInt16BE(0),
    code: bytes.readUInt8(3) & 15,
    isAuthoritative: (bytes.readUInt8(2) & 4) !== 0,
    isTruncated: (bytes.readUInt8(2) & 2) !== 0,
    isRecursionAvailable: (bytes.readUInt8(3) & 0x80) !== 0,
    question,
    answers: records(answers),
    authorities: records(authorities),
    additional: records(additional),
  }
  if (at.offset !== bytes.length) throw new Error(`${bytes.length - at.offset} bytes follow the answer`)
  return seen
}

type At = { offset: number }

function nameAt(bytes: Buffer, at: At): string {
  const labels: string[] = []
  for (;;) {
    const size = bytes.readUInt8(at.offset)
    if (size >= 0xc0) {
      const to = { offset: bytes.readUInt16BE(at.offset) & 0x3fff }
      at.offset += 2
      return [...labels, nameAt(bytes, to)].join('.')
    }
    at.offset += 1 + size
    if (size === 0) return labels.join('.')
    labels.push(bytes.toString('latin1', at.offset - size, at.offset))
  }
}

function typeAt(bytes: Buffer, at: At): string {
  const number = bytes.readUInt16BE(at.offset)
  at.offset += 2
  return Object.entries(numbers).find(([, one]) => one === number)?.[0] ?? String(number)
}

function recordAt(bytes: Buffer, at: At): SeenRecord {
  const name = nameAt(bytes, at)
  const type = typeAt(bytes, at)
  const ttl = bytes.readUInt32BE(at.offset + 2)
  const length = bytes.readUInt16BE(at.offset + 6)
  at.offset += 8
  const end = at.offset + length
  if (end > bytes.length) throw new Error('The record is cut off')
  const data = dataAt(bytes, type, at, end)
  if (at.offset !== end) throw new Error(`The data of the ${type} record has another length`)
  return { name, type, ttl, data }
}

function dataAt(bytes: Buffer, type: string, at: At, end: number): string {
  const short = () => {
    at.offset += 2
    return bytes.readUInt16BE(at.offset - 2)
  }
  switch (type) {
    case 'A':
      at.offset += 4
      return [...bytes.subarray(end - 4, end)].join('.')
    case 'CNAME':
    case 'PTR':
    case 'NS':
      return nameAt(bytes, at)
    case 'SRV':
      return [short(), short(), short(), nameAt(bytes, at)].join(' ')
    case 'SOA': {
      const names = [nameAt(bytes, at), nameAt(bytes, at)]
      const times = Array.from({ length: 5 }, (_, index) => bytes.readUInt32BE(at.offset + 4 * index))
      at.offset += 20
      return [...names, ...times].join(' ')
    }
    default: {
      const from = type === 'TXT' ? at.offset + 1 : at.offset
      at.offset = end
      return type === 'TXT' ? bytes.toString('utf8', from, end) : bytes.toString('hex', from, end)
    }
  }
}

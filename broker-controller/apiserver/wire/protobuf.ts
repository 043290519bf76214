/** Bodies in protobuf, as kubectl sends them since 1.32: read into the objects that JSON would have given. */
import { mostValues, tooManyValues } from './body-limits.ts'
import { protobufMessages } from './protobuf-messages.ts'

/** What was sent is no object that we know, or no protobuf. */
export class ProtobufError extends Error {
  override readonly name = 'ProtobufError'
}

type JsonObject = { readonly [field: string]: unknown }

const magic = Buffer.from('k8s\0')

/** The object in Kubernetes' envelope, with its apiVersion and kind. Throws ProtobufError, and ApiError for too many values. */
export function readProtobuf(bytes: Buffer): JsonObject {
  const budget: Budget = { left: mostValues }
  if (!bytes.subarray(0, magic.length).equals(magic)) throw new ProtobufError('It does not begin as an object does')
  const envelope = readMessage(bytes.subarray(magic.length), envelopeMessage, budget)
  const { apiVersion, kind } = isObject(envelope['typeMeta']) ? envelope['typeMeta'] : {}
  const { raw } = envelope
  if (typeof apiVersion !== 'string' || typeof kind !== 'string') throw new ProtobufError('It does not say what it is')
  if (envelope['contentEncoding'] !== undefined) throw new ProtobufError('It is packed once more')
  const message = messages().get(messageName(apiVersion, kind))
  if (message === undefined) throw new ProtobufError(`${apiVersion} ${kind} is not known`)
  return { apiVersion, kind, ...readMessage(Buffer.isBuffer(raw) ? raw : Buffer.alloc(0), message, budget) }
}

/** `certificates.k8s.io/v1` CertificateSigningRequest is `certificates.v1.CertificateSigningRequest`. */
function messageName(apiVersion: string, kind: string): string {
  if (kind === 'DeleteOptions') return 'meta.DeleteOptions'
  const [group = '', version] = apiVersion.split('/')
  return version === undefined ? kind : `${group.split('.')[0]}.${version}.${kind}`
}

type Field = {
  readonly name: string
  readonly type: string
  readonly shape: 'one' | 'list' | 'map'
  /** Written only when it is set: its zero is kept. */
  readonly pointer: boolean
}
type Message = ReadonlyMap<number, Field>

const envelopeMessage = messageFrom('1 typeMeta:TypeMeta, 2 raw:raw, 3 contentEncoding:s')
const typeMetaMessage = messageFrom('1 apiVersion:s, 2 kind:s')

let known: ReadonlyMap<string, Message> | undefined

/** Read from their text when the first body in protobuf comes. */
function messages(): ReadonlyMap<string, Message> {
  known ??= new Map(
    protobufMessages
      .trim()
      .split('\n')
      .map((line) => {
        const at = line.indexOf(': ')
        return [line.slice(0, at), messageFrom(line.slice(at + 2))] as const
      }),
  )
  return known
}

function messageFrom(text: string): Message {
  return new Map(
    text.split(', ').map((field) => {
      const [, number, name = '', type = ''] = /^(\d+) ([^:]+):(.+)$/.exec(field) ?? []
      return [Number(number), { name, ...typeFrom(type) }]
    }),
  )
}

function typeFrom(text: string): Omit<Field, 'name'> {
  if (text.startsWith('{')) return { type: text.slice(1, -1), shape: 'map', pointer: false }
  const [last, plain] = [text.at(-1), text.slice(0, -1)]
  if (last === '*') return { type: plain, shape: 'list', pointer: false }
  return last === '?' ? { type: plain, shape: 'one', pointer: true } : { type: text, shape: 'one', pointer: false }
}

function readMessage(bytes: Buffer, message: Message, budget: Budget): JsonObject {
  const result: { [field: string]: unknown } = {}
  const lists = new Map<string, unknown[]>()
  const maps = new Map<string, [string, unknown][]>()
  for (const { number, value } of wireFields(bytes, budget)) {
    const field = message.get(number)
    if (field === undefined) continue // newer than we are, or a status that is not the client's to say
    const { name, type, shape } = field
    if (shape === 'map') added(maps, name, entryOf(asBytes(value), type, budget))
    else if (shape === 'list') added(lists, name, readValue(value, type, budget))
    else if (name === '...') Object.assign(result, readMessage(asBytes(value), messageOf(type), budget))
    else {
      const read = readValue(value, type, budget)
      if (field.pointer || !isEmpty(read)) result[name] = read
    }
  }
  for (const [name, list] of lists) result[name] = list
  for (const [name, entries] of maps) result[name] = Object.fromEntries(entries)
  return result
}

function added<T>(lists: Map<string, T[]>, name: string, item: T): void {
  const list = lists.get(name)
  if (list === undefined) lists.set(name, [item])
  else list.push(item)
}

function entryOf(bytes: Buffer, type: string, budget: Budget): [string, unknown] {
  const fields = [...wireFields(bytes, budget)]
  const key = fields.findLast(({ number }) => number === 1)?.value ?? Buffer.alloc(0)
  const value = fields.findLast(({ number }) => number === 2)?.value ?? Buffer.alloc(0)
  return [asBytes(key).toString('utf8'), readValue(value, type, budget)]
}

/** undefined: there is nothing to say. */
function readValue(value: WireValue, type: string, budget: Budget): unknown {
  switch (type) {
    case 's':
      return asBytes(value).toString('utf8')
    case 'y':
      return asBytes(value).toString('base64')
    case 'raw':
      return asBytes(value)
    case 'i':
      return Number(BigInt.asIntN(64, asNumber(value)))
    case 'b':
      return asNumber(value) !== 0n
    case 'Time':
      return timeOf(asBytes(value), 0, budget)
    case 'MicroTime':
      return timeOf(asBytes(value), 6, budget)
    case 'Quantity':
      return readMessage(asBytes(value), quantityMessage, budget)['text'] ?? '0'
    case 'IntOrString': {
      const { type: kind, number, text } = readMessage(asBytes(value), intOrStringMessage, budget)
      return kind === 1 ? (text ?? '') : (number ?? 0)
    }
    case 'ExtraValue':
      return readMessage(asBytes(value), itemsMessage, budget)['items'] ?? []
    case 'TypeMeta':
      return readMessage(asBytes(value), typeMetaMessage, budget)
    default:
      return readMessage(asBytes(value), messageOf(type), budget)
  }
}

const quantityMessage = messageFrom('1 text:s')
const intOrStringMessage = messageFrom('1 type:i, 2 number:i, 3 text:s')
const itemsMessage = messageFrom('1 items:s*')
const timeMessage = messageFrom('1 seconds:i?, 2 nanos:i')

function timeOf(bytes: Buffer, digits: 0 | 6, budget: Budget): string | undefined {
  const { seconds, nanos = 0 } = readMessage(bytes, timeMessage, budget)
  if (typeof seconds !== 'number') return undefined
  const time = new Date(seconds * 1000)
  if (Number.isNaN(time.getTime())) throw new ProtobufError('A time is out of range')
  const whole = time.toISOString().slice(0, 19)
  return digits === 0 ? `${whole}Z` : `${whole}.${String(Math.trunc(Number(nanos) / 1000)).padStart(6, '0')}Z`
}

function messageOf(type: string): Message {
  const message = messages().get(type)
  if (message === undefined) throw new ProtobufError(`${type} is not known`)
  return message
}

/** Go writes plain fields whether they say something or not. An empty object does say something: `emptyDir: {}`. */
function isEmpty(value: unknown): boolean {
  return value === undefined || value === '' || value === 0 || value === false
}

type WireValue = bigint | Buffer

/** How many more values may be read. */
type Budget = { left: number }

/** What the bytes themselves say: numbered values, each a number or a piece of the bytes. */
function* wireFields(bytes: Buffer, budget: Budget): Generator<{ readonly number: number; readonly value: WireValue }> {
  let at = 0
  const varint = () => {
    let value = 0n
    for (let shift = 0n; shift < 70n; shift += 7n) {
      const byte = bytes[at++]
      if (byte === undefined) throw new ProtobufError('It ends early')
      value |= BigInt(byte & 0x7f) << shift
      if (byte < 0x80) return value
    }
    throw new ProtobufError('A number has no end')
  }
  const piece = (length: number) => {
    if (length > bytes.length - at) throw new ProtobufError('It ends early')
    at += length
    return bytes.subarray(at - length, at)
  }
  while (at < bytes.length) {
    if (--budget.left < 0) throw tooManyValues()
    const tag = varint()
    const number = Number(tag >> 3n)
    switch (Number(tag & 7n)) {
      case 0:
        yield { number, value: varint() }
        break
      case 1:
        yield { number, value: piece(8) }
        break
      case 2:
        yield { number, value: piece(Number(varint())) }
        break
      case 5:
        yield { number, value: piece(4) }
        break
      default:
        throw new ProtobufError('It is no protobuf')
    }
  }
}

function asBytes(value: WireValue): Buffer {
  if (typeof value === 'bigint') throw new ProtobufError('A field is a number and should not be')
  return value
}

function asNumber(value: WireValue): bigint {
  if (typeof value !== 'bigint') throw new ProtobufError('A field should be a number')
  return value
}

function isObject(value: unknown): value is JsonObject {
  return typeof value === 'object' && value !== null
}

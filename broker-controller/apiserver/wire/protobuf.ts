/**
 * Bodies in protobuf, as kubectl sends them since 1.32: read into the objects that JSON would have given. The messages are
 * derived from the schemas, whose fields carry their numbers.
 */

import { keywordsOf, type TSchema } from '../../../api/schema.ts'
import { isObject, type JsonObject } from '../../../api/text/json.ts'
import { isIntricate, mostValues, tooManyValues } from './body-limits.ts'

/** The body is not protobuf, or no object can be read from it. */
export class ProtobufError extends Error {
  override readonly name = 'ProtobufError'
}

const magic = Buffer.from('k8s\0')

/**
 * The object in Kubernetes' envelope (apimachinery, runtime.Unknown), with its apiVersion and kind. An object of another
 * kind than `schema` describes has nothing else. Throws ProtobufError, and ApiError for more than `most` values.
 */
export function readProtobuf(bytes: Buffer, schema: TSchema, most = mostValues): JsonObject {
  const budget: Budget = { most, left: most, levels: 0 }
  if (!bytes.subarray(0, magic.length).equals(magic)) throw new ProtobufError('The body does not begin with k8s')
  const envelope = readMessage(bytes.subarray(magic.length), envelopeMessage, budget)
  const { apiVersion, kind } = isObject(envelope['typeMeta']) ? envelope['typeMeta'] : {}
  const { raw } = envelope
  if (typeof apiVersion !== 'string' || typeof kind !== 'string')
    throw new ProtobufError('The envelope has no apiVersion or kind')
  if (envelope['contentEncoding'] !== undefined) throw new ProtobufError('contentEncoding is not supported')
  const message = messageOf(schema)
  if (message.size === 0) throw new ProtobufError(`${apiVersion} ${kind} has no field numbers`)
  const { properties = {} } = keywordsOf(schema)
  if (!mayBe(properties['apiVersion'], apiVersion) || !mayBe(properties['kind'], kind)) return { apiVersion, kind }
  return { apiVersion, kind, ...readMessage(Buffer.isBuffer(raw) ? raw : Buffer.alloc(0), message, budget) }
}

/** Whether a schema of one or more words, or of any text, allows this one. */
function mayBe(schema: TSchema | undefined, word: string): boolean {
  const { anyOf = [] } = schema === undefined ? {} : keywordsOf(schema)
  return anyOf.length === 0 || anyOf.some((choice) => keywordsOf(choice).const === word)
}

/** A value of the wire as JSON has it; undefined: there is nothing. */
type ReadValue = (value: WireValue, budget: Budget) => unknown

type Field = {
  readonly name: string
  /** `inline`: its fields belong to the message around it. */
  readonly shape: 'one' | 'list' | 'map' | 'inline'
  readonly keepsZero: boolean
  readonly inline?: Map<number, Field>
  readonly read: ReadValue
}
type Message = ReadonlyMap<number, Field>

const messages = new WeakMap<object, Message>()

/** Derived when the first body of the schema comes. Empty where no field has a number. */
function messageOf(schema: TSchema): Message {
  const known = messages.get(schema)
  if (known !== undefined) return known
  const message = new Map<number, Field>()
  messages.set(schema, message)
  const { properties = {}, required = [], 'x-bramble-field-numbers': numbers = {} } = keywordsOf(schema)
  for (const [name, { path, pointer }] of Object.entries(numbers)) {
    const field = properties[name]
    if (field === undefined) continue
    const keepsZero = pointer || (required.includes(name) && isPlain(field))
    place(message, path, { name, keepsZero, ...shapeOf(field) })
  }
  return message
}

/** JSON has these also where they are zero, if they are required: `disruptionsAllowed: 0`, `ready: false`, `imageID: ""`. */
function isPlain(schema: TSchema): boolean {
  const { type, format } = keywordsOf(schema)
  return type === 'integer' || type === 'boolean' || (type === 'string' && format === undefined)
}

/** Puts the field where its path leads. */
function place(message: Map<number, Field>, [number = 0, ...further]: readonly number[], field: Field): void {
  if (further.length === 0) {
    message.set(number, field)
    return
  }
  const present = message.get(number)
  const inline = present?.inline ?? new Map<number, Field>()
  if (present === undefined) {
    const read: ReadValue = (value, budget) => readMessage(asBytes(value), inline, budget)
    message.set(number, { name: '', shape: 'inline', keepsZero: false, inline, read })
  }
  place(inline, further, field)
}

function shapeOf(schema: TSchema): Pick<Field, 'shape' | 'read'> {
  const { type, items, patternProperties } = keywordsOf(schema)
  if (type === 'array' && items !== undefined) return { shape: 'list', read: readerOf(items) }
  if (patternProperties === undefined) return { shape: 'one', read: readerOf(schema) }
  const values = Object.values(patternProperties)[0]
  return { shape: 'map', read: values === undefined ? readBytes : readerOf(values) }
}

function readerOf(schema: TSchema): ReadValue {
  const keywords = keywordsOf(schema)
  const { 'x-bramble-message': message } = keywords
  if (message !== undefined) return (value, budget) => readerOf(message())(value, budget)
  if (keywords['x-bramble-last-field']) return (value, budget) => lastOf(messageOf(schema), value, budget)
  if (keywords['x-kubernetes-quantity']) return readQuantity
  if (keywords['x-kubernetes-int-or-string']) return readIntOrString
  if (keywords['x-bramble-raw-json']) return readRawJson
  if (keywords['x-bramble-time'] !== undefined) return timeReader(keywords['x-bramble-time'] === 'seconds' ? 0 : 6)
  if (keywords.format === 'byte') return readBytes
  switch (keywords.type) {
    case 'integer':
      return readInteger
    case 'number':
      return readDouble
    case 'boolean':
      return readBoolean
    case 'array':
      return readTexts
    case 'object':
      return (value, budget) => readMessage(asBytes(value), messageOf(schema), budget)
    case 'string':
      return readText
    default:
      // A choice of words is text; of a value of any shape (a volume source that is refused) its presence is enough.
      return keywords.anyOf === undefined && keywords.const === undefined ? readBytes : readText
  }
}

function lastOf(message: Message, value: WireValue, budget: Budget): unknown {
  const read = readMessage(asBytes(value), message, budget)
  return [...message.values()].map(({ name }) => read[name]).findLast((one) => one !== undefined)
}

const readText: ReadValue = (value) => asBytes(value).toString('utf8')
const readBytes: ReadValue = (value) => asBytes(value).toString('base64')
const readInteger: ReadValue = (value) => Number(BigInt.asIntN(64, asNumber(value)))
const readDouble: ReadValue = (value) => {
  const bytes = asBytes(value)
  if (bytes.length !== 8) throw new ProtobufError('A double does not have 8 bytes')
  const double = bytes.readDoubleLE()
  if (!Number.isFinite(double)) throw new ProtobufError('A double is not a finite number')
  return double
}
const readBoolean: ReadValue = (value) => asNumber(value) !== 0n
/** ExtraValue: a list as a message of its own. */
const readTexts: ReadValue = (value, budget) => readMessage(asBytes(value), textsMessage, budget)['items'] ?? []
const readQuantity: ReadValue = (value, budget) => readMessage(asBytes(value), quantityMessage, budget)['text'] ?? '0'
const readIntOrString: ReadValue = (value, budget) => {
  const { type, number, text } = readMessage(asBytes(value), intOrStringMessage, budget)
  return type === 1 ? (text ?? '') : (number ?? 0)
}

/** Bounded before it is parsed, as a body in JSON is. */
const readRawJson: ReadValue = (value, budget) => {
  const { raw } = readMessage(asBytes(value), rawJsonMessage, budget)
  if (!Buffer.isBuffer(raw)) return undefined
  if (isIntricate(raw, budget.left)) throw tooManyValues(budget.most)
  try {
    return JSON.parse(raw.toString('utf8'))
  } catch {
    throw new ProtobufError('A raw extension is not JSON')
  }
}

function timeReader(digits: 0 | 6): ReadValue {
  return (value, budget) => {
    const { seconds, nanos = 0 } = readMessage(asBytes(value), timeMessage, budget)
    if (typeof seconds !== 'number') return undefined
    const time = new Date(seconds * 1000)
    if (Number.isNaN(time.getTime())) throw new ProtobufError('A time is out of range')
    const whole = time.toISOString().slice(0, 19)
    return digits === 0 ? `${whole}Z` : `${whole}.${String(Math.trunc(Number(nanos) / 1000)).padStart(6, '0')}Z`
  }
}

const one = (name: string, read: ReadValue, keepsZero = false): Field => ({ name, read, keepsZero, shape: 'one' })
const quantityMessage: Message = new Map([[1, one('text', readText)]])
const rawJsonMessage: Message = new Map([[1, one('raw', asBytes)]])
const textsMessage: Message = new Map([[1, { ...one('items', readText), shape: 'list' }]])
const intOrStringMessage: Message = new Map([
  [1, one('type', readInteger)],
  [2, one('number', readInteger)],
  [3, one('text', readText)],
])
const timeMessage: Message = new Map([
  [1, one('seconds', readInteger, true)],
  [2, one('nanos', readInteger)],
])
const typeMetaMessage: Message = new Map([
  [1, one('apiVersion', readText)],
  [2, one('kind', readText)],
])
const envelopeMessage: Message = new Map([
  [1, one('typeMeta', (value, budget) => readMessage(asBytes(value), typeMetaMessage, budget))],
  [2, one('raw', asBytes)],
  [3, one('contentEncoding', readText)],
])

function readMessage(bytes: Buffer, message: Message, budget: Budget): JsonObject {
  const result: { [field: string]: unknown } = {}
  const lists = new Map<string, unknown[]>()
  const maps = new Map<string, [string, unknown][]>()
  if (++budget.levels > mostLevels) throw new ProtobufError(`The message has more than ${mostLevels} levels`)
  for (const { number, value } of wireFields(bytes, budget)) {
    const field = message.get(number)
    if (field === undefined) continue // newer than this table
    const { name, shape, keepsZero, read } = field
    if (shape === 'map') added(maps, name, entryOf(asBytes(value), read, budget))
    else if (shape === 'list') added(lists, name, read(value, budget))
    else if (shape === 'inline') Object.assign(result, read(value, budget))
    else setUnlessEmpty(result, name, read(value, budget), keepsZero)
  }
  for (const [name, list] of lists) result[name] = list
  for (const [name, entries] of maps) result[name] = Object.fromEntries(entries)
  budget.levels--
  return result
}

function setUnlessEmpty(fields: { [field: string]: unknown }, name: string, value: unknown, keepsZero?: boolean): void {
  if (keepsZero || !isEmpty(value)) fields[name] = value
}

function added<T>(lists: Map<string, T[]>, name: string, item: T): void {
  const list = lists.get(name)
  if (list === undefined) lists.set(name, [item])
  else list.push(item)
}

function entryOf(bytes: Buffer, read: ReadValue, budget: Budget): [string, unknown] {
  const fields = [...wireFields(bytes, budget)]
  const key = fields.findLast(({ number }) => number === 1)?.value ?? Buffer.alloc(0)
  const value = fields.findLast(({ number }) => number === 2)?.value ?? Buffer.alloc(0)
  return [asBytes(key).toString('utf8'), read(value, budget)]
}

/** Go writes plain fields whether they are set or not. An empty object is set: `emptyDir: {}`. */
function isEmpty(value: unknown): boolean {
  return value === undefined || value === '' || value === 0 || value === false
}

type WireValue = bigint | Buffer

/** Messages in messages: JSON has at most 100 levels, and some of them take two. */
const mostLevels = 200

/** How many more values may be read, and the levels around the present one. */
type Budget = { readonly most: number; left: number; levels: number }

/** The bytes as numbered values, each a number or a piece of the bytes. */
function* wireFields(bytes: Buffer, budget: Budget): Generator<{ readonly number: number; readonly value: WireValue }> {
  let at = 0
  const varint = () => {
    let value = 0n
    for (let shift = 0n; shift < 70n; shift += 7n) {
      const byte = bytes[at++]
      if (byte === undefined) throw new ProtobufError('The message is truncated')
      value |= BigInt(byte & 0x7f) << shift
      if (byte < 0x80) return value
    }
    throw new ProtobufError('A varint is too long')
  }
  const piece = (length: number) => {
    if (length > bytes.length - at) throw new ProtobufError('The message is truncated')
    at += length
    return bytes.subarray(at - length, at)
  }
  while (at < bytes.length) {
    if (--budget.left < 0) throw tooManyValues(budget.most)
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
        throw new ProtobufError('A tag is not valid')
    }
  }
}

function asBytes(value: WireValue): Buffer {
  if (typeof value === 'bigint') throw new ProtobufError('A field has the wrong wire type: varint')
  return value
}

function asNumber(value: WireValue): bigint {
  if (typeof value !== 'bigint') throw new ProtobufError('A field has the wrong wire type: not a varint')
  return value
}

/**
 * The 2.0 document as a message (github.com/google/gnostic-models, openapiv2/OpenAPIv2.proto), as client-go and old kubectls ask for it. What of
 * JSON has no field there is left out; values of any shape are YAML in it, which JSON is too.
 */
import { isObject, type JsonObject } from '../../../api/text/json.ts'
import {
  type BytesWriter,
  bytesWriter,
  writeBytes,
  writeVarint,
  written,
} from '../../../daemon/protobuf/protobuf-bytes.ts'
import type { DocumentParts } from './document-parts.ts'

/** In front of what was written before; nothing where the value has another type. */
type Write = (to: BytesWriter, number: number, value: unknown) => void

/** The fields of a message by their names in JSON. */
type Message = {
  readonly fields: ReadonlyMap<string, readonly [number: number, write: Write]>
  /** The number of the list of fields `x-…`. */
  readonly extensions: number
}

const varintWire = 0
const doubleWire = 1
const lengthWire = 2

/** In pieces, each of them a path or a definition. `head`: what is beside these. */
export function* protobufDocument(
  head: JsonObject,
  { paths, types, parameters }: DocumentParts,
): Generator<undefined, Buffer> {
  const to = bytesWriter()
  if (parameters.size > 0) yield* namedInPieces(to, 10, 1, plainParameter, [...parameters])
  yield* namedInPieces(to, 9, 1, (at, number, type) => schema(at, number, (type as () => JsonObject)()), [...types])
  yield* namedInPieces(to, 8, 2, pathItem, [...paths])
  message(() => infoMessage)(to, 2, head['info'])
  text(to, 1, head['swagger'])
  return to.bytes.subarray(to.at)
}

function* namedInPieces(
  to: BytesWriter,
  number: number,
  item: number,
  inner: Write,
  entries: readonly (readonly [string, unknown])[],
) {
  const end = written(to)
  for (const entry of entries.toReversed()) {
    writeNamed(to, item, inner, entry)
    yield
  }
  writeHead(to, number, end)
}

function entriesOf(values: unknown): [string, unknown][] {
  return isObject(values) ? Object.entries(values) : []
}

/** The tag and the length of what was written since. */
function writeHead(to: BytesWriter, number: number, since: number): void {
  writeVarint(to, written(to) - since)
  writeVarint(to, number * 8 + lengthWire)
}

/** An entry of a map: a message of its name and its value. */
function writeNamed(to: BytesWriter, number: number, inner: Write, [name, value]: readonly [string, unknown]): void {
  const end = written(to)
  inner(to, 2, value)
  text(to, 1, name)
  writeHead(to, number, end)
}

const text: Write = (to, number, value) => {
  if (typeof value !== 'string') return
  const end = written(to)
  writeBytes(to, Buffer.from(value))
  writeHead(to, number, end)
}

const truth: Write = (to, number, value) => {
  if (typeof value !== 'boolean') return
  writeVarint(to, value ? 1 : 0)
  writeVarint(to, number * 8 + varintWire)
}

const integer: Write = (to, number, value) => {
  if (typeof value !== 'number' || !Number.isInteger(value)) return
  writeVarint(to, value < 0 ? BigInt.asUintN(64, BigInt(value)) : value)
  writeVarint(to, number * 8 + varintWire)
}

const double: Write = (to, number, value) => {
  if (typeof value !== 'number') return
  const bytes = Buffer.alloc(8)
  bytes.writeDoubleLE(value)
  writeBytes(to, bytes)
  writeVarint(to, number * 8 + doubleWire)
}

const anything: Write = (to, number, value) => {
  const end = written(to)
  text(to, 2, JSON.stringify(value))
  writeHead(to, number, end)
}

const listOf =
  (inner: Write): Write =>
  (to, number, value) => {
    if (Array.isArray(value)) for (const item of [...value].reverse()) inner(to, number, item)
  }

/** A message that has this as its field of that number: what JSON has as one value or as several. */
const within =
  (number: number, inner: Write): Write =>
  (to, outer, value) => {
    const end = written(to)
    inner(to, number, value)
    writeHead(to, outer, end)
  }

const mapOf =
  (item: number, inner: Write): Write =>
  (to, number, value) => {
    const end = written(to)
    for (const entry of entriesOf(value).reverse()) writeNamed(to, item, inner, entry)
    writeHead(to, number, end)
  }

/** `of` is called where the message is written: a schema has schemas in it. */
const message =
  (of: () => Message): Write =>
  (to, number, value) => {
    if (!isObject(value)) return
    const { fields, extensions } = of()
    const end = written(to)
    const given = Object.entries(value).filter(([, one]) => one !== undefined)
    for (const entry of given.filter(([name]) => name.startsWith('x-')).reverse()) {
      writeNamed(to, extensions, anything, entry)
    }
    for (const [name, one] of given) {
      const [at, write] = fields.get(name) ?? []
      if (at !== undefined && write !== undefined) write(to, at, one)
    }
    writeHead(to, number, end)
  }

type Fields = { readonly [name: string]: readonly [number, Write] }

const messageOf = (extensions: number, fields: Fields): Message => ({
  fields: new Map(Object.entries(fields)),
  extensions,
})
const schema = message(() => schemaMessage)
const texts = listOf(text)
const oneOrMore =
  (inner: Write): Write =>
  (to, number, value) =>
    listOf(inner)(to, number, Array.isArray(value) ? value : [value])
const schemaOrTruth: Write = (to, _, value) => (typeof value === 'boolean' ? truth(to, 2, value) : schema(to, 1, value))

const schemaMessage = messageOf(31, {
  $ref: [1, text],
  format: [2, text],
  title: [3, text],
  description: [4, text],
  default: [5, anything],
  multipleOf: [6, double],
  maximum: [7, double],
  exclusiveMaximum: [8, truth],
  minimum: [9, double],
  exclusiveMinimum: [10, truth],
  maxLength: [11, integer],
  minLength: [12, integer],
  pattern: [13, text],
  maxItems: [14, integer],
  minItems: [15, integer],
  uniqueItems: [16, truth],
  maxProperties: [17, integer],
  minProperties: [18, integer],
  required: [19, texts],
  enum: [20, listOf(anything)],
  additionalProperties: [21, within(1, schemaOrTruth)],
  type: [22, within(1, oneOrMore(text))],
  items: [23, within(1, oneOrMore(schema))],
  allOf: [24, listOf(schema)],
  properties: [25, mapOf(1, schema)],
  example: [30, anything],
})
const infoMessage = messageOf(7, { title: [1, text], version: [2, text], description: [3, text] })

const bodyMessage = messageOf(6, {
  description: [1, text],
  name: [2, text],
  in: [3, text],
  required: [4, truth],
  schema: [5, schema],
})
const place: Fields = { required: [1, truth], in: [2, text], description: [3, text], name: [4, text] }
const queryMessage = messageOf(23, { ...place, type: [6, text], format: [7, text], uniqueItems: [20, truth] })
const pathMessage = messageOf(22, { ...place, type: [5, text], format: [6, text], uniqueItems: [18, truth] })

/** Each choice is a message around the message. */
const plainParameter: Write = (to, number, value) => {
  const inside = isObject(value) ? value['in'] : undefined
  const body = message(() => bodyMessage)
  if (inside === 'body') within(1, body)(to, number, value)
  const query = message(() => queryMessage)
  if (inside === 'query') within(2, within(3, query))(to, number, value)
  const inPath = message(() => pathMessage)
  if (inside === 'path') within(2, within(4, inPath))(to, number, value)
}

/** A parameter of an operation or a path, which may refer to one of the document. */
const parameter: Write = (to, number, value) => {
  const reference = isObject(value) ? value['$ref'] : undefined
  if (reference === undefined) within(1, plainParameter)(to, number, value)
  else within(2, within(1, text))(to, number, reference)
}

const responseMessage = messageOf(5, { description: [1, text], schema: [2, within(1, schema)] })
const operation = message(() => operationMessage)
const operationMessage = messageOf(13, {
  tags: [1, texts],
  summary: [2, text],
  description: [3, text],
  operationId: [5, text],
  produces: [6, texts],
  consumes: [7, texts],
  parameters: [8, listOf(parameter)],
  responses: [
    9,
    mapOf(
      1,
      within(
        1,
        message(() => responseMessage),
      ),
    ),
  ],
  deprecated: [11, truth],
})
const pathItem = message(() => pathItemMessage)
const pathItemMessage = messageOf(10, {
  get: [2, operation],
  put: [3, operation],
  post: [4, operation],
  delete: [5, operation],
  patch: [8, operation],
  parameters: [9, listOf(parameter)],
})

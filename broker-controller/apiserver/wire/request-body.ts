/** Decodes a request body into an object of the kind that the path names, or lists every problem. */

import { isUtf8 } from 'node:buffer'
import { ApiError } from '../../../api/api-error.ts'
import { decode, readWith } from '../../../api/decode.ts'
import type { Identity } from '../../../api/identity.ts'
import type { AnyObject, KubeObject } from '../../../api/meta.ts'
import {
  clipped,
  invalidObject,
  mostProblems,
  nameText,
  notSupported,
  type Problem,
  quoted,
} from '../../../api/problem.ts'
import { apiVersionOf, type Resource } from '../../../api/resources.ts'
import type { Described, TSchema } from '../../../api/schema.ts'
import { isObject, parseJson } from '../../../api/text/json.ts'
import { messageOf } from '../../../daemon/errors.ts'
import {
  refuseIntricateJson,
  refuseIntricateValue,
  refuseLongBody,
  refuseYaml,
  refuseYamlOfMachines,
} from './body-limits.ts'
import { bodyForm, unsupportedBody } from './content-negotiation.ts'
import { duplicateFields } from './duplicate-fields.ts'
import { withOwnersOnce } from './owner-references.ts'
import { ProtobufError, readProtobuf } from './protobuf.ts'
import type { YamlParser } from './yaml-body.ts'

/** What to do about fields that are in no schema. */
export type FieldValidation = 'Strict' | 'Warn' | 'Ignore'

/** What a client gave more than once. */
export type Repeated = {
  /** The paths of fields in JSON. */
  readonly fields: readonly string[]
  /** Keys in YAML, each as a sentence. */
  readonly keys: readonly string[]
}

const nothingRepeated: Repeated = { fields: [], keys: [] }

export type Read<T> = { readonly value: T; readonly warnings: readonly string[] }

export type OptionsKind = 'CreateOptions' | 'UpdateOptions' | 'PatchOptions' | 'DeleteOptions'

export function fieldValidation(query: URLSearchParams, kind: OptionsKind = 'CreateOptions'): FieldValidation {
  const asked = query.get('fieldValidation') || 'Warn'
  if (asked === 'Strict' || asked === 'Warn' || asked === 'Ignore') return asked
  throw invalidOptions(kind, notSupported('fieldValidation', asked, ['Ignore', 'Strict', 'Warn']))
}

/** Whether this is a dry run: the answer is computed, and nothing is stored. `more`: the values in the body of a deletion. */
export function isDryRun(
  query: URLSearchParams,
  kind: OptionsKind = 'CreateOptions',
  more: readonly string[] = [],
): boolean {
  const asked = [...query.getAll('dryRun'), ...more].filter((value) => value !== '')
  if (asked.every((value) => value === 'All')) return asked.length > 0
  throw invalidOptions(kind, notSupported('dryRun', asked, ['All']))
}

/** As ValidateCreateOptions and the others (apimachinery, meta/v1/validation). */
function invalidOptions(kind: OptionsKind, problem: Problem): ApiError {
  return invalidObject({ kind, group: 'meta.k8s.io' }, '', [problem])
}

/** The sender of the body, and its content type. */
type Sender = { readonly identity: Identity; readonly contentType: string | undefined }

/** What a body is read as. `mostValues`: its fields and items; undefined: those of any body. */
type BodyOf = { readonly schema: TSchema; readonly mostValues?: number | undefined }

/**
 * JSON, or YAML or protobuf where the client states it; protobuf is read as an object of `schema`. Throws BadRequest where it cannot be read, UnsupportedMediaType
 * where this client may not use that form, RequestEntityTooLarge where it is too long or has too many values.
 */
export function parseBody(
  body: Buffer,
  { identity, contentType }: Sender,
  { schema, mostValues }: BodyOf,
  parseYaml: YamlParser,
): unknown {
  refuseLongBody(body, identity)
  switch (bodyForm(contentType)) {
    case 'json':
      return parseJsonBody(body, mostValues)
    case 'yaml':
      refuseYaml(body, identity)
      return parsedYaml(body, (text) => parseYaml(text))
    case 'protobuf':
      return parsedProtobuf(body, schema, mostValues)
  }
}

/**
 * The body of an apply: YAML, which JSON is a part of. JSON is read as such, for it costs less and may be longer. Throws
 * BadRequest where it cannot be read, UnsupportedMediaType where this client may send JSON only, RequestEntityTooLarge where it is too
 * long or has too many values.
 */
export function parseApplyBody(
  body: Buffer,
  identity: Identity,
  parseYaml: YamlParser,
  mostValues?: number,
): { readonly input: unknown; readonly repeated: Repeated } {
  refuseLongBody(body, identity)
  if (startsAsJson(body)) {
    refuseIntricateJson(body, mostValues)
    const input = parseJson(body.toString('utf8'))
    if (input !== undefined) return { input, repeated: { fields: duplicateFields(body), keys: [] } }
  }
  refuseYamlOfMachines(body, identity)
  const keys = new Set<string>()
  const input = parsedYaml(body, (text) => parseYaml(text, upToMost(keys)))
  return { input, repeated: { fields: [], keys: [...keys] } }
}

function upToMost(sentences: Set<string>): (sentence: string) => void {
  return (sentence) => {
    if (sentences.size < mostProblems) sentences.add(sentence)
  }
}

function startsAsJson(body: Buffer): boolean {
  return body.toString('latin1', 0, 64).trimStart().startsWith('{')
}

/** An alias stands for a value of any size, so values are counted once the text is read. Go's reader of YAML refuses what is not UTF-8, that of JSON does not. */
function parsedYaml(body: Buffer, parseYaml: YamlParser): unknown {
  if (!isUtf8(body)) throw new ApiError('BadRequest', 'the body of the request cannot be read: it is not UTF-8')
  const value = parsed(body, parseYaml)
  refuseIntricateValue(value)
  return value
}

/** Throws BadRequest where it is not JSON, RequestEntityTooLarge where it has too many values. */
export function parseJsonBody(body: Buffer, most?: number): unknown {
  refuseIntricateJson(body, most)
  return parsed(body, JSON.parse)
}

/** Go writes most fields also where they are empty: in the schemas of real definitions there are four for each value. */
const fieldsOfValue = 4

function parsedProtobuf(body: Buffer, schema: TSchema, most?: number): unknown {
  try {
    return readProtobuf(body, schema, most === undefined ? undefined : most * fieldsOfValue)
  } catch (error) {
    if (error instanceof ProtobufError) throw unsupportedBody(error)
    throw error
  }
}

function parsed(body: Buffer, parse: (text: string) => unknown): unknown {
  try {
    return parse(body.toString('utf8'))
  } catch (cause) {
    const because = clipped(messageOf(cause), 256)
    throw new ApiError('BadRequest', `the body of the request cannot be read: ${because}`, undefined, { cause })
  }
}

/** What a body that was read before gives twice, if it matters; of protobuf nothing. All parsers keep the last one. */
export function repeatedFields(
  body: Buffer,
  contentType: string | undefined,
  validation: FieldValidation,
  parseYaml: YamlParser,
): Repeated {
  const form = bodyForm(contentType)
  if (validation === 'Ignore' || form === 'protobuf') return nothingRepeated
  if (form === 'json') return { fields: duplicateFields(body), keys: [] }
  const keys = new Set<string>()
  parseYaml(body.toString('utf8'), upToMost(keys))
  return { fields: [], keys: [...keys] }
}

/** `repeated`: what the client gave more than once. */
export function readObject(
  resource: Resource,
  input: unknown,
  validation: FieldValidation,
  repeated: Repeated = nothingRepeated,
): Read<AnyObject> {
  const typed = withType(input, { apiVersion: apiVersionOf(resource), kind: resource.kind })
  refuseOtherKind(resource, typed)
  const decoded = readWith(resource.reader, typed)
  if (!decoded.ok) throw invalidObject(resource, nameIn(typed), decoded.problems)
  // Every reader of a row gives an object with metadata.
  const { object: value, warnings } = withOwnersOnce(decoded.value as AnyObject)
  return { value, warnings: [...judged(resource, decoded.unknownFields, repeated, validation), ...warnings] }
}

/** The object in the namespace that the path names. BadRequest where the object names another. */
export function inNamespace(given: AnyObject, namespace: string): AnyObject {
  const own = given.metadata.namespace ?? ''
  if (own !== '' && own !== namespace) {
    const message = 'the namespace of the provided object does not match the namespace sent on the request'
    throw new ApiError('BadRequest', message)
  }
  const { namespace: _, ...metadata } = given.metadata
  return { ...given, metadata: namespace === '' ? metadata : { ...metadata, namespace } }
}

/** A small body that is not a kind of its own: delete options, a binding. */
export function readAs<const S extends TSchema>(schema: S, kind: string, input: unknown): Described<S> {
  const decoded = decode(schema, input)
  if (decoded.ok) return decoded.value
  throw invalidObject({ kind, group: '' }, nameIn(input), decoded.problems)
}

/**
 * The kind and the version that the body leaves out, or has as null, are those of the path: typed clients send none (gvkWithDefaults in
 * staging/src/k8s.io/apimachinery/pkg/runtime/serializer/json/json.go).
 */
export function withType(input: unknown, type: { readonly apiVersion: string; readonly kind: string }): unknown {
  if (!isObject(input)) return input
  const [apiVersion, kind] = [input['apiVersion'] ?? '', input['kind'] ?? '']
  if (apiVersion !== '' && kind !== '') return input
  return { ...input, apiVersion: apiVersion || type.apiVersion, kind: kind || type.kind }
}

function refuseOtherKind(resource: Resource, input: unknown): void {
  if (!isObject(input)) throw new ApiError('BadRequest', `${cannotBe(resource)}: the body must be an object`)
  const { apiVersion, kind } = input
  const wanted = apiVersionOf(resource)
  if (apiVersion === wanted && kind === resource.kind) return
  const because = `the object is a ${nameText(kind)} in version ${quoted(apiVersion ?? '')}, not a ${resource.kind} in version "${wanted}"`
  throw new ApiError('BadRequest', `${cannotBe(resource)}: ${because}`)
}

function judged(
  resource: Resource,
  unknown: readonly string[],
  { fields, keys }: Repeated,
  validation: FieldValidation,
): readonly string[] {
  if (unknown.length + fields.length + keys.length === 0 || validation === 'Ignore') return []
  const isKnown = (field: string) => !unknown.some((one) => field === one || /^[.[]/.test(afterwards(field, one)))
  const sentences = [
    ...unknown.map((field) => `unknown field "${clipped(field, 256)}"`),
    ...fields.filter(isKnown).map((field) => `duplicate field "${clipped(field, 256)}"`),
    ...keys.map((sentence) => clipped(sentence, 256)),
  ].slice(0, mostProblems)
  if (validation === 'Warn') return sentences
  throw new ApiError('BadRequest', `${cannotBe(resource)}: strict decoding error: ${sentences.join(', ')}`)
}

/** What follows this beginning; '' where the text begins otherwise. */
function afterwards(text: string, beginning: string): string {
  return text.startsWith(beginning) ? text.slice(beginning.length) : ''
}

function cannotBe({ kind, version }: Resource): string {
  return `${kind} in version "${version}" cannot be handled as a ${kind}`
}

function nameIn(input: unknown): string {
  const metadata = isObject(input) ? (input as Partial<KubeObject>).metadata : undefined
  return typeof metadata?.name === 'string' ? metadata.name : ''
}

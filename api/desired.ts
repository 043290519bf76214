/** The desired state of a node, decoded: one object that this version cannot decode does not affect the others. */
import { type ConfigMap, ConfigMapSchema } from './config-map.ts'
import { type Decoded, decode } from './decode.ts'
import { ObjectMetaSchema } from './meta.ts'
import { type Pod, PodSchema } from './pod.ts'
import { problemText } from './problem.ts'
import { type Described, list, object, oneOf, optional, text } from './schema.ts'
import { type Secret, SecretSchema } from './secret.ts'
import { isObject, type JsonObject } from './text/json.ts'
import { DesiredMessageSchema, DesiredReferencesSchema } from './topics.ts'

/** The identity of the object, why it could not be decoded, and the name of its content. */
const MisreadSchema = object({
  kind: oneOf('Pod', 'ConfigMap', 'Secret'),
  namespace: text,
  name: text,
  uid: text,
  why: text,
  content: optional(text),
})
export type Misread = Described<typeof MisreadSchema>

const DesiredSchema = object({ ...DesiredMessageSchema.properties, misread: optional(list(MisreadSchema)) })
/**
 * `misread`: also wanted here, with fields or values that this version cannot decode. `names`: of the objects in the lists; a list may have
 * others after those that have a name.
 */
export type Desired = Described<typeof DesiredSchema>

/** An object of the desired state as it was decoded. */
export type Content =
  | { readonly kind: 'Pod'; readonly object: Pod }
  | { readonly kind: 'ConfigMap'; readonly object: ConfigMap }
  | { readonly kind: 'Secret'; readonly object: Secret }
  | { readonly kind: 'misread'; readonly misread: Misread }

/** By name. */
export type ContentsByName = ReadonlyMap<string, Content>

/** `desired` as it was received. With `contents` it has no objects: those that its `names` refer to are in them, or held by the node. */
export type ReceivedDesired = Desired & { readonly contents?: ContentsByName }

/** Which field has which objects, and their schema. */
const lists = [
  { field: 'pods', kind: 'Pod', schema: PodSchema },
  { field: 'configMaps', kind: 'ConfigMap', schema: ConfigMapSchema },
  { field: 'secrets', kind: 'Secret', schema: SecretSchema },
] as const
type ObjectList = (typeof lists)[number]

const NamedSchema = object({ metadata: ObjectMetaSchema })

/** One list of objects; `names`: of those that are understood and have a name. */
function readItems(list: ObjectList, items: readonly unknown[], itemNames: readonly string[] | undefined) {
  const [understood, names, misread]: [unknown[], string[], Misread[]] = [[], [], []]
  for (const [index, item] of items.entries()) {
    const name = itemNames?.[index]
    const usable = understoodOf(list, item)
    if ('misread' in usable) {
      misread.push({ ...usable.misread, ...(name !== undefined && { content: name }) })
      continue
    }
    understood.push(usable.item)
    if (name !== undefined) names.push(name)
  }
  return { understood, names, misread }
}

/**
 * Strict in all but single objects: those need only their identity. A pod that is to be removed need not be valid
 * otherwise; it is returned without its containers.
 */
export function decodeDesired(input: unknown): Decoded<Desired> {
  const whole = decode(DesiredSchema, input)
  if (whole.ok) return { ...whole, value: withFittingNames(whole.value) }
  if (!isObject(input)) return whole
  const misread: Misread[] = []
  const found: { [field: string]: unknown } = {}
  const kept: { [field: string]: readonly string[] } = {}
  for (const one of lists) {
    const items = input[one.field]
    if (!Array.isArray(items)) continue
    const read = readItems(one, items, namesIn(input, one.field, items.length))
    found[one.field] = read.understood
    kept[one.field] = read.names
    misread.push(...read.misread)
  }
  const named = input['names'] === undefined ? {} : { names: kept }
  const rest = decode(DesiredSchema, { ...input, ...found, ...named })
  if (!rest.ok) return rest
  const value = withFittingNames(rest.value)
  if (misread.length === 0) return { ...rest, value }
  return { ...rest, value: { ...value, misread: [...(value.misread ?? []), ...misread] } }
}

/** A message of the controller in either form. */
export function decodeReceivedDesired(input: unknown): Decoded<ReceivedDesired> {
  if (!isObject(input) || input['contents'] === undefined) return decodeDesired(input)
  const message = decode(DesiredReferencesSchema, input)
  if (!message.ok) return message
  const { contents: texts, ...rest } = message.value
  const contents = new Map<string, Content>()
  for (const one of lists) {
    for (const name of rest.names[one.field] ?? []) {
      if (!Object.hasOwn(texts, name)) continue
      const content = decodeContent(one, name, texts[name])
      if (!content.ok) return content
      contents.set(name, content.value)
    }
  }
  return { ...message, value: { ...rest, pods: [], contents } }
}

function decodeContent(objects: ObjectList, name: string, item: unknown): Decoded<Content> {
  const decoded = decode(objects.schema, item)
  if (decoded.ok) return contentOf(objects, decoded)
  const usable = understoodOf(objects, item)
  if ('misread' in usable) {
    const misread = { ...usable.misread, content: name }
    return { ok: true, value: { kind: 'misread', misread }, unknownFields: [] }
  }
  return contentOf(objects, decode(objects.schema, usable.item))
}

function contentOf({ kind }: ObjectList, decoded: Decoded<unknown>): Decoded<Content> {
  return decoded.ok ? { ...decoded, value: { kind, object: decoded.value } as Content } : decoded
}

function understoodOf(
  { kind, schema }: ObjectList,
  item: unknown,
): { readonly item: unknown } | { readonly misread: Misread } {
  const decoded = decode(schema, item)
  if (decoded.ok) return { item }
  const named = decode(NamedSchema, item)
  const { name, namespace = '', uid, deletionTimestamp } = named.ok ? named.value.metadata : {}
  if (!named.ok || name === undefined || uid === undefined) return { item }
  if (kind === 'Pod' && deletionTimestamp !== undefined) return { item: leaving(named.value) }
  // Values of a Secret never appear in a message.
  const reported = decoded.problems.slice(0, 3).map((one) => (kind === 'Secret' ? one.field : problemText(one)))
  return { misread: { kind, namespace, name, uid, why: reported.join(', ') } }
}

/** undefined: there are none, or not one for each object. */
function namesIn(input: JsonObject, field: ObjectList['field'], count: number): readonly string[] | undefined {
  const names = isObject(input['names']) ? input['names'][field] : undefined
  return Array.isArray(names) && names.length === count && names.every((name) => typeof name === 'string')
    ? names
    : undefined
}

/** Names count if no list has fewer objects. */
function withFittingNames(desired: Desired): Desired {
  const { names, ...rest } = desired
  if (names === undefined || lists.every(({ field }) => (names[field] ?? []).length <= (rest[field] ?? []).length))
    return desired
  return rest
}

function leaving({ metadata }: Described<typeof NamedSchema>) {
  return { apiVersion: 'v1', kind: 'Pod', metadata, spec: { containers: [] } }
}

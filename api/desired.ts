/** The desired state of a node, decoded: one object that this version cannot decode does not affect the others. */
import { ConfigMapSchema } from './config-map.ts'
import { type Decoded, decode } from './decode.ts'
import { ObjectMetaSchema } from './meta.ts'
import { PodSchema } from './pod.ts'
import { problemText } from './problem.ts'
import { type Described, list, object, oneOf, optional, type TSchema, text } from './schema.ts'
import { SecretSchema } from './secret.ts'
import { DesiredMessageSchema } from './topics.ts'

/** The identity of the object, and why it could not be decoded. */
const MisreadSchema = object({
  kind: oneOf('Pod', 'ConfigMap', 'Secret'),
  namespace: text,
  name: text,
  uid: text,
  why: text,
})
export type Misread = Described<typeof MisreadSchema>

const DesiredSchema = object({ ...DesiredMessageSchema.properties, misread: optional(list(MisreadSchema)) })
/** `misread`: also wanted here, in words that are not known. */
export type Desired = Described<typeof DesiredSchema>

const NamedSchema = object({ metadata: ObjectMetaSchema })

/**
 * Strict in all but single objects: those need only their identity. Of a pod that is to go no more need be understood; it
 * is given without its containers.
 */
export function decodeDesired(input: unknown): Decoded<Desired> {
  const whole = decode(DesiredSchema, input)
  if (whole.ok || typeof input !== 'object' || input === null) return whole
  const misread: Misread[] = []
  const understood = (kind: Misread['kind'], schema: TSchema, items: unknown) =>
    Array.isArray(items) ? items.flatMap((item) => understoodOf(kind, schema, item)) : items
  const understoodOf = (kind: Misread['kind'], schema: TSchema, item: unknown): readonly unknown[] => {
    const decoded = decode(schema, item)
    if (decoded.ok) return [item]
    const named = decode(NamedSchema, item)
    const { name, namespace = '', uid, deletionTimestamp } = named.ok ? named.value.metadata : {}
    if (!named.ok || name === undefined || uid === undefined) return [item]
    if (kind === 'Pod' && deletionTimestamp !== undefined) return [leaving(named.value)]
    // Values of a Secret never appear in a message.
    const reported = decoded.problems.slice(0, 3).map((one) => (kind === 'Secret' ? one.field : problemText(one)))
    misread.push({ kind, namespace, name, uid, why: reported.join(', ') })
    return []
  }
  const { pods, configMaps, secrets } = input as { readonly [field: string]: unknown }
  const rest = decode(DesiredSchema, {
    ...input,
    pods: understood('Pod', PodSchema, pods),
    configMaps: understood('ConfigMap', ConfigMapSchema, configMaps),
    secrets: understood('Secret', SecretSchema, secrets),
  })
  if (!rest.ok || misread.length === 0) return rest
  return { ...rest, value: { ...rest.value, misread: [...(rest.value.misread ?? []), ...misread] } }
}

function leaving({ metadata }: Described<typeof NamedSchema>) {
  return { apiVersion: 'v1', kind: 'Pod', metadata, spec: { containers: [] } }
}

/**
 * The annotation of client-side apply. kubectl owns what it names, so that it can go over to server-side apply without a
 * conflict (managedfields/internal/lastappliedmanager.go), and it stays true for a kubectl that goes back
 * (lastappliedupdater.go).
 */
import type { AnyObject } from '../../../api/meta.ts'
import type { TSchema } from '../../../api/schema.ts'
import { fieldOf, isObject, type JsonObject, parseJson } from '../../../api/text/json.ts'
import { annotationProblems } from '../../../api/validation/metadata-validation.ts'
import { isIntricate } from '../wire/body-limits.ts'
import { difference, type FieldSet, fieldSet, noFields, oneField, union } from './field-set.ts'
import { compareValues, fieldsOfValue } from './typed-fields.ts'

const annotation = 'kubectl.kubernetes.io/last-applied-configuration'

export const lastAppliedPath: FieldSet = fieldSet([
  ['f:metadata', fieldSet([['f:annotations', fieldSet([[`f:${annotation}`, oneField]])]])],
])

/** The fields that client-side apply set and nothing changed since. */
export function lastAppliedFields(live: AnyObject | undefined, schema: TSchema): FieldSet {
  const configuration = parsedConfiguration(live?.metadata.annotations?.[annotation])
  if (live === undefined || !isObject(configuration) || configuration['apiVersion'] !== live.apiVersion) return noFields
  const { changed, removed } = compareValues(schema, configuration, live)
  return difference(fieldsOfValue(schema, configuration), union(changed, removed))
}

/** Any client can write an annotation. */
function parsedConfiguration(text: string | undefined): unknown {
  if (text === undefined) return undefined
  try {
    return isIntricate(Buffer.from(text)) ? undefined : parseJson(text)
  } catch {
    return undefined // nested too deeply
  }
}

/** The object with the annotation renewed from what is applied; undefined where it has none, or has no room for it. */
export function withLastApplied(object: unknown, given: unknown): JsonObject | undefined {
  if (!isObject(object) || !isObject(given)) return undefined
  const { metadata } = object
  const annotations = isObject(metadata) ? metadata['annotations'] : undefined
  if (!isObject(metadata) || !isObject(annotations) || !fieldOf(annotations, annotation)) return undefined
  const renewed: { [name: string]: unknown } = { ...annotations, [annotation]: configurationText(given) }
  if (annotationProblems('', textsOf(renewed)).length > 0) delete renewed[annotation]
  return { ...object, metadata: { ...metadata, annotations: renewed } }
}

/** As Go writes it: keys in order, and a line break at the end. */
function configurationText(given: JsonObject): string {
  const { metadata } = given
  const own = isObject(metadata) && isObject(metadata['annotations']) ? metadata['annotations'] : undefined
  if (own === undefined) return `${sortedJson(given)}\n`
  const { [annotation]: _, ...annotations } = own
  return `${sortedJson({ ...given, metadata: { ...(metadata as JsonObject), annotations } })}\n`
}

function sortedJson(value: unknown): string {
  return JSON.stringify(value, (_, inner: unknown) =>
    isObject(inner) ? Object.fromEntries(Object.entries(inner).sort(([a], [b]) => (a < b ? -1 : 1))) : inner,
  )
}

function textsOf(annotations: JsonObject): { readonly [name: string]: string } {
  return Object.fromEntries(Object.entries(annotations).map(([name, value]) => [name, String(value)]))
}

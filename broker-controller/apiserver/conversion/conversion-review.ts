/**
 * ConversionReview of apiextensions.k8s.io: what a conversion webhook is sent, and what its answer means (staging/src/k8s.io/
 * apiextensions-apiserver/pkg/apiserver/conversion/webhook_converter.go).
 */
import { ApiError } from '../../../api/api-error.ts'
import type { AnyObject, ObjectMeta } from '../../../api/meta.ts'
import { clipped, type Problem, problemText, quoted } from '../../../api/problem.ts'
import { isObject, type JsonObject } from '../../../api/text/json.ts'
import { annotationProblems, labelProblems } from '../../../api/validation/metadata-validation.ts'
import { jsonOf } from '../../store/object-json.ts'
import { hasPrototypeKey } from '../structural/prototype-keys.ts'

const group = 'apiextensions.k8s.io'

/** The versions of ConversionReview that are sent, of which a webhook accepts one. */
export const knownReviewVersions: readonly string[] = ['v1', 'v1beta1']

/** As kube-apiserver counts failures (conversion/metrics.go). */
export type ConversionFailure =
  | 'conversion_webhook_call_failure'
  | 'conversion_webhook_malformed_response_failure'
  | 'conversion_webhook_partial_response_failure'
  | 'conversion_webhook_invalid_converted_object_failure'

/** Objects could not be converted. The message is that of kube-apiserver. */
export class ConversionError extends ApiError {
  readonly failure: ConversionFailure

  constructor(failure: ConversionFailure, message: string, options: { readonly cause?: unknown } = {}) {
    super('InternalError', message, undefined, options)
    this.failure = failure
  }
}

/** One call: the objects, which have other versions, and the version that they are to have. */
export type Review = {
  readonly uid: string
  /** API version of the ConversionReview. */
  readonly version: string
  readonly objects: readonly AnyObject[]
  readonly apiVersion: string
}

/** The body of the call. */
export function reviewText({ uid, version, objects, apiVersion }: Review): string {
  const head = JSON.stringify({ kind: 'ConversionReview', apiVersion: `${group}/${version}` })
  const request = JSON.stringify({ uid, desiredAPIVersion: apiVersion })
  // Texts of stored objects are kept, and used again.
  const texts = objects.map((object) => (Object.isFrozen(object) ? jsonOf(object) : JSON.stringify(object)))
  return `${head.slice(0, -1)},"request":${request.slice(0, -1)},"objects":[${texts.join(',')}]}}`
}

/** The objects of the answer, in the order of the review. Not checked yet: see `convertedObject`. Throws ConversionError. */
export function answeredObjects(answer: unknown, { uid, version, objects }: Review): readonly unknown[] {
  const malformed = (because: string) =>
    new ConversionError('conversion_webhook_malformed_response_failure', `${failedText(objects)} failed: ${because}`)
  if (!isObject(answer)) throw malformed('the body of the answer is not an object')
  const { apiVersion, kind, response } = answer
  const isTyped = apiVersion === `${group}/${version}` && kind === 'ConversionReview'
  if (version === 'v1' && !isTyped) {
    const got = `${shortText(apiVersion)}, Kind=${shortText(kind)}`
    throw malformed(`expected webhook response of ${group}/v1, Kind=ConversionReview, got ${got}`)
  }
  if (!isObject(response)) throw malformed('no response provided')
  // v1beta1 never was checked for it.
  if (version === 'v1' && response['uid'] !== uid)
    throw malformed(`expected response.uid=${quoted(uid)}, got ${quoted(shortText(response['uid']))}`)
  const { status, message } = isObject(response['result']) ? response['result'] : {}
  if (status !== 'Success') {
    const hasMessage = typeof message === 'string' && message !== ''
    throw malformed(
      hasMessage
        ? clipped(message, longestMessage)
        : `response.result.status was '${shortText(status)}', not 'Success'`,
    )
  }
  const converted: readonly unknown[] = Array.isArray(response['convertedObjects']) ? response['convertedObjects'] : []
  if (converted.length === objects.length) return converted
  const counts = `returned ${converted.length} objects, expected ${objects.length}`
  throw new ConversionError('conversion_webhook_partial_response_failure', `${failedText(objects)} ${counts}`)
}

const longestMessage = 4096

/** The object at this place of the answer, with the metadata of the original but for labels and annotations. Throws ConversionError. */
export function convertedObject(converted: unknown, { objects, apiVersion }: Review, index: number): AnyObject {
  const original = objects[index]
  if (original === undefined) throw new RangeError(`The review has no object ${index}`)
  const isAlone = objects.length === 1
  const listed = `converted object at index ${index}`
  const refused = (what: string, because: string) =>
    new ConversionError(
      'conversion_webhook_invalid_converted_object_failure',
      `${failedText([original])} returned invalid ${what}: ${because}`,
    )
  const wrongType = (because: string) => refused(isAlone ? 'object at index 0' : listed, because)
  const wrong = (because: string) => refused(isAlone ? 'object' : listed, because)
  const wrongMetadata = (because: string) =>
    refused(isAlone ? 'metadata' : `metadata in object at index ${index}`, because)
  if (!isObject(converted)) throw wrongType('it is not an object')
  if (converted['apiVersion'] !== apiVersion) {
    const received = shortText(converted['apiVersion'])
    throw wrongType(`invalid groupVersion (expected ${apiVersion}, received ${received})`)
  }
  if (converted['kind'] !== original.kind) {
    throw wrongType(`invalid kind (expected ${original.kind}, received ${shortText(converted['kind'])})`)
  }
  if (hasPrototypeKey(converted)) throw wrong('the key "__proto__" is not allowed')
  const given = converted['metadata']
  const metadata = isObject(given) ? given : {}
  for (const [field, name] of sameFields) {
    const [was, is] = [original.metadata[field] ?? '', metadata[field] ?? '']
    if (was !== is) throw wrong(`must have the same ${name}: ${was} != ${shortText(is)}`)
  }
  if (!isObject(given)) throw wrongMetadata('missing metadata in converted object')
  const because = textsProblem(given, original.metadata)
  if (because !== undefined) throw wrongMetadata(because)
  return { ...converted, apiVersion, kind: original.kind, metadata: withTextsOf(original.metadata, given) }
}

const sameFields = [
  ['name', 'name'],
  ['namespace', 'namespace'],
  ['uid', 'UID'],
] as const

const changeable = ['labels', 'annotations'] as const

/** Labels and annotations that are the original's were checked when it was written. */
function textsProblem(given: JsonObject, original: ObjectMeta): string | undefined {
  for (const field of changeable) {
    const texts = given[field] ?? {}
    if (!isObject(texts)) return `invalid metadata.${field} of type ${typeof texts} in converted object`
    const wrong = Object.entries(texts).find(([, text]) => typeof text !== 'string')
    if (wrong !== undefined) {
      return `metadata.${field}[${clipped(wrong[0])}] must be a string, but is ${typeof wrong[1]} in converted object`
    }
    if (JSON.stringify(texts) === JSON.stringify(original[field] ?? {})) continue
    const problems = problemsOfTexts(field, texts as { readonly [key: string]: string })
    if (problems.length > 0) return clipped(problems.map(problemText).join(', '), longestMessage)
  }
  return undefined
}

function problemsOfTexts(
  field: (typeof changeable)[number],
  texts: { readonly [key: string]: string },
): readonly Problem[] {
  return field === 'labels'
    ? labelProblems('metadata.labels', texts)
    : annotationProblems('metadata.annotations', texts)
}

function withTextsOf({ labels: _, annotations: __, ...kept }: ObjectMeta, given: JsonObject): ObjectMeta {
  const texts = changeable.flatMap((field) => (isObject(given[field]) ? [[field, given[field]]] : []))
  return { ...kept, ...Object.fromEntries(texts) }
}

/** `conversion webhook for example.com/v1, Kind=Shop`: of the first object, which stands for all. */
export function failedText([first]: readonly AnyObject[]): string {
  return `conversion webhook for ${shortText(first?.['apiVersion'])}, Kind=${shortText(first?.kind)}`
}

function shortText(value: unknown): string {
  return value === undefined || value === null ? '' : clipped(typeof value === 'string' ? value : quoted(value), 256)
}

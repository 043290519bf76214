/** Content negotiation: the media type of the answer, and that of the request's body. */
import { ApiError } from '../../../api/api-error.ts'

export type AnswerForm = 'object' | 'table' | 'metadata'

/** In which text an answer is written. */
export type AnswerEncoding = 'json' | 'yaml'

/** The form of the first clause of `Accept` that can be written. NotAcceptable when there is none. */
export function answerForm(accept: string | undefined): AnswerForm {
  const chosen = chosenClause(accept)
  if (chosen !== undefined) return chosen.form
  throw notAcceptable(['application/json', 'application/yaml'])
}

/** As answerForm, for an answer that has no rows and no metadata of its own: a Table of it is NotAcceptable. */
export function assertObjectForm(accept: string | undefined): void {
  if (chosenClause(accept, ['json', 'yaml'], ['object']) === undefined) {
    throw notAcceptable(['application/json', 'application/yaml'])
  }
}

/** The text of the first clause of `Accept` that can be written. Errors of clients that accept neither are JSON. */
export function answerEncoding(accept: string | undefined): AnswerEncoding {
  return chosenClause(accept)?.encoding ?? 'json'
}

/** As answerForm, for a watch: its events are JSON, as in Kubernetes, which has no stream of YAML documents. */
export function watchForm(accept: string | undefined): AnswerForm {
  const chosen = chosenClause(accept, ['json'])
  if (chosen !== undefined) return chosen.form
  throw notAcceptable(['application/json'])
}

function notAcceptable(types: readonly string[]): ApiError {
  return new ApiError('NotAcceptable', `only the following media types are accepted: ${types.join(', ')}`)
}

function chosenClause(
  accept: string | undefined,
  encodings: readonly AnswerEncoding[] = ['json', 'yaml'],
  forms: readonly AnswerForm[] = ['object', 'table', 'metadata'],
) {
  for (const clause of (accept || '*/*').split(',')) {
    const { type, parameters } = mediaType(clause)
    const encoding = encodingOf(type)
    const form = formOf(parameters)
    if (encoding === undefined || form === undefined) continue
    if (encodings.includes(encoding) && forms.includes(form)) return { encoding, form }
  }
  return undefined
}

function encodingOf(type: string): AnswerEncoding | undefined {
  if (isJson(type)) return 'json'
  return type === 'application/yaml' ? 'yaml' : undefined
}

function formOf(parameters: ReadonlyMap<string, string>): AnswerForm | undefined {
  const as = parameters.get('as')
  if (as === undefined) return 'object'
  if (parameters.get('g') !== 'meta.k8s.io') return undefined
  if (as === 'Table') return 'table'
  return as === 'PartialObjectMetadata' || as === 'PartialObjectMetadataList' ? 'metadata' : undefined
}

const protobufDocument = /^application\/com\.github\.proto-openapi\.spec\.v2[.@]v1\.0\+protobuf$/

/** Whether the client names the OpenAPI document in protobuf, and JSON not before it. */
export function prefersProtobufDocument(accept: string | undefined): boolean {
  const types = (accept ?? '').split(',').map((clause) => mediaType(clause).type)
  const first = types.find((type) => isJson(type) || protobufDocument.test(type))
  return first !== undefined && !isJson(first)
}

/** The version of aggregated discovery the client likes best; undefined: it wants the plain lists. */
export function aggregatedDiscovery(accept: string | undefined): 'v2' | 'v2beta1' | undefined {
  for (const clause of (accept ?? '').split(',')) {
    const { type, parameters } = mediaType(clause)
    if (!isJson(type)) continue
    if (parameters.get('as') !== 'APIGroupDiscoveryList') return undefined
    const version = parameters.get('v')
    if (version === 'v2' || version === 'v2beta1') return version
  }
  return undefined
}

export type BodyForm = 'json' | 'yaml' | 'protobuf'

const bodyForms: { readonly [type: string]: BodyForm } = {
  'application/json': 'json',
  'application/yaml': 'yaml',
  'application/vnd.kubernetes.protobuf': 'protobuf',
}

/** A missing type means JSON: `kubectl scale --current-replicas` sends none. */
export function bodyForm(contentType: string | undefined): BodyForm {
  const form = bodyForms[mediaType(contentType || 'application/json').type]
  if (form === undefined) throw unsupportedBody()
  return form
}

/** 415. `cause`: what is wrong with a body of a form that is read. */
export function unsupportedBody(cause?: unknown): ApiError {
  return unsupported(Object.keys(bodyForms), cause)
}

export type PatchForm = 'json' | 'merge' | 'strategic' | 'apply'

const patchForms: { readonly [type: string]: PatchForm } = {
  'application/json-patch+json': 'json',
  'application/merge-patch+json': 'merge',
  'application/strategic-merge-patch+json': 'strategic',
  'application/apply-patch+yaml': 'apply',
}

/** Without strategic merge patches: what identifies the items of a list for these is in schemas of built-in kinds only. */
export const structuralPatchForms: readonly PatchForm[] = ['json', 'merge', 'apply']
const allPatchForms: readonly PatchForm[] = Object.values(patchForms)

/** 415 for another type. `allowed`: those that the kind takes. */
export function patchForm(contentType: string | undefined, allowed: readonly PatchForm[] = allPatchForms): PatchForm {
  const form = patchForms[mediaType(contentType ?? '').type]
  if (form !== undefined && allowed.includes(form)) return form
  const types = Object.entries(patchForms).filter(([, one]) => allowed.includes(one))
  throw unsupported(types.map(([type]) => type))
}

function unsupported(accepted: readonly string[], cause?: unknown): ApiError {
  const message = `the body of the request was in an unknown format - accepted media types include: ${accepted.join(', ')}`
  return new ApiError('UnsupportedMediaType', message, undefined, { cause })
}

function isJson(type: string): boolean {
  return type === 'application/json' || type === 'application/*' || type === '*/*'
}

function mediaType(clause: string): { type: string; parameters: ReadonlyMap<string, string> } {
  const [type = '', ...parameters] = clause.split(';').map((part) => part.trim())
  const pairs = parameters.map((parameter): [string, string] => {
    const [name = '', value = ''] = parameter.split('=')
    return [name.trim().toLowerCase(), value.trim().replace(/^"|"$/g, '')]
  })
  return { type: type.toLowerCase(), parameters: new Map(pairs) }
}

/** AdmissionReview of admission.k8s.io/v1: the request that a webhook is sent, and what its answer means. */
import type { Identity } from '../../../api/identity.ts'
import { clipped, nameText, quoted } from '../../../api/problem.ts'
import type { Resource } from '../../../api/resources.ts'
import { isObject, type JsonObject } from '../../../api/text/json.ts'
import type { ReviewedWrite } from '../handlers/webhook-gate.ts'
import { mostPatchValues } from '../wire/body-limits.ts'
import { parseJsonBody } from '../wire/request-body.ts'
import type { ReviewedForm } from './webhook-form.ts'

export const reviewVersion = 'admission.k8s.io/v1'

export type WebhookVerdict =
  | {
      readonly allowed: true
      /** Operations of a JSON patch. */
      readonly patch: unknown
      readonly warnings: readonly string[]
      readonly annotations: ReadonlyMap<string, string>
    }
  | {
      readonly allowed: false
      readonly status: DenialStatus
      readonly warnings: readonly string[]
      readonly annotations: ReadonlyMap<string, string>
    }
  /** The answer is not one: the call has failed. */
  | { readonly failed: string }

export type DenialStatus = { readonly code: number; readonly reason: string; readonly message: string }

/** The body of the call. The form is the write as the webhook sees it. */
export function reviewRequest(write: ReviewedWrite, form: ReviewedForm, uid: string): unknown {
  const { object = null, old: oldObject = null } = form
  return {
    kind: 'AdmissionReview',
    apiVersion: reviewVersion,
    request: { uid, ...requestFacts(write, form), object, oldObject },
  }
}

/** The request as an AdmissionReview describes it, without the objects. */
export function requestFacts(write: ReviewedWrite, { resource, object }: ReviewedForm): JsonObject {
  const { route, operation, name, identity, dryRun } = write
  const own = isObject(object) && route.subresource !== '' ? typeOf(object) : undefined
  const part = route.subresource === '' ? undefined : route.subresource
  return {
    kind: own ?? kindIn(resource),
    resource: resourceIn(resource),
    ...(part && { subResource: part }),
    requestKind: (resource === route.resource ? own : undefined) ?? kindIn(route.resource),
    requestResource: resourceIn(route.resource),
    ...(part && { requestSubResource: part }),
    ...(name && { name }),
    ...(route.namespace && { namespace: route.namespace }),
    operation,
    userInfo: userInfo(identity),
    dryRun,
    options: optionsOf(write),
  }
}

function kindIn({ group, version, kind }: Resource) {
  return { group, version, kind }
}

function resourceIn({ group, version, name: resource }: Resource) {
  return { group, version, resource }
}

function typeOf({ apiVersion, kind }: Record<string, unknown>) {
  if (typeof apiVersion !== 'string' || typeof kind !== 'string') return undefined
  const [version = '', group = ''] = apiVersion.split('/').reverse()
  return { group, version, kind }
}

function userInfo({ user, uid, groups, extra }: Identity) {
  return { username: user, ...(uid && { uid }), groups, ...(extra && { extra }) }
}

const optionKinds = { CREATE: 'CreateOptions', UPDATE: 'UpdateOptions', DELETE: 'DeleteOptions', CONNECT: undefined }

function optionsOf({ operation, route, query, dryRun }: ReviewedWrite) {
  const kind = route.verb === 'patch' ? 'PatchOptions' : optionKinds[operation]
  if (kind === undefined) return null
  const [fieldManager, fieldValidation] = [query.get('fieldManager'), query.get('fieldValidation')]
  return {
    kind,
    apiVersion: 'meta.k8s.io/v1',
    ...(dryRun && { dryRun: ['All'] }),
    ...(fieldManager && { fieldManager: clipped(fieldManager, 128) }),
    ...(fieldValidation && { fieldValidation }),
  }
}

const mostWarnings = 20
const longestWarning = 256
const mostAnnotations = 20
const longestAnnotation = 1024

/** What the answer to the request `uid` means. `isMutating`: it may have a patch. */
export function verdictOf(answer: unknown, uid: string, isMutating: boolean): WebhookVerdict {
  if (!isObject(answer)) return { failed: 'received invalid webhook response: the body is not an object' }
  const { apiVersion, kind, response } = answer
  if (apiVersion !== reviewVersion || kind !== 'AdmissionReview') {
    const got = `${nameText(apiVersion)}, Kind=${nameText(kind)}`
    return wrong(`expected webhook response of ${reviewVersion}, Kind=AdmissionReview, got ${got}`)
  }
  if (!isObject(response)) return { failed: 'webhook response was absent' }
  if (response['uid'] !== uid)
    return wrong(`expected response.uid=${quoted(uid)}, got ${quoted(response['uid'] ?? '')}`)
  if (typeof response['allowed'] !== 'boolean') return wrong('response.allowed must be true or false')
  const { allowed, patch, patchType, status } = response
  const more = { warnings: warningsIn(response['warnings']), annotations: annotationsIn(response['auditAnnotations']) }
  if (allowed === false) return { allowed, status: denialStatus(status), ...more }
  const read = patchIn(patch, patchType, isMutating)
  return 'failed' in read ? read : { allowed: true, patch: read.operations, ...more }
}

/** None where the webhook changes nothing. */
function patchIn(patch: unknown, patchType: unknown, isMutating: boolean) {
  if (patch === undefined || patch === null || patch === '') {
    return patchType ? wrong('webhook returned response.patchType but not response.patch') : { operations: [] }
  }
  if (!isMutating) return wrong('a validating webhook may not return response.patch')
  if (!patchType) return wrong('webhook returned response.patch but not response.patchType')
  if (patchType !== 'JSONPatch') return wrong(`invalid webhook response.patchType of ${quoted(patchType)}`)
  const operations = typeof patch === 'string' ? parsedPatch(patch) : undefined
  return operations === undefined ? wrong('response.patch is not JSON in base64') : { operations }
}

function wrong(because: string): { readonly failed: string } {
  return { failed: `received invalid webhook response: ${because}` }
}

function parsedPatch(text: string): unknown {
  try {
    return parseJsonBody(Buffer.from(text, 'base64'), mostPatchValues)
  } catch {
    return undefined
  }
}

const longestDenial = 4096

/** A refusal is never answered with a code below 400 (webhook/errors/statuserror.go). Webhooks without a message put their sentence into the reason. */
function denialStatus(status: unknown): DenialStatus {
  const { code, reason, message } = isObject(status) ? status : {}
  return {
    code: typeof code === 'number' && Number.isInteger(code) && code >= 400 && code <= 599 ? code : 400,
    reason: typeof reason === 'string' ? clipped(reason, longestDenial) : '',
    message: typeof message === 'string' ? clipped(message, longestDenial) : '',
  }
}

/** Without what would end a header. */
function warningsIn(value: unknown): readonly string[] {
  if (!Array.isArray(value)) return []
  return value
    .slice(0, mostWarnings)
    .filter((one) => typeof one === 'string')
    .map((one) => clipped(one, longestWarning).replaceAll(/[^\P{Cc}\t]/gu, ' '))
}

function annotationsIn(value: unknown): ReadonlyMap<string, string> {
  const pairs = isObject(value) ? Object.entries(value) : []
  return new Map(
    pairs
      .slice(0, mostAnnotations)
      .flatMap(([key, text]) =>
        typeof text === 'string' ? [[clipped(key, 128), clipped(text, longestAnnotation)]] : [],
      ),
  )
}

/** The refusal of a webhook as an error of the API (staging/src/k8s.io/apiserver/pkg/admission/plugin/webhook/errors/statuserror.go). */
import { ApiError, type StatusReason } from '../../../api/api-error.ts'
import type { DenialStatus } from './admission-review.ts'

/** What the client of a denied write is answered: the status of the webhook, after its name. */
export function denial(webhook: string, { code, reason, message }: DenialStatus): ApiError {
  const denied = `admission webhook ${JSON.stringify(webhook)} denied the request`
  const text = message || reason
  return new ApiError(reasonFor(code), text === '' ? `${denied} without explanation` : `${denied}: ${text}`)
}

const reasons: { readonly [code: number]: StatusReason } = {
  401: 'Unauthorized',
  403: 'Forbidden',
  404: 'NotFound',
  405: 'MethodNotAllowed',
  406: 'NotAcceptable',
  409: 'Conflict',
  410: 'Expired',
  413: 'RequestEntityTooLarge',
  415: 'UnsupportedMediaType',
  422: 'Invalid',
  429: 'TooManyRequests',
  503: 'ServiceUnavailable',
  504: 'Timeout',
}

/** A code that the API does not use is answered with the nearest one that it does. */
function reasonFor(code: number): StatusReason {
  return reasons[code] ?? (code >= 500 ? 'InternalError' : 'BadRequest')
}

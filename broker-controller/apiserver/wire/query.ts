/** Parameters of a query that every kind of request may have. */
import { ApiError } from '../../../api/api-error.ts'
import { clipped } from '../../../api/problem.ts'
import { parseDuration } from '../../../daemon/duration.ts'

/** Throws BadRequest where `timeout` is no duration (staging/src/k8s.io/apiserver/pkg/endpoints/filters/request_deadline.go). */
export function refuseWrongTimeout(query: URLSearchParams): void {
  const timeout = query.get('timeout') ?? ''
  if (timeout === '' || parseDuration(timeout.replace(/^[-+]/, '')) !== undefined) return
  const because = `time: ${/^[-+]?[0-9.]+$/.test(timeout) ? 'missing unit in' : 'invalid'} duration ${JSON.stringify(clipped(timeout))}`
  throw new ApiError('BadRequest', `invalid timeout specified in the request URL - ${because}`)
}

/** A boolean parameter (apimachinery, Convert_Slice_string_To_bool). False when it is missing, `0` or `false` in any case, as Python clients write it; all other values are true, also an empty one. */
export function isSwitchedOn(query: URLSearchParams, name: string): boolean {
  const value = query.get(name)
  return value !== null && value !== '0' && value.toLowerCase() !== 'false'
}

/** Parameters of a query that every kind of request may have. */
import { ApiError } from '../../../api/api-error.ts'
import { readDuration } from '../../../api/batch/go-duration.ts'

/** Throws BadRequest where `timeout` is not a duration (staging/src/k8s.io/apiserver/pkg/endpoints/filters/request_deadline.go). */
export function refuseWrongTimeout(query: URLSearchParams): void {
  const timeout = query.get('timeout') ?? ''
  const read = timeout === '' ? undefined : readDuration(timeout)
  if (read === undefined || read.ok) return
  throw new ApiError('BadRequest', `invalid timeout specified in the request URL - ${read.problem}`)
}

/** A boolean parameter (apimachinery, Convert_Slice_string_To_bool). False when it is missing, `0` or `false` in any case, as Python clients write it; all other values are true, also an empty one. */
export function isSwitchedOn(query: URLSearchParams, name: string): boolean {
  const value = query.get(name)
  return value !== null && value !== '0' && value.toLowerCase() !== 'false'
}

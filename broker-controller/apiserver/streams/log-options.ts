/** core/v1 PodLogOptions in a query (pkg/apis/core/validation, ValidatePodLogOptions). */
import { ApiError } from '../../../api/api-error.ts'
import { forbidden, invalid, invalidObject, type Problem } from '../../../api/problem.ts'
import type { LogRequest } from '../../../api/sessions.ts'
import { isSwitchedOn } from '../wire/query.ts'

/** `container` is '' where the query names none. Throws BadRequest for what is not a number or a time, Invalid for impossible ones. */
export function logOptions(query: URLSearchParams, pod: string): LogRequest {
  const [tailLines, limitBytes, sinceSeconds] = ['tailLines', 'limitBytes', 'sinceSeconds'].map((name) =>
    whole(query, name),
  )
  const sinceTime = timeIn(query, 'sinceTime')
  const isTwice = sinceSeconds !== undefined && sinceTime !== undefined
  const problems = [
    ...below(0, 'tailLines', tailLines, 'must be greater than or equal to 0'),
    ...below(1, 'limitBytes', limitBytes, 'must be greater than 0'),
    ...(isTwice
      ? [forbidden('', 'at most one of `sinceTime` or `sinceSeconds` may be specified')]
      : below(1, 'sinceSeconds', sinceSeconds, 'must be greater than 0')),
  ]
  if (problems.length > 0) throw invalidObject({ kind: 'PodLogOptions', group: '' }, pod, problems)
  return {
    container: query.get('container') ?? '',
    ...(isSwitchedOn(query, 'follow') && { follow: true }),
    ...(isSwitchedOn(query, 'previous') && { previous: true }),
    ...(isSwitchedOn(query, 'timestamps') && { timestamps: true }),
    ...(tailLines !== undefined && { tailLines }),
    ...(limitBytes !== undefined && { limitBytes }),
    ...(sinceSeconds !== undefined && { sinceSeconds }),
    ...(sinceTime !== undefined && { sinceTime }),
  }
}

function below(least: number, field: string, value: number | undefined, message: string): readonly Problem[] {
  return value !== undefined && value < least ? [invalid(field, value, message)] : []
}

function whole(query: URLSearchParams, name: string): number | undefined {
  const written = query.get(name)
  if (written === null || written === '') return undefined
  if (!/^[+-]?\d+$/.test(written)) {
    throw new ApiError('BadRequest', `strconv.ParseInt: parsing ${JSON.stringify(written)}: invalid syntax`)
  }
  const number = Number(written)
  if (Number.isSafeInteger(number)) return number
  throw new ApiError('BadRequest', `strconv.ParseInt: parsing ${JSON.stringify(written)}: value out of range`)
}

function timeIn(query: URLSearchParams, name: string): string | undefined {
  const written = query.get(name)
  if (written === null || written === '') return undefined
  const isTime = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d{1,9})?(Z|[+-]\d\d:\d\d)$/.test(written)
  if (isTime && !Number.isNaN(Date.parse(written))) return written
  throw new ApiError(
    'BadRequest',
    `parsing time ${JSON.stringify(written)} as "2006-01-02T15:04:05Z07:00": cannot parse`,
  )
}

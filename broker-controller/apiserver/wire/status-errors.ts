/** An error as a client receives it: Kubernetes' Status. */
import { ApiError, type StatusDetails, type StatusReason } from '../../../api/api-error.ts'
import { type ApiResponse, objectAnswer } from './answers.ts'

export type Status = {
  readonly kind: 'Status'
  readonly apiVersion: 'v1'
  readonly metadata: { readonly continue?: string }
  readonly status: 'Success' | 'Failure'
  readonly message?: string
  readonly reason?: StatusReason
  readonly details?: StatusDetails
  readonly code?: number
}

/** An unexpected error is an InternalError without details for the client: the details belong in the log. */
export function statusOf(error: unknown): Status & { readonly code: number } {
  if (!(error instanceof ApiError)) {
    return statusOf(new ApiError('InternalError', 'Internal error occurred: the controller could not answer'))
  }
  const { message, reason, details, code, continueToken } = error
  return {
    kind: 'Status',
    apiVersion: 'v1',
    metadata: continueToken === undefined ? {} : { continue: continueToken },
    status: 'Failure',
    message,
    reason,
    ...(details && { details }),
    code,
  }
}

export function errorAnswer(error: unknown): ApiResponse {
  const status = statusOf(error)
  const retryAfterSeconds = status.details?.retryAfterSeconds
  const answer = objectAnswer(status, status.code)
  return retryAfterSeconds === undefined ? answer : { ...answer, retryAfterSeconds }
}

export function successStatus(details?: StatusDetails): Status {
  return { kind: 'Status', apiVersion: 'v1', metadata: {}, status: 'Success', ...(details && { details }) }
}

/** 404 for a path that is not served. */
export function unknownPath(): ApiError {
  return new ApiError('NotFound', 'the server could not find the requested resource', {})
}

export function methodNotAllowed(): ApiError {
  return new ApiError('MethodNotAllowed', 'the server does not allow this method on the requested resource')
}

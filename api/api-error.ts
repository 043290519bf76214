/** The errors of the Kubernetes API: one error, its reason, and the details kubectl prints. */

export type StatusCause = { readonly reason: string; readonly message: string; readonly field?: string }

export type StatusDetails = {
  readonly name?: string
  readonly group?: string
  readonly kind?: string
  readonly uid?: string
  readonly causes?: readonly StatusCause[]
  readonly retryAfterSeconds?: number
}

const reasonCodes = {
  BadRequest: 400,
  Unauthorized: 401,
  Forbidden: 403,
  NotFound: 404,
  MethodNotAllowed: 405,
  NotAcceptable: 406,
  AlreadyExists: 409,
  Conflict: 409,
  Expired: 410,
  RequestEntityTooLarge: 413,
  UnsupportedMediaType: 415,
  Invalid: 422,
  TooManyRequests: 429,
  InternalError: 500,
  ServiceUnavailable: 503,
  Timeout: 504,
  // Kubernetes has no reason for a full store; the code is that of RFC 4918.
  InsufficientStorage: 507,
} as const
export type StatusReason = keyof typeof reasonCodes

export class ApiError extends Error {
  override readonly name = 'ApiError'
  readonly reason: StatusReason
  readonly code: number
  readonly details: StatusDetails | undefined
  /** With Expired: the token that continues the list with the present objects. */
  readonly continueToken: string | undefined

  constructor(
    reason: StatusReason,
    message: string,
    details?: StatusDetails,
    options: { readonly cause?: unknown; readonly continueToken?: string } = {},
  ) {
    super(message, options)
    this.reason = reason
    this.code = reasonCodes[reason]
    this.details = details
    this.continueToken = options.continueToken
  }
}

/** What an object is called in messages: `pods`, `deployments.apps`. */
type Named = { readonly name: string; readonly group: string }

function inGroup(resource: Named): string {
  return resource.group === '' ? resource.name : `${resource.name}.${resource.group}`
}

export function notFound(resource: Named, name: string): ApiError {
  return new ApiError('NotFound', `${inGroup(resource)} "${name}" not found`, detailsOf(resource, name))
}

export function alreadyExists(resource: Named, name: string): ApiError {
  return new ApiError('AlreadyExists', `${inGroup(resource)} "${name}" already exists`, detailsOf(resource, name))
}

export function conflict(
  resource: Named,
  name: string,
  because = 'the object has been modified; please apply your changes to the latest version and try again',
): ApiError {
  const message = `Operation cannot be fulfilled on ${inGroup(resource)} "${name}": ${because}`
  return new ApiError('Conflict', message, detailsOf(resource, name))
}

/** 410: the history of changes no longer has the requested version. */
export function expired(version: number | string, oldest: number): ApiError {
  return new ApiError('Expired', `too old resource version: ${version} (${oldest})`)
}

export function isApiError(error: unknown, reason?: StatusReason): error is ApiError {
  return error instanceof ApiError && (reason === undefined || error.reason === reason)
}

function detailsOf(resource: Named, name: string): StatusDetails {
  return resource.group === '' ? { name, kind: resource.name } : { name, group: resource.group, kind: resource.name }
}

/** What Docker answered, or that it did not → the few reasons a caller can act on. Its status codes stop here. */
import { RuntimeError, type RuntimeErrorReason } from '../../pods/runtime.ts'
import { plainly, shortened } from './refusals.ts'

export type DockerFailure = { readonly status: number | undefined; readonly text: string }

/** Of an error thrown by dockerode; what is long is shortened. */
export function failureOf(error: unknown): DockerFailure {
  const { statusCode, json, message } = (typeof error === 'object' && error !== null ? error : {}) as {
    readonly statusCode?: unknown
    readonly json?: { readonly message?: unknown } | null
    readonly message?: unknown
  }
  const own = String(message ?? error)
    .replace(/^\(HTTP code \d+\) [^-]* - /, '')
    .trim()
  return {
    status: typeof statusCode === 'number' ? statusCode : undefined,
    text: shortened(typeof json?.message === 'string' ? json.message : own),
  }
}

/** `tried`: what was tried, on what. */
export function runtimeError(tried: string, error: unknown): RuntimeError {
  if (error instanceof RuntimeError) return error
  const failure = failureOf(error)
  return new RuntimeError(reasonOf(failure), tried, { cause: new Error(plainly(failure.text)) })
}

function reasonOf({ status, text }: DockerFailure): RuntimeErrorReason {
  if (status === undefined) return 'Unreachable'
  if (/no such image/i.test(text)) return 'ImageNotFound'
  if (/invalid reference format/i.test(text)) return 'InvalidImageName'
  if (/port is already allocated|address already in use/i.test(text)) return 'PortTaken'
  if (status === 409 && /already in use/i.test(text)) return 'NameTaken'
  return status === 404 ? 'NotFound' : 'Failed'
}

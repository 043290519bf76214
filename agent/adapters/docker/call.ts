/** Calls of Docker: every call ends, every failure has a reason that callers can act on, and streams are read message by message. */
import { withDeadline } from '../../../daemon/deadline.ts'
import { RuntimeError, type RuntimeErrorReason } from '../../runtime/runtime.ts'
import { type JsonShape, jsonReader, type Kept } from './json-reader.ts'
import { plainText, shortened } from './refusal-text.ts'

export const askMs = 30_000
/** Creating and starting may wait for a slow card. */
export const actMs = 120_000

/**
 * Ends within `ms`, whatever happens to the response: dockerode waits forever for the rest of a response that was cut off. The
 * statuses in `fine` mean that the work was done before; the result is then undefined. Rejects with a `RuntimeError`.
 */
export async function call<T>(tried: string, ms: number, work: (abortSignal: AbortSignal) => Promise<T>): Promise<T>
export async function call<T>(
  tried: string,
  ms: number,
  work: (abortSignal: AbortSignal) => Promise<T>,
  ...fine: readonly number[]
): Promise<T | undefined>
export async function call<T>(
  tried: string,
  ms: number,
  work: (abortSignal: AbortSignal) => Promise<T>,
  ...fine: readonly number[]
): Promise<T | undefined> {
  try {
    return await withDeadline(ms, undefined, work, 'Docker did not answer')
  } catch (error) {
    if (fine.includes(failureOf(error).status ?? 0)) return undefined
    throw runtimeError(tried, error)
  }
}

/** What Docker reports of a pull, an import and a load. The registry chooses the text of an error. */
export const progressShape = {
  fields: {
    error: 'prose',
    status: 'text',
    id: 'text',
    progressDetail: { fields: { current: 'number', total: 'number' } },
  },
} as const satisfies JsonShape

export type Progress = Kept<typeof progressShape>

/** The messages of a stream of dockerode. */
export async function* progressMessages(stream: NodeJS.ReadableStream): AsyncGenerator<Progress> {
  const reader = jsonReader(progressShape)
  for await (const piece of stream) yield* reader.read(Buffer.from(piece))
}

export type DockerFailure = { readonly status: number | undefined; readonly text: string }

/** The message of an error of dockerode; long texts are shortened. */
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

/** `tried`: the operation and its object. */
export function runtimeError(tried: string, error: unknown): RuntimeError {
  if (error instanceof RuntimeError) return error
  const failure = failureOf(error)
  return new RuntimeError(reasonOf(failure), tried, { cause: new Error(plainText(failure.text)) })
}

function reasonOf({ status, text }: DockerFailure): RuntimeErrorReason {
  if (status === undefined) return 'Unreachable'
  if (/no such image/i.test(text)) return 'ImageNotFound'
  if (/invalid reference format/i.test(text)) return 'InvalidImageName'
  if (/port is already allocated|address already in use/i.test(text)) return 'PortTaken'
  if (status === 409 && /already in use/i.test(text)) return 'NameTaken'
  return status === 404 ? 'NotFound' : 'Failed'
}

/** Talking to Docker: every call ends, every failure is told in the runtime's words, streams are read line by line. */
import { longestTimerMs } from '../../../daemon/clock.ts'
import { failureOf, runtimeError } from './errors.ts'

export const askMs = 30_000
/** Making and starting may wait for a slow card. */
export const actMs = 120_000

/**
 * Ends within `ms`, whatever becomes of the answer: dockerode waits for ever for the rest of one that was cut off.
 * The statuses in `fine` say that the work was done before: the answer is then undefined.
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
  const deadline = new AbortController()
  let timer: NodeJS.Timeout | undefined
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(
      () => {
        reject(new Error(`Docker did not answer within ${ms / 1000} s`))
        deadline.abort()
      },
      Math.min(ms, longestTimerMs),
    )
  })
  try {
    return await Promise.race([work(deadline.signal), late])
  } catch (error) {
    if (fine.includes(failureOf(error).status ?? 0)) return undefined
    throw runtimeError(tried, error)
  } finally {
    clearTimeout(timer)
  }
}

export type Message = { readonly [name: string]: unknown }

/** One JSON object a line. */
export async function* messages(stream: NodeJS.ReadableStream): AsyncIterable<Message> {
  let rest = ''
  stream.setEncoding('utf8')
  for await (const chunk of stream) {
    const lines = (rest + String(chunk)).split('\n')
    rest = lines.pop() ?? ''
    for (const line of lines) if (line.trim() !== '') yield JSON.parse(line) as Message
  }
  if (rest.trim() !== '') yield JSON.parse(rest) as Message
}

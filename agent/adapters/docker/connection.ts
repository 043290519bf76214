/** Answers of Docker on connections of their own, read as they are needed: what is not taken of them stays in Docker. */
import { once } from 'node:events'
import { connect } from 'node:net'
import { isObject, parseJson } from '../../../api/text/json.ts'
import { pulledReads } from '../../../daemon/sessions/pulled-pieces.ts'
import { type BodyReader, bodyReader, type ResponseHead, responseHead } from './body-reader.ts'
import { type JsonShape, jsonReader, type Kept } from './json-reader.ts'

export type AnswerConnection = {
  /** What the reader gives of the bytes that Docker sends; rejects where the connection ends before the answer. */
  readonly pieces: AsyncGenerator<Buffer>
  destroy(): void
}

export type EngineRequest = {
  /** Default: `GET`. */
  readonly method?: 'GET' | 'POST'
  /** With the query. Parts that others choose are encoded: see `imagePath`. */
  readonly path: string
  readonly headers?: { readonly [name: string]: string }
}

export type AnswerRequest = EngineRequest & {
  readonly socketPath: string
  /** For the body of the answer. */
  readonly readerOf: (head: ResponseHead) => BodyReader
}

/** Bytes that are kept of the text of a refusal. */
const mostRefusalBytes = 64 * 1024

/**
 * Resolves when the engine has begun to answer. Rejects with an error that has the properties of dockerode's: `statusCode` and `json`, or
 * `code` where the connection failed. The connection is closed where `signal` aborts before.
 */
export async function openAnswer(request: AnswerRequest, signal: AbortSignal): Promise<AnswerConnection> {
  const text = requestText(request)
  const reads = pulledReads()
  const socket = connect({ path: request.socketPath, onread: reads.onread })
  socket.on('error', () => undefined) // the reader sees it
  const stop = () => void socket.destroy(new Error('Docker did not answer'))
  signal.addEventListener('abort', stop, { once: true })
  try {
    await once(socket, 'connect', { signal })
    socket.write(text)
    const { head, body } = await answerOn(reads.pieces(socket), request.readerOf)
    if (head.status !== 200) throw await refusalOf(head.status, body)
    return { pieces: body, destroy: () => void socket.destroy() }
  } catch (error) {
    socket.destroy()
    throw error
  } finally {
    signal.removeEventListener('abort', stop)
  }
}

/** Answers of the engine as JSON, of which only what `shape` names is kept. */
export interface EngineReader {
  /** The whole answer, and its length in bytes. */
  measured<S extends JsonShape>(request: EngineRequest, shape: S, signal: AbortSignal): Promise<Measured<S>>
  /** The whole answer. */
  read<S extends JsonShape>(path: string, shape: S, signal: AbortSignal): Promise<Kept<S>>
  /** Resolves when the stream has begun. It ends with the answer, and rejects when `signal` aborts. */
  stream<S extends JsonShape>(request: EngineRequest, shape: S, signal: AbortSignal): Promise<AsyncGenerator<Kept<S>>>
}

export type Measured<S> = { readonly value: Kept<S>; readonly bytes: number }

/** The reader of the engine that listens at `socketPath`. */
export function engineReader(socketPath: string): EngineReader {
  const openBody = (request: EngineRequest, signal: AbortSignal) =>
    openAnswer({ ...request, socketPath, readerOf: bodyReader }, signal)

  const measured: EngineReader['measured'] = async (request, shape, signal) => {
    const reader = jsonReader(shape)
    const answer = until(signal, await openBody(request, signal))
    let [bytes, values]: [number, readonly Kept<typeof shape>[]] = [0, []]
    for await (const piece of answer) {
      bytes += piece.length
      values = [...values, ...reader.read(piece)]
    }
    const [value] = values
    if (value === undefined) throw new Error('Docker answered without JSON')
    return { value, bytes }
  }
  return {
    measured,
    read: async (path, shape, signal) => (await measured({ path }, shape, signal)).value,
    async stream(request, shape, signal) {
      const reader = jsonReader(shape)
      const answer = until(signal, await openBody(request, signal))
      return (async function* () {
        for await (const piece of answer) yield* reader.read(piece)
      })()
    },
  }
}

/** The path of an image in the API. */
export function imagePath(name: string): string {
  return `/images/${name.split('/').map(encodeURIComponent).join('/')}`
}

/** The pieces of an answer; rejects when `signal` aborts. Its connection is closed when they are not wanted any more. */
async function* until(signal: AbortSignal, { pieces, destroy }: AnswerConnection): AsyncGenerator<Buffer> {
  signal.addEventListener('abort', destroy, { once: true })
  if (signal.aborted) destroy()
  try {
    yield* pieces
  } finally {
    signal.removeEventListener('abort', destroy)
    destroy()
  }
}

/**
 * With `Connection: close` Docker does not notice that the client of a POST has closed the connection, so an aborted pull would never
 * end.
 */
function requestText({ method = 'GET', path, headers = {} }: EngineRequest): string {
  const usual = method === 'GET' ? { Connection: 'close' } : { 'Content-Length': '0' }
  const lines = Object.entries({ Host: 'docker', ...usual, ...headers }).map(([name, value]) => `${name}: ${value}`)
  const text = [`${method} ${path} HTTP/1.1`, ...lines]
  if (text.some((line) => /[^\x20-\x7e]/.test(line)) || path.includes(' '))
    throw new Error('A request to Docker has a character that is not encoded')
  return `${text.join('\r\n')}\r\n\r\n`
}

function cutOff(text: string): Error {
  return Object.assign(new Error(text), { code: 'ECONNRESET' })
}

async function answerOn(pieces: AsyncGenerator<Buffer>, readerOf: AnswerRequest['readerOf']) {
  let held: Buffer = Buffer.alloc(0)
  for (;;) {
    const { value, done } = await pieces.next()
    if (done === true) throw cutOff('Docker closed the connection without an answer')
    held = held.length === 0 ? value : Buffer.concat([held, value])
    const head: ResponseHead | undefined = responseHead(held)
    if (head === undefined) continue
    const reader = head.status === 200 ? readerOf(head) : bodyReader(head)
    return { head, body: bodyOn(held.subarray(head.bodyAt), pieces, reader) }
  }
}

async function* bodyOn(first: Buffer, pieces: AsyncGenerator<Buffer>, reader: BodyReader): AsyncGenerator<Buffer> {
  const begun = reader.read(first)
  if (begun.length > 0) yield begun
  if (reader.isEnded) return
  for await (const piece of pieces) {
    const bytes = reader.read(piece)
    if (bytes.length > 0) yield bytes
    if (reader.isEnded) return
  }
  if (!reader.mayEnd) throw cutOff('Docker closed the connection before the end of its answer')
}

async function refusalOf(statusCode: number, body: AsyncGenerator<Buffer>): Promise<Error> {
  const held: Buffer[] = []
  let length = 0
  for await (const piece of body) {
    held.push(piece)
    length += piece.length
    if (length >= mostRefusalBytes) break
  }
  const text = Buffer.concat(held).toString()
  const json = parseJson(text)
  return Object.assign(new Error(text), { statusCode, json: isObject(json) ? json : null })
}

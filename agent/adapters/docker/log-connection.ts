/** The log of a container on a connection of its own. What is not taken of it stays in Docker. */
import { once } from 'node:events'
import { connect } from 'node:net'
import { isObject, parseJson } from '../../../api/text/json.ts'
import { pulledReads } from '../../../daemon/sessions/pulled-pieces.ts'
import { type BodyReader, bodyReader, type ResponseHead, responseHead } from './body-reader.ts'

export type LogConnection = {
  /** What the reader gives of the bytes that Docker sends; rejects where the connection ends before the log. */
  readonly pieces: AsyncGenerator<Buffer>
  destroy(): void
}

export type LogRequestOptions = {
  readonly socketPath: string
  readonly path: string
  /** For the body of the log. */
  readonly readerOf: (head: ResponseHead) => BodyReader
}

/** Of the text of a refusal. */
const mostRefusalBytes = 64 * 1024

/**
 * Requests `path` of the engine and resolves when it has begun to answer. Rejects with an error that has the properties of
 * dockerode's: `statusCode` and `json`. The connection is closed where `signal` aborts before.
 */
export async function openLogConnection(
  { socketPath, path, readerOf }: LogRequestOptions,
  signal: AbortSignal,
): Promise<LogConnection> {
  const reads = pulledReads()
  const socket = connect({ path: socketPath, onread: reads.onread })
  socket.on('error', () => undefined) // the reader sees it
  const stop = () => void socket.destroy(new Error('Docker did not answer'))
  signal.addEventListener('abort', stop, { once: true })
  try {
    await once(socket, 'connect', { signal })
    socket.write(`GET ${path} HTTP/1.1\r\nHost: docker\r\nConnection: close\r\n\r\n`)
    const { head, body } = await answerOn(reads.pieces(socket), readerOf)
    if (head.status !== 200) throw await refusalOf(head.status, body)
    return { pieces: body, destroy: () => void socket.destroy() }
  } catch (error) {
    socket.destroy()
    throw error
  } finally {
    signal.removeEventListener('abort', stop)
  }
}

async function answerOn(pieces: AsyncGenerator<Buffer>, readerOf: LogRequestOptions['readerOf']) {
  let held: Buffer = Buffer.alloc(0)
  for (;;) {
    const { value, done } = await pieces.next()
    if (done === true) throw new Error('Docker closed the connection without an answer')
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
  if (!reader.mayEnd) throw new Error('Docker closed the connection before the end of the log')
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

/** An answer becomes bytes on a connection, no faster than its reader takes them. */
import { setImmediate } from 'node:timers/promises'
import { clipped } from '../../../api/problem.ts'
import { jsonPieces } from '../../store/object-json.ts'
import type { ApiResponse } from '../wire/answers.ts'
import { yamlPieces } from '../wire/yaml-answer.ts'
import type { Outgoing } from './messages.ts'
import { chunkOf } from './shared-chunks.ts'
import type { SlowReaders } from './slow-readers.ts'

/**
 * Longer answers are written in slices, each when the one before was taken. A slice and its frame stay below 64 kB, above which the
 * launcher has the allocator map memory apart: that took a third of the CPU time of a list.
 */
const sliceBytes = 60 * 1024
/** Characters of a piece, so that one with its last object is one slice. */
const pieceLength = 48 * 1024

const yearSeconds = 365 * 24 * 3600

/** Sends it all, or until the client is gone. A watch's pieces go out one by one, large ones in slices, each when the one before was taken. */
export async function writeAnswer(
  answer: ApiResponse,
  headOnly: boolean,
  outgoing: Outgoing,
  signal: AbortSignal,
  slow: SlowReaders,
): Promise<void> {
  if (outgoing.destroyed) return
  outgoing.setHeader('Cache-Control', 'no-cache, private')
  switch (answer.kind) {
    case 'object':
      return writeObject(answer, headOnly, outgoing, signal, slow)
    case 'text':
      outgoing.setHeader('Content-Type', answer.contentType)
      return finish(outgoing, answer.code, answer.text, headOnly, signal, slow)
    case 'document':
      return writeDocument(answer, headOnly, outgoing, signal, slow)
    case 'plain':
      return writePlain(answer, headOnly, outgoing, signal, slow)
    case 'pieces':
    case 'stream':
      beginStream(outgoing, answer.kind === 'pieces' ? answer.contentType : 'application/json')
      if (!headOnly) await writeEvents(answer.pieces, outgoing, signal, slow)
      outgoing.end()
      return
    case 'flow':
      beginStream(outgoing, answer.contentType)
      if (!headOnly) await writeFlow(answer.pieces, outgoing, signal)
      outgoing.end()
      return
    case 'file':
      return writeFile(answer, headOnly, outgoing, signal)
    case 'proxied':
      return writeProxied(answer, headOnly, outgoing, signal)
    case 'connection':
      throw new Error('A connection that was not asked for cannot be taken over')
  }
}

type AnswerOf<Kind extends ApiResponse['kind']> = Extract<ApiResponse, { readonly kind: Kind }>

function writeObject(
  answer: AnswerOf<'object'>,
  headOnly: boolean,
  outgoing: Outgoing,
  signal: AbortSignal,
  slow: SlowReaders,
): Promise<void> {
  const isYaml = answer.encoding === 'yaml'
  outgoing.setHeader('Content-Type', answer.contentType ?? (isYaml ? 'application/yaml' : 'application/json'))
  if (answer.warnings && answer.warnings.length > 0) outgoing.setHeader('Warning', warningHeaders(answer.warnings))
  if (answer.retryAfterSeconds) outgoing.setHeader('Retry-After', String(answer.retryAfterSeconds))
  const content = isYaml
    ? { pieces: yamlPieces(answer.body), end: '' }
    : { pieces: jsonPieces(answer.body, pieceLength), end: '\n' }
  return writePieces(outgoing, answer.code, content, headOnly, signal, slow)
}

async function writeDocument(
  answer: AnswerOf<'document'>,
  headOnly: boolean,
  outgoing: Outgoing,
  signal: AbortSignal,
  slow: SlowReaders,
): Promise<void> {
  outgoing.setHeader('Content-Type', answer.contentType)
  outgoing.setHeader('ETag', answer.etag)
  outgoing.setHeader('Vary', 'Accept, Accept-Encoding')
  if (answer.encoding !== undefined) outgoing.setHeader('Content-Encoding', answer.encoding)
  if (answer.isImmutable) outgoing.setHeader('Cache-Control', `public, immutable, max-age=${yearSeconds}`)
  if (answer.code === 200) return finish(outgoing, 200, answer.bytes, headOnly, signal, slow)
  endWithout(outgoing, answer.code)
}

async function writePlain(
  answer: AnswerOf<'plain'>,
  headOnly: boolean,
  outgoing: Outgoing,
  signal: AbortSignal,
  slow: SlowReaders,
): Promise<void> {
  for (const [name, value] of Object.entries(answer.headers)) outgoing.setHeader(name, value)
  if (answer.code === 204 || answer.code === 304) return endWithout(outgoing, answer.code)
  return finish(outgoing, answer.code, answer.bytes, headOnly, signal, slow)
}

/** The head is sent before the first piece is there. */
function beginStream(outgoing: Outgoing, contentType: string): void {
  outgoing.setHeader('Content-Type', contentType)
  outgoing.writeHead(200)
  outgoing.flushHeaders()
}

async function writeFile(
  answer: AnswerOf<'file'>,
  headOnly: boolean,
  outgoing: Outgoing,
  signal: AbortSignal,
): Promise<void> {
  for (const [name, value] of Object.entries(answer.headers)) outgoing.setHeader(name, value)
  outgoing.writeHead(answer.code)
  await writeBody(answer.pieces, headOnly, outgoing, signal)
}

async function writeProxied(
  answer: AnswerOf<'proxied'>,
  headOnly: boolean,
  outgoing: Outgoing,
  signal: AbortSignal,
): Promise<void> {
  outgoing.writeHead(answer.code, answer.reason, [...answer.headers])
  outgoing.flushHeaders()
  await writeBody(answer.pieces, headOnly, outgoing, signal)
}

async function writeBody(
  pieces: AsyncIterable<Uint8Array>,
  headOnly: boolean,
  outgoing: Outgoing,
  signal: AbortSignal,
): Promise<void> {
  if (headOnly) closePieces(pieces)
  else await writeFlow(pieces, outgoing, signal)
  outgoing.end()
}

/** An answer whose code allows no body. */
function endWithout(outgoing: Outgoing, code: number): void {
  outgoing.writeHead(code)
  outgoing.end()
}

/**
 * Node.js hands each chunk of HTTP/1.1 to the connection in four parts, once for each client. Here it is framed once for all clients;
 * Node.js writes the last chunk.
 */
async function writeEvents(
  pieces: AsyncIterable<string | Uint8Array>,
  outgoing: Outgoing,
  signal: AbortSignal,
  slow: SlowReaders,
): Promise<void> {
  const { chunkedEncoding = false } = outgoing
  outgoing.chunkedEncoding = false
  for await (const piece of pieces) {
    if (signal.aborted || outgoing.destroyed) break
    const bytes = typeof piece === 'string' ? Buffer.from(piece) : piece
    const sent = chunkedEncoding && bytes.length > 0 ? chunkOf(bytes) : bytes
    if (sent.length > sliceBytes) await writeSlices(outgoing, sent, signal, slow)
    else if (!outgoing.write(sent)) await slow.drained(outgoing, signal)
  }
  outgoing.chunkedEncoding = chunkedEncoding
}

/** The body of an answer to HEAD is not read. */
function closePieces(pieces: AsyncIterable<Uint8Array>): void {
  void pieces[Symbol.asyncIterator]()
    .return?.()
    .catch(() => undefined)
}

/** In bytes: enough to keep the connection busy while the next piece comes. */
const mostUnsent = 128 * 1024

/** The reader of a log may stop for hours, as `kubectl logs -f | less` does: little waits for it. */
async function writeFlow(pieces: AsyncIterable<Uint8Array>, outgoing: Outgoing, signal: AbortSignal): Promise<void> {
  for await (const piece of pieces) {
    if (signal.aborted || outgoing.destroyed) return
    if (!outgoing.write(piece) && outgoing.writableLength >= mostUnsent) await drained(outgoing, signal)
  }
}

/** Resolves when the reader took what was written, or `signal` aborts; its end aborts it. */
function drained(outgoing: Outgoing, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const done = () => {
      outgoing.off('drain', done)
      signal.removeEventListener('abort', done)
      resolve()
    }
    outgoing.once('drain', done)
    signal.addEventListener('abort', done, { once: true })
    if (signal.aborted) done()
  })
}

async function writeLength(outgoing: Outgoing, code: number, pieces: Iterable<string>, end: string): Promise<void> {
  let length = Buffer.byteLength(end)
  for (const piece of pieces) {
    length += Buffer.byteLength(piece)
    await setImmediate()
    if (outgoing.destroyed) return
  }
  outgoing.writeHead(code, { 'Content-Length': length })
  outgoing.end()
}

/** A long list is serialised piece by piece, each when the one before was taken: other requests have their turn in between. */
async function writePieces(
  outgoing: Outgoing,
  code: number,
  { pieces, end }: { readonly pieces: Iterable<string>; readonly end: string },
  headOnly: boolean,
  signal: AbortSignal,
  slow: SlowReaders,
): Promise<void> {
  if (headOnly) return writeLength(outgoing, code, pieces, end)
  let last: string | undefined
  for (const piece of pieces) {
    if (last !== undefined) {
      if (!outgoing.headersSent) outgoing.writeHead(code)
      // A server that closes finishes it: a part of a list with a regular end would look complete to HTTP.
      if (outgoing.destroyed) return
      await writeSlices(outgoing, Buffer.from(last), signal, slow)
    }
    last = piece
  }
  const text = `${last}${end}`
  if (!outgoing.headersSent) return finish(outgoing, code, text, headOnly, signal, slow)
  await writeSlices(outgoing, Buffer.from(text), signal, slow)
  outgoing.end()
}

async function finish(
  outgoing: Outgoing,
  code: number,
  content: string | Buffer,
  headOnly: boolean,
  signal: AbortSignal,
  slow: SlowReaders,
): Promise<void> {
  const bytes = typeof content === 'string' ? Buffer.from(content) : content
  outgoing.writeHead(code, { 'Content-Length': bytes.length })
  // A short answer goes out in one packet with its head.
  if (headOnly || bytes.length <= sliceBytes) {
    outgoing.end(headOnly ? undefined : bytes)
    return
  }
  await writeSlices(outgoing, bytes, signal, slow)
  outgoing.end()
}

async function writeSlices(
  outgoing: Outgoing,
  bytes: Uint8Array,
  signal: AbortSignal,
  slow: SlowReaders,
): Promise<void> {
  for (let at = 0; at < bytes.length && !outgoing.destroyed; at += sliceBytes) {
    if (!outgoing.write(bytes.subarray(at, at + sliceBytes))) await slow.drained(outgoing, signal)
  }
}

/** As the API server of Kubernetes (WithWarningRecorder): 4,096 characters in all, and 256 each where that is too little. */
const mostWarningCharacters = 4096
const longestWarning = 256

/** A `Warning` header for each, as many as fit: clients refuse answers with too long headers. */
export function warningHeaders(warnings: readonly string[]): string[] {
  const total = warnings.reduce((sum, { length }) => sum + length, 0)
  if (total <= mostWarningCharacters) return warnings.map(warning)
  const sent: string[] = []
  let left = mostWarningCharacters
  for (const text of warnings) {
    const short = clipped(text, longestWarning)
    left -= short.length
    if (left < 0) break
    sent.push(warning(short))
  }
  return sent
}

/** Header values are Latin-1 at most: what a client wrote into a field name must not break the answer. */
function warning(text: string): string {
  const plain = text.replace(/[^\x20-\x7e]/g, '?').replace(/["\\]/g, '\\$&')
  return `299 - "${plain}"`
}

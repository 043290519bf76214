/** An answer becomes bytes on a connection, no faster than its reader takes them. */
import type { ServerResponse } from 'node:http'
import { clipped } from '../../api/problem.ts'
import type { Answer } from './answers.ts'
import type { SlowReaders } from './slow-readers.ts'

/** Longer answers are written in slices, each when the one before was taken. */
const sliceBytes = 64 * 1024

/** Sends it all, or until the client is gone. A watch's pieces go out one by one, each when the one before was taken. */
export async function writeAnswer(
  answer: Answer,
  headOnly: boolean,
  outgoing: ServerResponse,
  signal: AbortSignal,
  slow: SlowReaders,
): Promise<void> {
  if (outgoing.destroyed) return
  outgoing.setHeader('Cache-Control', 'no-cache, private')
  switch (answer.kind) {
    case 'object': {
      outgoing.setHeader('Content-Type', answer.contentType ?? 'application/json')
      if (answer.warnings && answer.warnings.length > 0) outgoing.setHeader('Warning', warningHeaders(answer.warnings))
      if (answer.retryAfterSeconds) outgoing.setHeader('Retry-After', String(answer.retryAfterSeconds))
      return finish(outgoing, answer.code, `${JSON.stringify(answer.body)}\n`, headOnly, signal, slow)
    }
    case 'text':
      outgoing.setHeader('Content-Type', answer.contentType)
      return finish(outgoing, answer.code, answer.text, headOnly, signal, slow)
    case 'pieces':
    case 'stream':
      outgoing.setHeader('Content-Type', answer.kind === 'pieces' ? answer.contentType : 'application/json')
      outgoing.writeHead(200)
      outgoing.flushHeaders()
      if (!headOnly) {
        for await (const piece of answer.pieces) {
          if (signal.aborted || outgoing.destroyed) break
          if (!outgoing.write(piece)) await slow.drained(outgoing, signal)
        }
      }
      outgoing.end()
  }
}

async function finish(
  outgoing: ServerResponse,
  code: number,
  text: string,
  headOnly: boolean,
  signal: AbortSignal,
  slow: SlowReaders,
): Promise<void> {
  const bytes = Buffer.from(text)
  outgoing.writeHead(code, { 'Content-Length': bytes.length })
  let at = 0
  while (!headOnly && at + sliceBytes < bytes.length && !outgoing.destroyed) {
    const isTaken = outgoing.write(bytes.subarray(at, at + sliceBytes))
    at += sliceBytes
    if (!isTaken) await slow.drained(outgoing, signal)
  }
  outgoing.end(headOnly ? undefined : bytes.subarray(at))
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

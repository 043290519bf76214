/** An answer becomes bytes on a connection, no faster than its reader takes them. */
import type { ServerResponse } from 'node:http'
import type { Clock } from '../../daemon/clock.ts'
import type { Answer } from './answers.ts'

/** A reader that takes nothing for so long is gone or frozen; it comes back and is told what it missed. */
const stalledMs = 30_000

/** Sends it all, or until the client is gone. A watch's pieces go out one by one, each when the one before was taken. */
export async function writeAnswer(
  answer: Answer,
  headOnly: boolean,
  outgoing: ServerResponse,
  signal: AbortSignal,
  clock: Clock,
): Promise<void> {
  if (outgoing.destroyed) return
  outgoing.setHeader('Cache-Control', 'no-cache, private')
  switch (answer.kind) {
    case 'object': {
      outgoing.setHeader('Content-Type', answer.contentType ?? 'application/json')
      if (answer.warnings && answer.warnings.length > 0) outgoing.setHeader('Warning', answer.warnings.map(warning))
      if (answer.retryAfterSeconds) outgoing.setHeader('Retry-After', String(answer.retryAfterSeconds))
      finish(outgoing, answer.code, `${JSON.stringify(answer.body)}\n`, headOnly)
      return
    }
    case 'text':
      outgoing.setHeader('Content-Type', answer.contentType)
      finish(outgoing, answer.code, answer.text, headOnly)
      return
    case 'pieces':
    case 'stream':
      outgoing.setHeader('Content-Type', answer.kind === 'pieces' ? answer.contentType : 'application/json')
      outgoing.writeHead(200)
      outgoing.flushHeaders()
      if (!headOnly) {
        for await (const piece of answer.pieces) {
          if (signal.aborted || outgoing.destroyed) break
          if (!outgoing.write(piece)) await drained(outgoing, signal, clock)
        }
      }
      outgoing.end()
  }
}

function finish(outgoing: ServerResponse, code: number, text: string, headOnly: boolean): void {
  const bytes = Buffer.from(text)
  outgoing.writeHead(code, { 'Content-Length': bytes.length })
  outgoing.end(headOnly ? undefined : bytes)
}

/** Header values are Latin-1 at most: what a client wrote into a field name must not break the answer. */
function warning(text: string): string {
  const plain = text.replace(/[^\x20-\x7e]/g, '?').replace(/["\\]/g, '\\$&')
  return `299 - "${plain}"`
}

/** Resolves when the reader has taken what was written; ends the connection when it takes nothing for too long. */
async function drained(outgoing: ServerResponse, signal: AbortSignal, clock: Clock): Promise<void> {
  const over = new AbortController()
  const done = () => over.abort()
  outgoing.once('drain', done)
  signal.addEventListener('abort', done, { once: true })
  await clock.sleep(stalledMs, over.signal)
  outgoing.off('drain', done)
  signal.removeEventListener('abort', done)
  if (!over.signal.aborted) outgoing.destroy()
}

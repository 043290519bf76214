/** Streams of containers on Docker, each on a connection of its own. What is not taken from them stays in Docker. */
import type { EngineStreams, LogOptions } from '../../sessions/engine-streams.ts'
import { bodyReader } from './body-reader.ts'
import { askMs, call, runtimeError } from './call.ts'
import { type AnswerConnection, openAnswer } from './connection.ts'
import type { Engine } from './engine.ts'
import type { JsonShape } from './json-reader.ts'
import { logTextReader } from './log-text.ts'
import { hasTerminal } from './output.ts'
import { attachContainer, startCommand } from './process-streams.ts'
import { frameReader, withoutInnerTimes } from './stream-frames.ts'

const processShape = { fields: { State: { fields: { Pid: 'number' } } } } as const satisfies JsonShape

export function containerStreams(engine: Engine, socketPath: string): EngineStreams {
  const { answers } = engine
  return {
    async processOf(id) {
      const tried = `Cannot inspect container ${id}`
      const { State } = await call(tried, askMs, (late) => answers.read(`/containers/${id}/json`, processShape, late))
      return State?.Pid ?? 0
    },
    exec: (id, options, signal) => startCommand(engine, id, options, signal),
    attach: (id, options, signal) => attachContainer(engine, id, options, signal),
    async log(id, options, signal) {
      const tried = `Cannot read the log of container ${id}`
      const isFramed = !(await call(tried, askMs, (late) => hasTerminal(answers, id, late)))
      const readerOf = isFramed && !options.timestamps ? logTextReader : bodyReader
      const request = { socketPath, path: logPath(id, options), readerOf }
      const connection = await call(tried, askMs, (late) => openAnswer(request, late))
      const read = isFramed && options.timestamps ? withTimes() : (piece: Buffer) => piece
      return textOf(connection, read, signal, tried)
    },
  }
}

/** What `read` makes of each piece, until `signal` aborts. The connection is closed when it is not wanted any more. */
async function* textOf(
  { pieces, destroy }: AnswerConnection,
  read: (piece: Buffer) => Buffer,
  signal: AbortSignal,
  tried: string,
): AsyncGenerator<Buffer> {
  signal.addEventListener('abort', destroy, { once: true })
  if (signal.aborted) destroy()
  try {
    for await (const piece of pieces) {
      const text = read(piece)
      if (text.length > 0) yield text
    }
  } catch (error) {
    throw runtimeError(tried, error)
  } finally {
    signal.removeEventListener('abort', destroy)
    destroy()
  }
}

/** The text of Docker's frames with the time of each line, as much at once as Docker sent: a line each would cost a packet each. */
function withTimes(): (piece: Buffer) => Buffer {
  const [read, strip] = [frameReader(), withoutInnerTimes()]
  return (piece) => Buffer.concat(read(piece).map(strip))
}

/** dockerode's own call collects all of a log that is not followed in memory. */
function logPath(id: string, { follow, timestamps, tailLines, since }: LogOptions): string {
  const query = new URLSearchParams({
    stdout: 'true',
    stderr: 'true',
    follow: String(follow),
    timestamps: String(timestamps),
    tail: tailLines === undefined ? 'all' : String(tailLines),
    ...(since !== undefined && { since }),
  })
  return `/containers/${encodeURIComponent(id)}/logs?${query}`
}

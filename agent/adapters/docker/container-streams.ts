/** Streams of containers on Docker, each on a connection of its own. What is not taken from them stays in Docker. */
import type Dockerode from 'dockerode'
import type { EngineStreams, LogOptions } from '../../sessions/engine-streams.ts'
import { askMs, call, runtimeError } from './call.ts'
import { type LogConnection, openLogConnection } from './log-connection.ts'
import { attachContainer, startCommand } from './process-streams.ts'
import { frameReader, withoutInnerTimes } from './stream-frames.ts'
import { runReader } from './stream-runs.ts'

export function containerStreams(docker: Dockerode, socketPath: string): EngineStreams {
  return {
    async processOf(id) {
      const tried = `Cannot inspect container ${id}`
      const { State } = await call(tried, askMs, (abortSignal) => docker.getContainer(id).inspect({ abortSignal }))
      return State.Pid
    },
    exec: (id, options, signal) => startCommand(docker, id, options, signal),
    attach: (id, options, signal) => attachContainer(docker, id, options, signal),
    async log(id, options, signal) {
      const tried = `Cannot read the log of container ${id}`
      const { Config } = await call(tried, askMs, (abortSignal) => docker.getContainer(id).inspect({ abortSignal }))
      const open = (late: AbortSignal) => openLogConnection(socketPath, logPath(id, options), late)
      const connection = await call(tried, askMs, open)
      const { pieces } = connection
      const lines = options.timestamps ? linesWithTimes(pieces) : textOf(pieces)
      return endingWith(signal, connection, Config.Tty ? pieces : lines, tried)
    },
  }
}

/** The pieces, until `signal` aborts. The connection is closed when they are not wanted any more. */
async function* endingWith(
  signal: AbortSignal,
  connection: LogConnection,
  pieces: AsyncIterable<Uint8Array>,
  tried: string,
): AsyncGenerator<Uint8Array> {
  const stop = () => connection.destroy()
  signal.addEventListener('abort', stop, { once: true })
  if (signal.aborted) stop()
  try {
    yield* pieces
  } catch (error) {
    throw runtimeError(tried, error)
  } finally {
    signal.removeEventListener('abort', stop)
    stop()
  }
}

/** As much at a time as Docker sent: a line each would cost a packet each. */
async function* textOf(pieces: AsyncIterable<Buffer>): AsyncGenerator<Uint8Array> {
  const read = runReader()
  for await (const piece of pieces) for (const { bytes } of read(piece)) yield bytes
}

async function* linesWithTimes(pieces: AsyncIterable<Buffer>): AsyncGenerator<Uint8Array> {
  const read = frameReader()
  const strip = withoutInnerTimes()
  for await (const piece of pieces) {
    const payloads = read(piece).map(strip)
    if (payloads.length > 0) yield Buffer.concat(payloads)
  }
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

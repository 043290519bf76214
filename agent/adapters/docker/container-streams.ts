/** Streams of containers on Docker, each on a connection of its own. What is not taken from them stays in Docker. */
import { Readable } from 'node:stream'
import type Dockerode from 'dockerode'
import type { EngineStreams, LogOptions } from '../../sessions/engine-streams.ts'
import { askMs, call, runtimeError } from './call.ts'
import { attachContainer, startCommand } from './process-streams.ts'
import { frameReader, withoutInnerTimes } from './stream-frames.ts'

export function containerStreams(docker: Dockerode): EngineStreams {
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
      const stream = await openLog(docker, id, options)
      return endingWith(signal, stream, Config.Tty ? stream : linesOf(stream, options.timestamps), tried)
    },
  }
}

/** The pieces, until `signal` aborts. The stream is destroyed when they are not wanted any more. */
async function* endingWith(
  signal: AbortSignal,
  stream: Readable,
  pieces: AsyncIterable<Uint8Array>,
  tried: string,
): AsyncGenerator<Uint8Array> {
  const stop = () => void stream.destroy()
  signal.addEventListener('abort', stop, { once: true })
  if (signal.aborted) stop()
  try {
    yield* pieces
  } catch (error) {
    throw runtimeError(tried, error)
  } finally {
    signal.removeEventListener('abort', stop)
    stream.destroy()
  }
}

/** As much at a time as Docker sent: a line each would cost a packet each. */
async function* linesOf(stream: Readable, timestamps: boolean): AsyncGenerator<Uint8Array> {
  const read = frameReader()
  const strip = timestamps ? withoutInnerTimes() : undefined
  for await (const piece of stream) {
    const payloads = read(piece).map((frame) => strip?.(frame) ?? frame.payload)
    if (payloads.length > 0) yield Buffer.concat(payloads)
  }
}

/** dockerode's own call collects all of a log that is not followed in memory. */
function openLog(docker: Dockerode, id: string, options: LogOptions): Promise<Readable> {
  const { follow, timestamps, tailLines, since } = options
  const query = {
    stdout: true,
    stderr: true,
    follow,
    timestamps,
    tail: tailLines === undefined ? 'all' : String(tailLines),
    ...(since !== undefined && { since }),
  }
  const tried = `Cannot read the log of container ${id}`
  return call(
    tried,
    askMs,
    (abortSignal) =>
      new Promise<Readable>((resolve, reject) => {
        const statusCodes = { 200: true, 404: 'no such container', 500: 'server error' }
        const path = `/containers/${id}/logs?`
        docker.modem.dial({ path, method: 'GET', isStream: true, options: query, statusCodes }, (error, stream) => {
          if (error !== null) return reject(error)
          if (!(stream instanceof Readable)) return reject(new Error('Docker answered without a stream'))
          if (abortSignal.aborted) stream.destroy()
          else resolve(stream)
        })
      }),
  )
}

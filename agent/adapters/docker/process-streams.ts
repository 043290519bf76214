/** A process in a container with its standard streams, on a connection to Docker that has left HTTP. */
import { once } from 'node:events'
import { Duplex } from 'node:stream'
import { setTimeout as delay } from 'node:timers/promises'
import type Dockerode from 'dockerode'
import type { EngineProcess, TerminalOptions } from '../../sessions/engine-streams.ts'
import { askMs, call, runtimeError } from './call.ts'
import { killCommand } from './output.ts'
import { frameReader } from './stream-frames.ts'

/** Docker notices the end of a command a moment after its output has ended. */
const endedMs = 5_000
const lookAgainMs = 50

/** Rejects with a RuntimeError. The command is killed when `signal` aborts. */
export async function startCommand(
  docker: Dockerode,
  id: string,
  { command, stdin, stdout, stderr, tty }: TerminalOptions & { readonly command: readonly string[] },
  signal: AbortSignal,
): Promise<EngineProcess> {
  const tried = `Cannot run ${command[0]} in container ${id}`
  const options = {
    Cmd: [...command],
    AttachStdin: stdin,
    AttachStdout: stdout,
    AttachStderr: stderr && !tty,
    Tty: tty,
  }
  const exec = await call(tried, askMs, (abortSignal) => docker.getContainer(id).exec({ ...options, abortSignal }))
  const stream = duplex(await call(tried, askMs, () => exec.start({ hijack: true, stdin: true, Tty: tty })))
  const stop = () => void killCommand(exec, id)
  signal.addEventListener('abort', stop, { once: true })
  if (signal.aborted) stop() // the client has left while Docker started it
  return {
    ...standardStreams(stream, tty, signal, tried),
    // Of a process that has just ended there is no terminal left.
    resize: (w, h) => exec.resize({ w, h }).then(ignored, ignored),
    async exitCode() {
      signal.removeEventListener('abort', stop)
      for (let waitedMs = 0; ; waitedMs += lookAgainMs) {
        const { Running, ExitCode } = await call(tried, askMs, (abortSignal) => exec.inspect({ abortSignal }))
        if (!Running || waitedMs >= endedMs) return ExitCode ?? undefined
        await delay(lookAgainMs)
      }
    },
  }
}

/** Rejects with a RuntimeError. */
export async function attachContainer(
  docker: Dockerode,
  id: string,
  { stdin, stdout, stderr }: TerminalOptions,
  signal: AbortSignal,
): Promise<EngineProcess> {
  const tried = `Cannot attach to container ${id}`
  const container = docker.getContainer(id)
  const { Config } = await call(tried, askMs, (abortSignal) => container.inspect({ abortSignal }))
  const options = { stream: true, hijack: true, stdin, stdout, stderr: stderr && !Config.Tty }
  const stream = duplex(await call(tried, askMs, () => container.attach(options)))
  return {
    ...standardStreams(stream, Config.Tty, signal, tried),
    resize: (w, h) => container.resize({ w, h }).then(ignored, ignored),
    exitCode: async () => undefined,
  }
}

function standardStreams(stream: Duplex, tty: boolean, signal: AbortSignal, tried: string) {
  const stop = () => void stream.destroy()
  signal.addEventListener('abort', stop, { once: true })
  if (signal.aborted) stop()
  stream.on('error', () => undefined) // the reader of the output sees it
  return {
    async write(input: Uint8Array) {
      if (stream.destroyed || stream.writableEnded) throw new Error('The process takes no more input')
      if (!stream.write(input)) await once(stream, 'drain', { signal })
    },
    endInput: () => void stream.end(),
    output: outputOf(stream, tty, tried, () => signal.removeEventListener('abort', stop)),
  }
}

async function* outputOf(stream: Duplex, tty: boolean, tried: string, done: () => void) {
  const read = frameReader()
  try {
    for await (const piece of stream.iterator({ destroyOnReturn: false })) {
      if (tty) yield { stream: 'stdout', bytes: piece } as const
      else {
        for (const { stream: name, payload } of read(piece)) {
          yield { stream: name === 'stderr' ? 'stderr' : 'stdout', bytes: payload } as const
        }
      }
    }
  } catch (error) {
    throw runtimeError(tried, error)
  } finally {
    done()
    stream.destroy()
  }
}

function duplex(stream: NodeJS.ReadWriteStream): Duplex {
  if (stream instanceof Duplex) return stream
  throw new Error('Docker answered without a stream')
}

function ignored(): void {
  // Whether it worked shows on the terminal.
}

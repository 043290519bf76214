/** A process in a container with its standard streams, on a connection to Docker that has left HTTP. */
import { once } from 'node:events'
import { Duplex } from 'node:stream'
import { setTimeout as delay } from 'node:timers/promises'
import { unlessAborted, withOwnSignal } from '../../../daemon/aborted.ts'
import { withinOr } from '../../../daemon/deadline.ts'
import { gatheredPieces } from '../../../daemon/sessions/gathered-pieces.ts'
import type { EngineProcess, TerminalOptions } from '../../sessions/engine-streams.ts'
import { askMs, call, runtimeError } from './call.ts'
import type { Engine } from './engine.ts'
import { hasTerminal, inspectCommand, killCommand } from './output.ts'
import { runReader } from './stream-runs.ts'

/** Docker notices the end of a command a moment after its output has ended. */
const endedMs = 5_000
const lookAgainMs = 50
/** For the agent to stop: a command that is left over then runs until its container ends. */
const killedMs = 3_000

/** Rejects with a RuntimeError. The command is killed when `signal` aborts, also where that is while Docker starts it. */
export async function startCommand(
  { docker, answers }: Engine,
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
  const start = (abortSignal: AbortSignal) => exec.start({ hijack: true, stdin: true, Tty: tty, abortSignal })
  const stream = await hijacked(tried, signal, start).catch(async (error: unknown) => {
    await killCommand(answers, exec.id, id) // Docker may have started it
    throw error
  })
  let killed: Promise<void> | undefined
  const stop = () => {
    killed ??= killCommand(answers, exec.id, id)
  }
  signal.addEventListener('abort', stop, { once: true })
  if (signal.aborted) stop()
  return {
    ...standardStreams(stream, tty, signal, tried),
    // A process that has just ended has no terminal: the error is ignored.
    resize: (w, h) => exec.resize({ w, h }).then(ignored, ignored),
    async exitCode() {
      signal.removeEventListener('abort', stop)
      for (let waitedMs = 0; ; waitedMs += lookAgainMs) {
        const { Running, ExitCode } = await call(tried, askMs, (late) => inspectCommand(answers, exec.id, late))
        if (!Running || waitedMs >= endedMs) return ExitCode
        await delay(lookAgainMs)
      }
    },
    stopped: () => withinOr(killedMs, undefined, killed ?? Promise.resolve()),
  }
}

/** Rejects with a RuntimeError. */
export async function attachContainer(
  { docker, answers }: Engine,
  id: string,
  { stdin, stdout, stderr }: TerminalOptions,
  signal: AbortSignal,
): Promise<EngineProcess> {
  const tried = `Cannot attach to container ${id}`
  const container = docker.getContainer(id)
  const tty = await call(tried, askMs, (late) => hasTerminal(answers, id, late))
  const options = { stream: true, hijack: true, stdin, stdout, stderr: stderr && !tty }
  const stream = await hijacked(tried, signal, (abortSignal) => container.attach({ ...options, abortSignal }))
  return {
    ...standardStreams(stream, tty, signal, tried),
    resize: (w, h) => container.resize({ w, h }).then(ignored, ignored),
    exitCode: async () => undefined,
    stopped: async () => undefined,
  }
}

/** A connection to Docker that has left HTTP. The call ends when `signal` aborts; a stream that comes later is closed. */
function hijacked(
  tried: string,
  signal: AbortSignal,
  open: (abortSignal: AbortSignal) => Promise<NodeJS.ReadWriteStream>,
): Promise<Duplex> {
  return call(tried, askMs, (late) =>
    withOwnSignal(signal, (left) =>
      withOwnSignal(late, async (own) => {
        const abort = () => own.abort(left.signal.reason)
        left.signal.addEventListener('abort', abort, { once: true })
        if (left.signal.aborted) abort()
        const opening = open(own.signal).then(duplex)
        const stream = await unlessAborted(opening, own.signal)
        if (stream !== undefined) return stream
        opening.then(
          (unwanted) => void unwanted.destroy(),
          () => undefined,
        )
        throw new Error('The client is gone')
      }),
    ),
  )
}

function standardStreams(stream: Duplex, tty: boolean, signal: AbortSignal, tried: string) {
  const stop = () => void stream.destroy()
  signal.addEventListener('abort', stop, { once: true })
  if (signal.aborted) stop()
  stream.on('error', () => undefined) // the reader of the output sees it
  return {
    async write(input: Uint8Array) {
      if (stream.destroyed || stream.writableEnded) throw new Error('The process no longer accepts input')
      if (!stream.write(input)) await once(stream, 'drain', { signal })
    },
    endInput: () => void stream.end(),
    output: outputOf(stream, tty, tried, () => signal.removeEventListener('abort', stop)),
  }
}

async function* outputOf(stream: Duplex, tty: boolean, tried: string, done: () => void) {
  const read = runReader()
  try {
    for await (const piece of gatheredPieces(stream)) {
      if (tty) yield { stream: 'stdout', bytes: piece } as const
      // Not yield*, which waits several times for each of them.
      else for (const run of read(piece)) yield run
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

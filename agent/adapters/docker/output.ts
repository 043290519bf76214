/** The output of containers: of a command in a running one, and the end of its log. */
import { startDeadline } from '../../../daemon/deadline.ts'
import { killTree } from '../../../daemon/process/process-tree.ts'
import type { ExecResult } from '../../runtime/runtime.ts'
import { askMs, call } from './call.ts'
import type { EngineReader } from './connection.ts'
import type { Engine } from './engine.ts'
import type { JsonShape } from './json-reader.ts'

/** The kubelet cuts the output of probes and hooks at this length (pkg/probe/exec/exec.go, maxReadLength). */
const mostBytes = 10 * 1024
/** The header size of a frame: see `framesIn`. */
const headBytes = 8

/** A command that takes too long is killed soon afterwards. */
export async function execute(
  { docker, answers }: Engine,
  id: string,
  command: readonly string[],
  timeoutMs: number,
): Promise<ExecResult> {
  const tried = `Cannot run ${command[0]} in container ${id}`
  const options = { Cmd: [...command], AttachStdout: true, AttachStderr: true }
  const exec = await call(tried, askMs, (abortSignal) => docker.getContainer(id).exec({ ...options, abortSignal }))
  const deadline = new AbortController()
  const late = deadline.signal
  const stop = startDeadline(timeoutMs, () => deadline.abort('late'))
  const frames: Buffer[] = []
  try {
    const stream = await call(tried, askMs, () => exec.start({ Detach: false, Tty: false, abortSignal: late }))
    let bytes = 0
    late.addEventListener('abort', () => stream.destroy(), { once: true })
    for await (const chunk of stream) {
      if (bytes < 2 * mostBytes) frames.push(Buffer.from(chunk))
      bytes += chunk.length
    }
  } catch (error) {
    if (!late.aborted) throw error
  } finally {
    stop()
  }
  const { payloads, left } = framesIn(Buffer.concat(frames))
  const output = [...payloads, left.subarray(headBytes)].map(String).join('').slice(0, mostBytes)
  if (late.aborted) {
    void killCommand(answers, exec.id, id)
    return { exitCode: undefined, output }
  }
  const { ExitCode } = await call(tried, askMs, (signal) => inspectCommand(answers, exec.id, signal))
  return { exitCode: ExitCode, output }
}

const commandShape = { fields: { Running: 'flag', Pid: 'number', ExitCode: 'number' } } as const satisfies JsonShape

/** The state of a command, without its arguments and variables. */
export function inspectCommand(answers: EngineReader, exec: string, signal: AbortSignal) {
  return answers.read(`/exec/${exec}/json`, commandShape, signal)
}

const terminalShape = { fields: { Config: { fields: { Tty: 'flag' } } } } as const satisfies JsonShape

/** Whether the container has a terminal, so that its output has no frames. */
export async function hasTerminal(answers: EngineReader, id: string, signal: AbortSignal): Promise<boolean> {
  return (await answers.read(`/containers/${id}/json`, terminalShape, signal)).Config?.Tty === true
}

/**
 * Docker cannot end an exec. The kernel can, with all that it started, if the processes certainly belong to this container: otherwise each probe
 * that is too late leaves some. Never rejects.
 */
export async function killCommand(answers: EngineReader, exec: string, id: string): Promise<void> {
  try {
    const { Running, Pid = 0 } = await call('Cannot inspect a command', askMs, (signal) =>
      inspectCommand(answers, exec, signal),
    )
    if (Running && Pid > 1) await killTree(Pid, (cgroups) => cgroups.includes(id))
  } catch {
    // It runs until it ends or its container does.
  }
}

/** The end of a container's log, as stored by Docker. Memory use is bounded. */
export async function logTail(
  { docker, answers }: Engine,
  id: string,
  mostLines: number,
  mostBytes: number,
): Promise<Buffer> {
  const tried = `Cannot read the log of container ${id}`
  const options = { stdout: true, stderr: true, follow: true, tail: mostLines } as const
  return await call(tried, askMs, async (abortSignal) => {
    const container = docker.getContainer(id)
    const isPlain = await hasTerminal(answers, id, abortSignal)
    // `follow` makes Docker stream the log; the stream of a container that ended ends too.
    const stream = await container.logs({ ...options, abortSignal })
    let [rest, tail] = [Buffer.alloc(0), Buffer.alloc(0)]
    for await (const chunk of stream) {
      if (isPlain) {
        tail = lastBytes(tail, Buffer.from(chunk), mostBytes)
        continue
      }
      const { payloads, left } = framesIn(Buffer.concat([rest, Buffer.from(chunk)]))
      for (const payload of payloads) tail = lastBytes(tail, payload, mostBytes)
      rest = left
    }
    return tail
  })
}

function lastBytes(before: Buffer, more: Buffer, most: number): Buffer<ArrayBuffer> {
  return Buffer.from(Buffer.concat([before, more]).subarray(-most))
}

/**
 * Standard output and error are multiplexed in frames with a header of eight bytes, the last four of which are the length (Docker
 * Engine API, ContainerAttach).
 */
function framesIn(bytes: Buffer<ArrayBuffer>) {
  const payloads: Buffer[] = []
  let left = bytes
  while (left.length >= headBytes && left.length >= headBytes + left.readUInt32BE(4)) {
    const length = left.readUInt32BE(4)
    payloads.push(left.subarray(headBytes, headBytes + length))
    left = left.subarray(headBytes + length)
  }
  return { payloads, left }
}

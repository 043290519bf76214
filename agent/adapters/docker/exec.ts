/** A command in a container that runs: what it wrote, and how it ended. */
import { readFile } from 'node:fs/promises'
import type Dockerode from 'dockerode'
import type { ExecResult } from '../../pods/runtime.ts'
import { askMs, call } from './call.ts'

/** As the kubelet cuts what a probe or a hook says. */
const mostBytes = 10 * 1024

/** A command that takes too long is killed, soon afterwards. */
export async function execute(
  docker: Dockerode,
  id: string,
  command: readonly string[],
  timeoutMs: number,
): Promise<ExecResult> {
  const tried = `Cannot run ${command[0]} in container ${id}`
  const options = { Cmd: [...command], AttachStdout: true, AttachStderr: true }
  const exec = await call(tried, askMs, (abortSignal) => docker.getContainer(id).exec({ ...options, abortSignal }))
  const late = AbortSignal.timeout(timeoutMs)
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
  }
  const output = textOf(Buffer.concat(frames)).slice(0, mostBytes)
  if (late.aborted) {
    void end(exec, id)
    return { exitCode: undefined, output }
  }
  const { ExitCode } = await call(tried, askMs, (abortSignal) => exec.inspect({ abortSignal }))
  return { exitCode: ExitCode ?? undefined, output }
}

/** Docker cannot end what it runs so. The kernel can, where the process is surely one of this container. */
async function end(exec: Dockerode.Exec, id: string): Promise<void> {
  try {
    const { Running, Pid } = await call('Cannot look at a command', askMs, (abortSignal) =>
      exec.inspect({ abortSignal }),
    )
    if (!Running || Pid <= 1) return
    const groups = await readFile(`/proc/${Pid}/cgroup`, 'utf8')
    if (groups.includes(id)) process.kill(Pid, 'SIGKILL')
  } catch {
    // It has ended, or its processes are not ours to see: it goes on until it ends or its container does.
  }
}

/** Standard output and error in frames: eight bytes of head each, the last four of them its length. */
function textOf(frames: Buffer): string {
  let text = ''
  for (let rest = frames; rest.length >= 8; ) {
    const length = rest.readUInt32BE(4)
    text += rest.subarray(8, 8 + length).toString()
    rest = rest.subarray(8 + length)
  }
  return text
}

/**
 * Programs whose system calls may never return: on a file system that does not answer, a process can stay in uninterruptible sleep
 * even after SIGKILL. Node.js waits for the end of a child that it has killed, so the deadline is an own timer. A child that is left is
 * remembered, and no second one is started for the same purpose until it has ended. It does not keep this process from exiting.
 */
import { type ChildProcess, type SpawnOptions, spawn } from 'node:child_process'
import { startDeadline } from '../../../../daemon/deadline.ts'

export type ChildEnd = { readonly code: number | null; readonly stdout: string; readonly stderr: string }

/** The program did not end, or was not started because an earlier one is left. */
export class NoAnswer extends Error {
  override readonly name = 'NoAnswer'
}

/** As `spawn` of Node.js. */
export type Start = (program: string, args: readonly string[], options: SpawnOptions) => ChildProcess

export type BoundedChild = {
  /** What it works on. At most one child is left for each. */
  readonly key: string
  readonly command: readonly string[]
  readonly deadlineMs: number
  readonly start?: Start
  /** It is killed with the programs that it has started. */
  readonly ownGroup?: true
}

/** Together they must not use up the tasks that the unit of the agent allows. */
const mostLeft = 16
const mostText = 10_000
const left = new Map<string, ChildProcess>()

/** Rejects with NoAnswer if the program does not end in time, and with the error of its start. */
export async function runBounded({
  key,
  command,
  deadlineMs,
  start = spawn,
  ownGroup,
}: BoundedChild): Promise<ChildEnd> {
  const [program = '', ...args] = command
  refuseIfLeft(key)
  return new Promise((resolve, reject) => {
    const env = { ...process.env, LC_ALL: 'C' }
    const child = start(program, args, { stdio: ['ignore', 'pipe', 'pipe'], env, detached: ownGroup === true })
    const texts = { stdout: '', stderr: '' }
    for (const name of ['stdout', 'stderr'] as const) {
      child[name]?.setEncoding('utf8').on('data', (text: string) => {
        texts[name] = (texts[name] + text).slice(0, mostText)
      })
    }
    const stop = startDeadline(deadlineMs, () => {
      if (ownGroup) killGroup(child)
      leave(key, child)
      reject(new NoAnswer(`${program} did not end within ${deadlineMs / 1000} s`))
    })
    child.once('error', (error) => {
      stop()
      reject(error)
    })
    child.once('close', (code) => {
      stop()
      resolve({ code, ...texts })
    })
  })
}

function killGroup({ pid }: ChildProcess): void {
  try {
    if (pid !== undefined) process.kill(-pid, 'SIGKILL')
  } catch {
    // ESRCH: it has just ended.
  }
}

/** Kills it, and does not wait for its end. */
export function leave(key: string, child: ChildProcess): void {
  left.set(key, child)
  child.once('exit', () => {
    if (left.get(key) === child) left.delete(key)
  })
  child.kill('SIGKILL')
  child.stdin?.destroy()
  child.stdout?.destroy()
  child.stderr?.destroy()
  child.unref()
}

export function refuseIfLeft(key: string): void {
  const earlier = left.get(key)
  if (earlier !== undefined) {
    throw new NoAnswer(`an earlier process (${earlier.pid}) still waits for the file system and cannot be killed`)
  }
  if (left.size >= mostLeft) throw new NoAnswer(`${left.size} processes wait for file systems that do not answer`)
}

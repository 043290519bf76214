/** Programs of the system that change the kernel's network, such as nft and ip: text in, text out, and an end. */
import { type ExecFileException, execFile } from 'node:child_process'
import { codeOf } from '../../../daemon/errors.ts'

export type ToolOutcome = { readonly code: number; readonly stdout: string; readonly stderr: string }

/** 5,000 Services in one transaction took 15 s on a loaded machine. */
const usualDeadlineMs = 60_000
/** For `timeout` to end the program before the shell is ended, which would leave it running. */
const afterTimeoutMs = 5_000
const mostBytes = 64 * 1024 * 1024

/**
 * Resolves with the end of the program, whatever it is; a signal counts as 128. Rejects where the program is not installed or
 * does not end in time: the message names it. `input`: what it reads.
 */
export function runTool(
  file: string,
  args: readonly string[],
  input?: string,
  deadlineMs = usualDeadlineMs,
): Promise<ToolOutcome> {
  return new Promise((resolve, reject) => {
    const isPiped = input !== undefined
    const timeout = isPiped ? deadlineMs + afterTimeoutMs : deadlineMs
    const settings = { timeout, killSignal: 'SIGKILL', maxBuffer: mostBytes } as const
    const [program, line] = isPiped ? ['sh', ['-c', throughPipe(deadlineMs), file, ...args]] : [file, args]
    const child = execFile(program, [...line], settings, (error, stdout, stderr) => {
      const failure = error === null ? undefined : failureOf(error, file, isPiped, deadlineMs)
      if (failure !== undefined) return reject(failure)
      const code = error === null ? 0 : error.code
      resolve({ code: typeof code === 'number' ? code : 128, stdout, stderr })
    })
    // It may end before it has read everything; its status is what counts.
    child.stdin?.on('error', () => undefined)
    child.stdin?.end(input ?? '')
  })
}

/** undefined: the program ended by itself, or by a signal of others. */
function failureOf(error: ExecFileException, file: string, isPiped: boolean, deadlineMs: number): Error | undefined {
  if (codeOf(error) === 'ENOENT' || error.code === notFound) return new MissingTool(file)
  const isLate = error.killed || (isPiped && error.code === timedOut)
  return isLate ? new Error(`${file} did not end within ${deadlineMs / 1000} s`) : undefined
}

/** nft opens /dev/stdin, which is possible for a pipe and not for the socket that Node.js gives a child. */
const throughPipe = (deadlineMs: number) => `cat | timeout --signal=KILL ${deadlineMs / 1000} "$0" "$@"`
/** Exit status of timeout(1) for a command that it killed. */
const timedOut = 137
/** Exit status of the shell for a command that does not exist (POSIX, Shell Command Language, 2.8.2). */
const notFound = 127

/** The program is not installed. */
export class MissingTool extends Error {
  constructor(tool: string) {
    super(`${tool} is not installed`)
  }
}

/** As `runTool`; rejects where the program reports a failure. `tried`: the operation and its object. */
export async function runToolOrThrow(
  tried: string,
  file: string,
  args: readonly string[],
  input?: string,
): Promise<string> {
  const { code, stdout, stderr } = await runTool(file, args, input)
  if (code === 0) return stdout
  throw new Error(`${tried}: ${firstLine(stderr) || `${file} ended with status ${code}`}`)
}

function firstLine(text: string): string {
  return (text.trim().split('\n')[0] ?? '').slice(0, 500)
}

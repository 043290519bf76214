/** Our programs as a user starts them: real processes, their log read line by line, ended by their own ids. */
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { createInterface } from 'node:readline'
import { patience } from './patience.ts'
import { refuseWarnings } from './process-warnings.ts'

export type LogLine = { readonly level: string; readonly message: string; readonly [fact: string]: unknown }

export type Program = {
  readonly pid: number
  /** Every line of its log so far. */
  readonly lines: readonly LogLine[]
  /** The first line with this message, now or later. Throws when the program ends before, or after `withinMs`. */
  logged(message: string, withinMs?: number): Promise<LogLine>
  kill(signal: NodeJS.Signals): void
  /** Exit status, or the signal's name. */
  readonly ended: Promise<number | string>
  /** SIGTERM, and SIGKILL after thirty seconds. */
  stop(): Promise<number | string>
}

/**
 * Starts `command`; `teardown` gets how to end it, which throws when the program printed a warning of Node's. What the
 * program wrote is part of the error when a line is missing.
 */
export function startProgram(
  command: readonly string[],
  teardown: (end: () => Promise<unknown>) => void,
  env: NodeJS.ProcessEnv = {},
): Program {
  const [file, ...args] = command
  if (file === undefined) throw new Error('There is no command to start')
  const child: ChildProcess = spawn(file, args, { stdio: ['ignore', 'pipe', 'pipe'], env: { ...process.env, ...env } })
  const lines: LogLine[] = []
  const raw: string[] = []
  const waiting = new Set<() => void>()
  // Not 'exit': its last words may still be on their way then.
  const ended = once(child, 'close').then(([code, signal]) => (signal ?? code) as number | string)
  let over = false
  void ended.then(() => {
    over = true
    for (const look of waiting) look()
  })
  for (const stream of [child.stdout, child.stderr]) {
    if (stream === null) continue
    createInterface({ input: stream }).on('line', (line) => {
      raw.push(line)
      const parsed = parse(line)
      if (parsed !== undefined) lines.push(parsed)
      for (const look of waiting) look()
    })
  }

  const stop = async () => {
    if (over) return ended
    child.kill('SIGTERM')
    const kill = setTimeout(() => child.kill('SIGKILL'), 30_000 * patience)
    const how = await ended
    clearTimeout(kill)
    return how
  }
  teardown(async () => {
    await stop()
    refuseWarnings(command.join(' '), raw.join('\n'))
  })

  return {
    pid: child.pid ?? -1,
    lines,
    logged: (message, withinMs = 90_000) =>
      new Promise((resolve, reject) => {
        const finish = (settle: () => void) => {
          clearTimeout(timer)
          waiting.delete(look)
          settle()
        }
        const fail = (why: string) =>
          finish(() => reject(new Error(`${command.join(' ')} ${why} "${message}":\n${raw.slice(-40).join('\n')}`)))
        const look = () => {
          const line = lines.find((one) => one.message === message)
          if (line !== undefined) finish(() => resolve(line))
          else if (over) fail('ended without logging')
        }
        const timer = setTimeout(() => fail(`did not log within ${withinMs * patience} ms`), withinMs * patience)
        waiting.add(look)
        look()
      }),
    kill: (signal) => child.kill(signal),
    ended,
    stop,
  }
}

function parse(line: string): LogLine | undefined {
  try {
    return JSON.parse(line) as LogLine
  } catch {
    return undefined
  }
}

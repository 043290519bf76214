/** Stops a program as SIGSTOP does, for tests of servers that give no answer. */
import type { ChildProcess } from 'node:child_process'
import { readdirSync, readFileSync } from 'node:fs'
import { standStill } from './stand-still.ts'

const longestMs = 10_000

/** Returns once all its threads have stopped: one that runs on another core may answer after the signal was sent. */
export function freezeProcess(program: ChildProcess | undefined): void {
  if (program?.pid === undefined || !program.kill('SIGSTOP')) return
  const tasks = `/proc/${program.pid}/task`
  for (let waitedMs = 0; waitedMs < longestMs && !hasStopped(tasks); waitedMs++) standStill(1)
}

function hasStopped(tasks: string): boolean {
  try {
    // The state follows the name of the program, which is in parentheses.
    return readdirSync(tasks).every((task) =>
      /^T/.test(readFileSync(`${tasks}/${task}/stat`, 'utf8').split(') ')[1] ?? ''),
    )
  } catch {
    // A thread ended meanwhile, or the program has.
    return false
  }
}

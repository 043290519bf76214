/**
 * The doctor of this machine in a process of its own, when its report is requested: an agent that runs has nothing of it in memory.
 */
import { execFile } from 'node:child_process'
import { isObject, parseJson } from '../../../api/text/json.ts'

export type DoctorProcessSettings = {
  /** What starts this program, to which arguments are added. */
  readonly command: readonly string[]
  /** Those of `bramble-agent doctor`. */
  readonly args: readonly string[]
  readonly deadlineMs?: number
}

/** It takes less than five seconds on a machine that is well. */
const usualDeadlineMs = 25_000
const mostBytes = 1024 * 1024

/**
 * The DoctorReport as JSON. While one is made, more callers wait for it. Rejects when the doctor does not end in time, or prints
 * something else.
 */
export function doctorProcess({
  command,
  args,
  deadlineMs = usualDeadlineMs,
}: DoctorProcessSettings): () => Promise<unknown> {
  let underWay: Promise<unknown> | undefined
  const run = () =>
    new Promise<unknown>((resolve, reject) => {
      const [file = '', ...first] = command
      const options = { timeout: deadlineMs, killSignal: 'SIGKILL', maxBuffer: mostBytes } as const
      const child = execFile(
        file,
        [...first, 'doctor', '--output', 'json', ...args],
        options,
        (error, stdout, stderr) => {
          const report = parseJson(stdout)
          // With findings its status is 1 or 2.
          if (isObject(report) && report['kind'] === 'DoctorReport') return resolve(report)
          if (error?.killed) return reject(new Error(`The doctor did not end within ${deadlineMs / 1000} s`))
          reject(new Error('The doctor printed no report', { cause: error ?? new Error(stderr.slice(0, 500)) }))
        },
      )
      child.stdin?.end()
    })
  return () => {
    underWay ??= run().finally(() => {
      underWay = undefined
    })
    return underWay
  }
}

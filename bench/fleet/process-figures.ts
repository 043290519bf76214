/** What a process uses, from /proc. */
import { execFileSync } from 'node:child_process'
import { readFileSync } from 'node:fs'

export interface ProcessFigures {
  /** CPU of all its threads, in milliseconds, user and system. */
  cpuMs(): number
  residentBytes(): number
  /** What it made the kernel write to a disk. */
  writtenBytes(): number
}

export function processFigures(pid: number): ProcessFigures {
  const field = (file: string, name: string) =>
    Number(new RegExp(`^${name}:\\s+(\\d+)`, 'm').exec(readFileSync(`/proc/${pid}/${file}`, 'utf8'))?.[1])
  return {
    cpuMs() {
      const fields = readFileSync(`/proc/${pid}/stat`, 'utf8')
        .replace(/^.*\) /s, '')
        .split(' ')
      return ((Number(fields[11]) + Number(fields[12])) * 1000) / ticksPerSecond
    },
    residentBytes: () => field('status', 'VmRSS') * 1024,
    writtenBytes: () => field('io', 'write_bytes'),
  }
}

const ticksPerSecond = Number(execFileSync('getconf', ['CLK_TCK'], { encoding: 'utf8' }))

/** This process as the owner of a store, and whether another one on this machine has ended. Linux: procfs. */
import { readFileSync, readlinkSync } from 'node:fs'
import { hostname } from 'node:os'
import type { OwnerProcess } from './owner-key.ts'

export function ownProcess(): OwnerProcess {
  return { host: hostname(), pid: process.pid, place: placeOf(), began: beganOf(process.pid) ?? '' }
}

/** False where there is no proof: on another machine, or in another container. */
export function ownerHasEnded({ pid, place, began }: OwnerProcess): boolean {
  return place !== '' && place === placeOf() && beganOf(pid) !== began
}

/** '' where it cannot be read. */
function placeOf(): string {
  try {
    const boot = readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').trim()
    return `${boot} ${readlinkSync('/proc/self/ns/pid')}`
  } catch {
    return ''
  }
}

/** Field 22 of /proc/PID/stat, the ticks from the boot to the start (proc(5)); undefined: there is no such process. */
function beganOf(pid: number): string | undefined {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'utf8')
    // The name of the program, in parentheses, may contain blanks.
    const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
    return fields[0] === 'Z' ? undefined : fields[19]
  } catch {
    return undefined
  }
}

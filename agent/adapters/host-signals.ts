/**
 * SignalSource on files of the kernel and `statfs`. Starts no process and writes nothing: under pressure a fork is just
 * what fails.
 *
 * memory.available is capacity − working set, and the working set is usage − inactive file pages, as the kubelet counts
 * it, from the machine's root cgroup:
 * - cgroup v1: `memory.usage_in_bytes` − `total_inactive_file`;
 * - cgroup v2: `memory.current` − `inactive_file`; the real root has no `memory.current`, there usage is `anon` + `file`;
 * - no memory cgroup (Raspberry Pi OS switches it off): the kernel's own estimate, MemAvailable.
 */
import { readFileSync } from 'node:fs'
import { statfs } from 'node:fs/promises'
import { join } from 'node:path'
import type { Observation, Observations, Signal, SignalSource } from '../eviction/observations.ts'
import { lineValue, meminfoBytes } from './kernel-files.ts'
import { within } from './within.ts'

export type HostSignalsNeeds = {
  /** `/`, or a saved tree. */
  readonly root: string
  /** A folder on the filesystem that holds our own data: nodefs. */
  readonly dataDirectory: string
  /** Where the container engine keeps images; undefined as long as it has not told us. */
  readonly imageDirectory: () => string | undefined
  readonly statfs?: (path: string) => Promise<FilesystemStats>
}

/** Blocks of `bsize` bytes, and inodes. `bavail`: what is left for those who are not root. */
export type FilesystemStats = {
  readonly bsize: number
  readonly blocks: number
  readonly bavail: number
  readonly files: number
  readonly ffree: number
}

/** A filesystem that does not answer (a dying card, a lost network disk) must not hold up the others. */
const statfsDeadlineMs = 5_000

type Reading = { readonly signals: readonly Signal[]; readonly read: () => Observation[] | Promise<Observation[]> }

export function hostSignals(needs: HostSignalsNeeds): SignalSource {
  const { root, dataDirectory, imageDirectory } = needs
  const ask = onceAtATime(needs.statfs ?? ((path: string) => statfs(path)))
  return {
    async observe() {
      const images = imageDirectory()
      const readings: Reading[] = [
        { signals: ['memory.available'], read: () => [memoryAvailable(root)] },
        { signals: ['nodefs.available', 'nodefs.inodesFree'], read: () => filesystem('nodefs', dataDirectory, ask) },
        { signals: ['pid.available'], read: () => [pidAvailable(root)] },
      ]
      if (images !== undefined) {
        readings.push({
          signals: ['imagefs.available', 'imagefs.inodesFree'],
          read: () => filesystem('imagefs', images, ask),
        })
      }
      return together(await Promise.all(readings.map(taken)))
    },
  }
}

async function taken({ signals, read }: Reading): Promise<Observations> {
  try {
    return { observed: await read(), unread: [] }
  } catch (error) {
    const because = error instanceof Error ? error.message : String(error)
    return { observed: [], unread: signals.map((signal) => ({ signal, because })) }
  }
}

function together(parts: readonly Observations[]): Observations {
  return { observed: parts.flatMap((part) => part.observed), unread: parts.flatMap((part) => part.unread) }
}

// Reads of /proc and /sys are answered by the kernel from memory: asking a thread to do it would cost more than it takes.
function memoryAvailable(root: string): Observation {
  const meminfo = readFileSync(join(root, 'proc/meminfo'), 'utf8')
  const capacity = meminfoBytes(meminfo, 'MemTotal')
  const workingSet = workingSetOf(join(root, 'sys/fs/cgroup'))
  const available = workingSet === undefined ? meminfoBytes(meminfo, 'MemAvailable') : capacity - workingSet
  return { signal: 'memory.available', available: Math.max(0, available), capacity }
}

function workingSetOf(cgroups: string): number | undefined {
  const first = textOf(join(cgroups, 'memory/memory.stat'))
  if (first !== undefined) {
    const usage = Number(readFileSync(join(cgroups, 'memory/memory.usage_in_bytes'), 'utf8'))
    return Math.max(0, usage - lineValue(first, 'total_inactive_file'))
  }
  const second = textOf(join(cgroups, 'memory.stat'))
  if (second === undefined) return undefined
  const current = textOf(join(cgroups, 'memory.current'))
  const usage = current === undefined ? lineValue(second, 'anon') + lineValue(second, 'file') : Number(current)
  return Math.max(0, usage - lineValue(second, 'inactive_file'))
}

/** Tasks (threads count) against what the kernel allows: the smaller of its two limits. */
function pidAvailable(root: string): Observation {
  const [, , , tasks = ''] = readFileSync(join(root, 'proc/loadavg'), 'utf8').split(' ')
  const running = Number(tasks.split('/')[1])
  const limits = ['proc/sys/kernel/pid_max', 'proc/sys/kernel/threads-max']
  const capacity = Math.min(...limits.map((limit) => Number(readFileSync(join(root, limit), 'utf8'))))
  if (!Number.isFinite(running + capacity)) throw new Error(`Cannot understand ${join(root, 'proc/loadavg')}`)
  return { signal: 'pid.available', available: Math.max(0, capacity - running), capacity }
}

async function filesystem(
  name: 'nodefs' | 'imagefs',
  path: string,
  ask: (path: string) => Promise<FilesystemStats>,
): Promise<Observation[]> {
  const stats = await within(statfsDeadlineMs, `No answer from the filesystem of ${path}`, ask(path))
  return [
    { signal: `${name}.available`, available: stats.bavail * stats.bsize, capacity: stats.blocks * stats.bsize },
    { signal: `${name}.inodesFree`, available: stats.ffree, capacity: stats.files },
  ]
}

/** A call that hangs holds a thread: while it does, later askers wait for the same answer instead of taking another. */
function onceAtATime<T>(ask: (path: string) => Promise<T>): (path: string) => Promise<T> {
  const asked = new Map<string, Promise<T>>()
  return (path) => {
    const answer = asked.get(path) ?? ask(path).finally(() => asked.delete(path))
    asked.set(path, answer)
    return answer
  }
}

function textOf(path: string): string | undefined {
  try {
    return readFileSync(path, 'utf8')
  } catch {
    return undefined
  }
}

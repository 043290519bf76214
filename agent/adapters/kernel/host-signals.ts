/**
 * SignalSource on files of the kernel and `statfs`. Starts no process and writes nothing: under pressure a fork is just
 * what fails.
 *
 * memory.available is capacity − working set, and the working set is usage − inactive file pages, as the kubelet counts
 * it, from the machine's root cgroup:
 * - cgroup v1: `memory.usage_in_bytes` − `total_inactive_file`;
 * - cgroup v2: `memory.current` − `inactive_file`; the real root has no `memory.current`, there usage is `anon` + `file`;
 * - no memory cgroup (Raspberry Pi OS switches it off): the kernel's own estimate, MemAvailable.
 *
 * A machine that is itself a container (LXC, systemd-nspawn) may have limits on its root cgroup: where they are less
 * than the kernel's, they are what it has.
 */

import { readFileSync } from 'node:fs'
import { stat, statfs } from 'node:fs/promises'
import { join } from 'node:path'
import { onceAtATime, within } from '../../../daemon/deadline.ts'
import { codeOf, messageOf } from '../../../daemon/errors.ts'
import type { Observation, Observations, Signal, SignalSource, Stall } from '../../eviction/observations.ts'
import { lineValue, machineMemoryBytes, machineTasks, meminfoBytes, textOf } from './kernel-files.ts'

export type HostSignalsNeeds = {
  /** `/`, or a saved tree. */
  readonly root: string
  /** A folder on the filesystem that holds the agent's data: nodefs. */
  readonly dataDirectory: string
  /** The folder of the engine's images; undefined until the engine has reported it. */
  readonly imageDirectory: () => string | undefined
  readonly statfs?: (path: string) => Promise<FilesystemStats>
  /** The device number of the filesystem of a folder. */
  readonly deviceOf?: (path: string) => Promise<number>
}

/** Blocks of `bsize` bytes, and inodes. `bavail`: blocks available to non-root users. */
export type FilesystemStats = {
  readonly bsize: number
  readonly blocks: number
  readonly bavail: number
  readonly files: number
  readonly ffree: number
}

/** A filesystem that does not answer (a failing card, a lost network disk) must not block the others. */
const statfsDeadlineMs = 5_000

type Reading = Pick<Observations, 'observed' | 'unread'>
type Asked = { readonly signals: readonly Signal[]; readonly read: () => Observation[] | Promise<Observation[]> }

export function hostSignals(needs: HostSignalsNeeds): SignalSource {
  const { root, dataDirectory, imageDirectory } = needs
  const ask = onceAtATime(needs.statfs ?? ((path: string) => statfs(path)))
  const deviceOf = onceAtATime(needs.deviceOf ?? (async (path: string) => (await stat(path)).dev))
  let apart: { readonly images: string; readonly apart: boolean } | undefined

  /** Determined once: a folder moves to another filesystem only with a restart of its program. */
  const areApart = async (images: string): Promise<boolean | undefined> => {
    if (apart?.images === images) return apart.apart
    const device = (path: string) =>
      within(statfsDeadlineMs, `No answer from the filesystem of ${path}`, deviceOf(path))
    try {
      const [own, theirs] = await Promise.all([device(dataDirectory), device(images)])
      apart = { images, apart: own !== theirs }
      return apart.apart
    } catch (error) {
      // Docker has a mount namespace of its own, so its folder never exists here. Any other error may be temporary and is
      // reported in `unread`.
      return codeOf(error) === 'ENOENT' ? true : undefined
    }
  }

  return {
    async observe() {
      const images = imageDirectory()
      const imagesApart = images === undefined ? undefined : await areApart(images)
      const disk = (name: 'nodefs' | 'imagefs', path: string): Asked => ({
        signals: [`${name}.available`, `${name}.inodesFree`],
        read: () => filesystem(name, path, ask),
      })
      const asked: Asked[] = [
        { signals: ['memory.available'], read: () => [memoryAvailable(root)] },
        { signals: ['pid.available'], read: () => [pidAvailable(root)] },
        disk('nodefs', dataDirectory),
        ...(images === undefined ? [] : [disk('imagefs', imagesApart === false ? dataDirectory : images)]),
      ]
      const readings = await Promise.all(asked.map(taken))
      return {
        observed: readings.flatMap(({ observed }) => observed),
        unread: readings.flatMap(({ unread }) => unread),
        stalls: stallsOf(root),
        imagesApart,
      }
    },
  }
}

async function taken({ signals, read }: Asked): Promise<Reading> {
  try {
    return { observed: await read(), unread: [] }
  } catch (error) {
    const because = messageOf(error)
    return { observed: [], unread: signals.map((signal) => ({ signal, because })) }
  }
}

// The kernel answers reads of /proc and /sys from memory: using a thread would cost more than the read.
function memoryAvailable(root: string): Observation {
  const meminfo = readFileSync(join(root, 'proc/meminfo'), 'utf8')
  const capacity = machineMemoryBytes(root, meminfo)
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

function pidAvailable(root: string): Observation {
  const { running, capacity } = machineTasks(root)
  return { signal: 'pid.available', available: Math.max(0, capacity - running), capacity }
}

/**
 * From the root cgroup if it has pressure files, else from the kernel; empty where the kernel was built or booted without PSI.
 */
function stallsOf(root: string): readonly Stall[] {
  const read = (resource: string) =>
    textOf(join(root, 'sys/fs/cgroup', `${resource}.pressure`)) ?? textOf(join(root, 'proc/pressure', resource)) ?? ''
  const percent = (text: string, kind: 'some' | 'full') => {
    const [, number] = new RegExp(`^${kind} avg10=([\\d.]+) `, 'm').exec(text) ?? []
    return number === undefined ? undefined : Number(number)
  }
  const [memory, io, cpu] = [read('memory'), read('io'), read('cpu')]
  const stalls = [
    { signal: 'memory.some', percent: percent(memory, 'some') },
    { signal: 'memory.full', percent: percent(memory, 'full') },
    { signal: 'io.some', percent: percent(io, 'some') },
    { signal: 'io.full', percent: percent(io, 'full') },
    { signal: 'cpu.some', percent: percent(cpu, 'some') },
  ] as const
  return stalls.flatMap(({ signal, percent }) => (percent === undefined ? [] : [{ signal, percent }]))
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

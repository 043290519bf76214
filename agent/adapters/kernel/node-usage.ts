/** NodeUsage on files of the kernel and `statfs`. Starts no process and writes nothing. */
import { join } from 'node:path'
import type { CpuReading, NodeReading, NodeUsage } from '../../usage/usage.ts'
import type { FilesystemUsage } from '../disk/filesystem-usage.ts'
import { groupFoldersAt, readGroup } from './cgroup-files.ts'
import { machineMemoryBytes, machineTasks, meminfoBytes, textOf } from './kernel-files.ts'
import { interfacesOf } from './net-dev.ts'

export type NodeUsageNeeds = {
  readonly root: string
  readonly dataDirectory: string
  /** Undefined until the engine has reported it. */
  readonly imageDirectory: () => string | undefined
  readonly filesystemAt: FilesystemUsage
}

const ticksPerSecond = 100 // USER_HZ: what /proc/stat counts in, on every machine Linux runs on today

export function nodeUsage({ root, dataDirectory, imageDirectory, filesystemAt }: NodeUsageNeeds): NodeUsage {
  return {
    async nodeReading() {
      const images = imageDirectory()
      const [fs, imageFs] = await Promise.all([
        filesystemAt(dataDirectory),
        images === undefined ? undefined : filesystemAt(images),
      ])
      const stat = textOf(join(root, 'proc/stat')) ?? ''
      const folders = groupFoldersAt(root, '/')
      const group = folders === undefined ? {} : readGroup(folders)
      const cpu = group.cpu ?? cpuOfStat(stat)
      const memory = memoryOf(root, group.memory)
      const pids = pidsOf(root)
      const swap = swapOf(root)
      const { user, system } = process.cpuUsage()
      return {
        ...(cpu && { cpu }),
        ...(memory && { memory }),
        network: interfacesOf(textOf(join(root, 'proc/net/dev')) ?? ''),
        defaultInterface: leadsOut(textOf(join(root, 'proc/net/route')) ?? ''),
        ...(fs && { fs }),
        ...(imageFs && { imageFs }),
        ...(pids && { pids }),
        ...(swap && { swap }),
        bootedMs: bootedMsOf(stat),
        agent: { cpuNanoSeconds: (user + system) * 1000, rssBytes: process.memoryUsage.rss() },
      }
    },
  }
}

/** `cpu  user nice system idle iowait irq softirq steal …`: all but the idle times. */
function cpuOfStat(stat: string): CpuReading | undefined {
  const ticks = /^cpu +([\d ]+)$/m.exec(stat)?.[1]?.split(' ').map(Number)
  if (ticks === undefined) return undefined
  const [user = 0, nice = 0, system = 0, , , irq = 0, softirq = 0, steal = 0] = ticks
  return { usageNanoSeconds: ((user + nice + system + irq + softirq + steal) * 1e9) / ticksPerSecond }
}

function memoryOf(root: string, group: ReturnType<typeof readGroup>['memory']): NodeReading['memory'] {
  const meminfo = textOf(join(root, 'proc/meminfo'))
  if (meminfo === undefined) return undefined
  if (group !== undefined) {
    return { ...group, availableBytes: Math.max(0, machineMemoryBytes(root, meminfo) - group.workingSetBytes) }
  }
  // Without the memory controller, only the kernel's own estimate is available.
  const availableBytes = meminfoBytes(meminfo, 'MemAvailable')
  const total = meminfoBytes(meminfo, 'MemTotal')
  const used = total - availableBytes
  return {
    availableBytes,
    usageBytes: total - meminfoBytes(meminfo, 'MemFree'),
    workingSetBytes: used,
    rssBytes: /^AnonPages:/m.test(meminfo) ? meminfoBytes(meminfo, 'AnonPages') : used,
    cacheBytes: meminfoBytes(meminfo, 'Cached'),
    pageFaults: 0,
    majorPageFaults: 0,
  }
}

function pidsOf(root: string): NodeReading['pids'] {
  try {
    const { running, capacity } = machineTasks(root)
    return { current: running, limit: capacity }
  } catch {
    return undefined
  }
}

function swapOf(root: string): NodeReading['swap'] {
  const meminfo = textOf(join(root, 'proc/meminfo'))
  if (meminfo === undefined || !/^SwapTotal:/m.test(meminfo)) return undefined
  const availableBytes = meminfoBytes(meminfo, 'SwapFree')
  return { availableBytes, usedBytes: meminfoBytes(meminfo, 'SwapTotal') - availableBytes }
}

/** The interface of the default route: destination and mask are zero. */
function leadsOut(route: string): string | undefined {
  return route
    .split('\n')
    .map((line) => line.split('\t'))
    .find(([, destination, , , , , , mask]) => destination === '00000000' && mask === '00000000')?.[0]
}

function bootedMsOf(stat: string): number | undefined {
  const booted = /^btime (\d+)$/m.exec(stat)?.[1]
  return booted === undefined ? undefined : Number(booted) * 1000
}

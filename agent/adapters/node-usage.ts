/** NodeUsage on files of the kernel and `statfs`: no process is started, nothing is written. */
import { readFileSync } from 'node:fs'
import { statfs } from 'node:fs/promises'
import { join } from 'node:path'
import type { CpuReading, FilesystemReading, NodeReading, NodeUsage } from '../usage/usage.ts'
import { groupFoldersAt, readGroup } from './cgroup-files.ts'
import { meminfoBytes } from './kernel-files.ts'
import { interfacesOf } from './net-dev.ts'
import { within } from './within.ts'

export type NodeUsageNeeds = {
  readonly root: string
  readonly dataDirectory: string
  /** Undefined as long as the engine has not told. */
  readonly imageDirectory: () => string | undefined
}

const statfsDeadlineMs = 2_000
const ticksPerSecond = 100 // USER_HZ: what /proc/stat counts in, on every machine Linux runs on today

export function nodeUsage({ root, dataDirectory, imageDirectory }: NodeUsageNeeds): NodeUsage {
  return {
    async nodeReading() {
      const images = imageDirectory()
      const [fs, imageFs] = await Promise.all([
        filesystemAt(dataDirectory),
        images === undefined ? undefined : filesystemAt(images),
      ])
      const stat = textAt(root, 'proc/stat') ?? ''
      const folders = groupFoldersAt(root, '/')
      const group = folders === undefined ? {} : readGroup(folders)
      const cpu = group.cpu ?? cpuOfStat(stat)
      const memory = memoryOf(root, group.memory)
      const pids = pidsOf(root)
      const swap = swapOf(root)
      const booted = /^btime (\d+)$/m.exec(stat)?.[1]
      const { user, system } = process.cpuUsage()
      return {
        ...(cpu && { cpu }),
        ...(memory && { memory }),
        network: interfacesOf(textAt(root, 'proc/net/dev') ?? ''),
        defaultInterface: leadsOut(textAt(root, 'proc/net/route') ?? ''),
        ...(fs && { fs }),
        ...(imageFs && { imageFs }),
        ...(pids && { pids }),
        ...(swap && { swap }),
        bootedMs: booted === undefined ? undefined : Number(booted) * 1000,
        agent: { cpuNanoSeconds: (user + system) * 1000, rssBytes: process.memoryUsage.rss() },
      }
    },
  }
}

export async function filesystemAt(path: string): Promise<FilesystemReading | undefined> {
  try {
    const stats = await within(statfsDeadlineMs, `No answer from the filesystem of ${path}`, statfs(path))
    return {
      capacityBytes: stats.blocks * stats.bsize,
      availableBytes: stats.bavail * stats.bsize,
      usedBytes: (stats.blocks - stats.bfree) * stats.bsize,
      inodes: stats.files,
      inodesFree: stats.ffree,
    }
  } catch {
    return undefined
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
  const meminfo = textAt(root, 'proc/meminfo')
  if (meminfo === undefined) return undefined
  const total = meminfoBytes(meminfo, 'MemTotal')
  if (group !== undefined) return { ...group, availableBytes: Math.max(0, total - group.workingSetBytes) }
  // Where the memory controller is switched off the kernel's own estimate is all there is.
  const availableBytes = meminfoBytes(meminfo, 'MemAvailable')
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
  const current = Number(textAt(root, 'proc/loadavg')?.split(' ')[3]?.split('/')[1])
  const limits = ['pid_max', 'threads-max'].map((name) => Number(textAt(root, `proc/sys/kernel/${name}`)))
  const limit = Math.min(...limits)
  return Number.isFinite(current + limit) ? { current, limit } : undefined
}

function swapOf(root: string): NodeReading['swap'] {
  const meminfo = textAt(root, 'proc/meminfo')
  if (meminfo === undefined || !/^SwapTotal:/m.test(meminfo)) return undefined
  const availableBytes = meminfoBytes(meminfo, 'SwapFree')
  return { availableBytes, usedBytes: meminfoBytes(meminfo, 'SwapTotal') - availableBytes }
}

/** The interface of the default route: destination and mask are nothing. */
function leadsOut(route: string): string | undefined {
  return route
    .split('\n')
    .map((line) => line.split('\t'))
    .find(([, destination, , , , , , mask]) => destination === '00000000' && mask === '00000000')?.[0]
}

function textAt(root: string, path: string): string | undefined {
  try {
    return readFileSync(join(root, path), 'utf8')
  } catch {
    return undefined
  }
}

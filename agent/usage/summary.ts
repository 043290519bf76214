/** Readings → what Kubernetes calls a summary. */
import type {
  ContainerStats,
  CPUStats,
  FsStats,
  MemoryStats,
  NetworkStats,
  NodeStats,
  PodStats,
  Summary,
} from '../../api/node/stats.ts'
import { rfc3339 } from '../../daemon/clock.ts'
import { agentKey, nodeKey, type Rates, type Sample, sandboxKey } from './sample.ts'
import type {
  ContainerReading,
  CpuReading,
  FilesystemReading,
  Filled,
  InterfaceReading,
  MemoryReading,
  NodeReading,
  PodDiskReading,
  PodReading,
} from './usage.ts'

/** `brief`: CPU and memory only, as with `only_cpu_and_memory=true`. */
export function summaryOf(nodeName: string, sample: Sample, rates: Rates | undefined, brief: boolean): Summary {
  const time = rfc3339(sample.wallMs)
  const words: Words = { time, nanoCores: rates?.nanoCores ?? new Map(), fs: sample.node.fs }
  return {
    node: nodeStats(nodeName, sample.node, words, brief),
    pods: sample.pods.map((pod) =>
      podStats(pod, brief ? undefined : sample.disks?.find(({ uid }) => uid === pod.uid), words, brief),
    ),
  }
}

type Words = {
  readonly time: string
  readonly nanoCores: ReadonlyMap<string, number>
  readonly fs: FilesystemReading | undefined
}

function nodeStats(nodeName: string, node: NodeReading, words: Words, brief: boolean): NodeStats {
  const { time, nanoCores } = words
  const { cpu, memory, network, defaultInterface, fs, imageFs, pids, swap, bootedMs, agent } = node
  const core: NodeStats = {
    nodeName,
    ...(bootedMs !== undefined && { startTime: rfc3339(bootedMs) }),
    ...(cpu && { cpu: cpuStats(cpu, nanoCores.get(nodeKey), time) }),
    ...(memory && { memory: { ...memoryStats(memory, time), availableBytes: memory.availableBytes } }),
    ...(swap && { swap: { time, swapAvailableBytes: swap.availableBytes, swapUsageBytes: swap.usedBytes } }),
  }
  if (brief) return core
  const own = { usageNanoSeconds: agent.cpuNanoSeconds }
  return {
    ...core,
    systemContainers: [
      {
        name: 'kubelet',
        cpu: cpuStats(own, nanoCores.get(agentKey), time),
        memory: { time, rssBytes: agent.rssBytes },
      },
    ],
    ...(network.length > 0 && { network: networkStats(network, defaultInterface, time) }),
    ...(fs && { fs: fsStats(fs, time) }),
    ...(imageFs && { runtime: { imageFs: fsStats(imageFs, time) } }),
    ...(pids && { rlimit: { time, maxpid: pids.limit, curproc: pids.current } }),
  }
}

function podStats(pod: PodReading, disk: PodDiskReading | undefined, words: Words, brief: boolean): PodStats {
  const { uid, namespace, name, startedAt, network } = pod
  const { time, fs } = words
  const whole = wholePod(pod, words.nanoCores)
  const core: PodStats = {
    podRef: { name, namespace, uid },
    ...(startedAt !== undefined && { startTime: startedAt }),
    containers: pod.containers.map((container) =>
      containerStats(
        container,
        disk?.containers.find((one) => one.name === container.name),
        words,
      ),
    ),
    ...(whole.cpu && { cpu: cpuStats(whole.cpu, whole.nanoCores, time) }),
    ...(whole.memory && { memory: memoryStats(whole.memory, time) }),
  }
  if (brief) return core
  return {
    ...core,
    ...(network && network.length > 0 && { network: networkStats(network, undefined, time) }),
    ...(whole.pids > 0 && { process_stats: { process_count: whole.pids } }),
    ...(disk && {
      volume: disk.volumes.map((volume) => ({
        name: volume.name,
        ...filled(volume, time, volume.inMemory ? undefined : fs),
      })),
      'ephemeral-storage': filled(onDisk(disk), time, fs),
    }),
  }
}

function containerStats(
  container: ContainerReading,
  disk: PodDiskReading['containers'][number] | undefined,
  { time, nanoCores, fs }: Words,
): ContainerStats {
  const { id, name, startedAt, cpu, memory } = container
  const room = memory?.limitBytes === undefined ? undefined : Math.max(0, memory.limitBytes - memory.workingSetBytes)
  return {
    name,
    ...(startedAt !== undefined && { startTime: startedAt }),
    ...(cpu && { cpu: cpuStats(cpu, nanoCores.get(id), time) }),
    ...(memory && {
      memory: { ...memoryStats(memory, time), ...(room !== undefined && { availableBytes: room }) },
    }),
    ...(memory?.swapBytes !== undefined && { swap: { time, swapUsageBytes: memory.swapBytes } }),
    ...(disk?.rootfs && { rootfs: filled(disk.rootfs, time, fs) }),
    ...(disk?.logs && { logs: filled(disk.logs, time, fs) }),
  }
}

/** Its containers and its sandbox together. */
function wholePod(pod: PodReading, nanoCores: ReadonlyMap<string, number>) {
  const groups = [
    ...(pod.sandbox === undefined ? [] : [{ key: sandboxKey(pod), ...pod.sandbox }]),
    ...pod.containers.map((container) => ({ key: container.id, ...container })),
  ]
  const cpus = groups.flatMap(({ cpu }) => cpu ?? [])
  const memories = groups.flatMap(({ memory }) => memory ?? [])
  const rates = groups.flatMap(({ key }) => nanoCores.get(key) ?? [])
  const cpu: CpuReading | undefined =
    cpus.length === 0 ? undefined : { usageNanoSeconds: sum(cpus.map(({ usageNanoSeconds }) => usageNanoSeconds)) }
  return {
    cpu,
    nanoCores: rates.length === 0 ? undefined : sum(rates),
    memory: memories.length === 0 ? undefined : summedMemory(memories),
    pids: sum(groups.flatMap(({ pids }) => pids?.current ?? [])),
  }
}

function summedMemory(memories: readonly MemoryReading[]): MemoryReading {
  const all = (value: (memory: MemoryReading) => number) => sum(memories.map(value))
  return {
    usageBytes: all(({ usageBytes }) => usageBytes),
    workingSetBytes: all(({ workingSetBytes }) => workingSetBytes),
    rssBytes: all(({ rssBytes }) => rssBytes),
    cacheBytes: all(({ cacheBytes }) => cacheBytes),
    pageFaults: all(({ pageFaults }) => pageFaults),
    majorPageFaults: all(({ majorPageFaults }) => majorPageFaults),
  }
}

function onDisk({ containers, volumes }: PodDiskReading): Filled {
  const parts = [
    ...containers.flatMap(({ rootfs, logs }) => [rootfs, logs]),
    ...volumes.filter(({ inMemory }) => !inMemory),
  ].flatMap((part) => part ?? [])
  return {
    usedBytes: sum(parts.map(({ usedBytes }) => usedBytes)),
    inodesUsed: sum(parts.map(({ inodesUsed }) => inodesUsed)),
  }
}

function cpuStats({ usageNanoSeconds }: CpuReading, nanoCores: number | undefined, time: string): CPUStats {
  return {
    time,
    ...(nanoCores !== undefined && { usageNanoCores: nanoCores }),
    usageCoreNanoSeconds: Math.round(usageNanoSeconds),
  }
}

function memoryStats(memory: MemoryReading, time: string): MemoryStats {
  const { usageBytes, workingSetBytes, rssBytes, pageFaults, majorPageFaults } = memory
  return { time, usageBytes, workingSetBytes, rssBytes, pageFaults, majorPageFaults }
}

function networkStats(all: readonly InterfaceReading[], leadsOut: string | undefined, time: string): NetworkStats {
  const interfaces = all.map(({ name, rxBytes, rxErrors, txBytes, txErrors }) => ({
    name,
    rxBytes,
    rxErrors,
    txBytes,
    txErrors,
  }))
  const main = interfaces.find(({ name }) => name === leadsOut) ?? interfaces[0]
  return { time, ...(main ?? { name: '' }), interfaces }
}

function fsStats(fs: FilesystemReading, time: string): FsStats {
  return {
    time,
    availableBytes: fs.availableBytes,
    capacityBytes: fs.capacityBytes,
    usedBytes: fs.usedBytes,
    inodesFree: fs.inodesFree,
    inodes: fs.inodes,
    inodesUsed: fs.inodes - fs.inodesFree,
  }
}

function filled({ usedBytes, inodesUsed }: Filled, time: string, fs: FilesystemReading | undefined): FsStats {
  return {
    time,
    usedBytes,
    inodesUsed,
    ...(fs && {
      availableBytes: fs.availableBytes,
      capacityBytes: fs.capacityBytes,
      inodesFree: fs.inodesFree,
      inodes: fs.inodes,
    }),
  }
}

function sum(numbers: readonly number[]): number {
  return numbers.reduce((total, number) => total + number, 0)
}

/** Resource usage of a node and its pods: stats/v1alpha1's Summary, field for field. Times are RFC 3339. */
import { bool, type Described, integer, list, object, optional, text } from '../schema.ts'

/** `usageNanoCores` is over the time since the reading before. */
const CPUStatsSchema = object({
  time: text,
  usageNanoCores: optional(integer),
  usageCoreNanoSeconds: optional(integer),
})
export type CPUStats = Described<typeof CPUStatsSchema>

const MemoryStatsSchema = object({
  time: text,
  availableBytes: optional(integer),
  usageBytes: optional(integer),
  workingSetBytes: optional(integer),
  rssBytes: optional(integer),
  pageFaults: optional(integer),
  majorPageFaults: optional(integer),
})
export type MemoryStats = Described<typeof MemoryStatsSchema>

const interfaceFields = {
  name: text,
  rxBytes: optional(integer),
  rxErrors: optional(integer),
  txBytes: optional(integer),
  txErrors: optional(integer),
}
/** The fields beside `interfaces` are those of the one that leads out. */
const NetworkStatsSchema = object({
  time: text,
  ...interfaceFields,
  interfaces: optional(list(object(interfaceFields))),
})
export type NetworkStats = Described<typeof NetworkStatsSchema>

const fsFields = {
  time: text,
  availableBytes: optional(integer),
  capacityBytes: optional(integer),
  usedBytes: optional(integer),
  inodesFree: optional(integer),
  inodes: optional(integer),
  inodesUsed: optional(integer),
}
const FsStatsSchema = object(fsFields)
export type FsStats = Described<typeof FsStatsSchema>

const SwapStatsSchema = object({
  time: text,
  swapAvailableBytes: optional(integer),
  swapUsageBytes: optional(integer),
})

const ContainerStatsSchema = object({
  name: text,
  startTime: optional(text),
  cpu: optional(CPUStatsSchema),
  memory: optional(MemoryStatsSchema),
  rootfs: optional(FsStatsSchema),
  logs: optional(FsStatsSchema),
  swap: optional(SwapStatsSchema),
})
export type ContainerStats = Described<typeof ContainerStatsSchema>

const PodStatsSchema = object({
  podRef: object({ name: text, namespace: text, uid: text }),
  startTime: optional(text),
  containers: list(ContainerStatsSchema),
  cpu: optional(CPUStatsSchema),
  memory: optional(MemoryStatsSchema),
  network: optional(NetworkStatsSchema),
  /** `pvcRef`: the claim whose volume it is. */
  volume: optional(
    list(
      object({
        ...fsFields,
        name: text,
        pvcRef: optional(object({ name: text, namespace: text })),
        volumeHealthStats: optional(object({ abnormal: bool })),
      }),
    ),
  ),
  'ephemeral-storage': optional(FsStatsSchema),
  process_stats: optional(object({ process_count: optional(integer) })),
  swap: optional(SwapStatsSchema),
})
export type PodStats = Described<typeof PodStatsSchema>

const NodeStatsSchema = object({
  nodeName: text,
  systemContainers: optional(list(ContainerStatsSchema)),
  startTime: optional(text),
  cpu: optional(CPUStatsSchema),
  memory: optional(MemoryStatsSchema),
  network: optional(NetworkStatsSchema),
  fs: optional(FsStatsSchema),
  runtime: optional(object({ imageFs: optional(FsStatsSchema) })),
  rlimit: optional(object({ time: text, maxpid: optional(integer), curproc: optional(integer) })),
  swap: optional(SwapStatsSchema),
})
export type NodeStats = Described<typeof NodeStatsSchema>

export const SummarySchema = object({ node: NodeStatsSchema, pods: list(PodStatsSchema) })
export type Summary = Described<typeof SummarySchema>

/** Resource usage of this machine, by pod and container. A value that cannot be read is undefined, never zero. */

/** Reading of a control group; counters include processes that have ended. */
export type GroupReading = {
  readonly cpu?: CpuReading
  readonly memory?: MemoryReading
  readonly pids?: { readonly current: number; readonly limit?: number }
}

export type CpuReading = {
  readonly usageNanoSeconds: number
  /** Only with a limit: periods begun, those in which it was held back, and for how long. */
  readonly periods?: number
  readonly throttledPeriods?: number
  readonly throttledNanoSeconds?: number
}

export type MemoryReading = {
  readonly usageBytes: number
  /** Usage − inactive file pages: what cannot simply be dropped. */
  readonly workingSetBytes: number
  readonly rssBytes: number
  readonly cacheBytes: number
  readonly swapBytes?: number
  readonly pageFaults: number
  readonly majorPageFaults: number
  readonly limitBytes?: number
  readonly oomKills?: number
}

/** Block I/O of a control group on one device, since it exists. */
export type IoReading = {
  /** `/dev/mmcblk0` */
  readonly device: string
  readonly readBytes: number
  readonly writtenBytes: number
  readonly reads: number
  readonly writes: number
}

export type CpuLimitReading = {
  /** Value of control groups version 1: 1024 for one requested processor. */
  readonly shares: number
  readonly periodMicros?: number
  /** Undefined: no limit. */
  readonly quotaMicros?: number
}

export type InterfaceReading = {
  readonly name: string
  readonly rxBytes: number
  readonly rxPackets: number
  readonly rxErrors: number
  readonly rxDropped: number
  readonly txBytes: number
  readonly txPackets: number
  readonly txErrors: number
  readonly txDropped: number
}

export type ContainerReading = GroupReading & {
  readonly id: string
  readonly name: string
  readonly image: string
  /** RFC 3339. */
  readonly startedAt: string | undefined
  /** Only where they were requested. */
  readonly io?: readonly IoReading[]
  readonly cpuLimit?: CpuLimitReading
}

/** A pod of which something runs. */
export type PodReading = {
  readonly uid: string
  readonly namespace: string
  readonly name: string
  /** RFC 3339: since when it has its sandbox. */
  readonly startedAt: string | undefined
  readonly sandbox: GroupReading | undefined
  /** Undefined on the machine's own network. */
  readonly network: readonly InterfaceReading[] | undefined
  readonly containers: readonly ContainerReading[]
}

export type Filled = {
  readonly usedBytes: number
  readonly inodesUsed: number
  /** Why there may be more than was counted: these are the least they can be. */
  readonly incomplete?: string
}

/** What a pod has on disk. */
export type PodDiskReading = {
  readonly uid: string
  readonly containers: readonly {
    readonly name: string
    /** Its writable layer. */
    readonly rootfs?: Filled
    readonly logs?: Filled
  }[]
  /** Its own: scratch folders, and copies of ConfigMaps and Secrets. `inMemory` ones take no disk. */
  readonly volumes: readonly (Filled & { readonly name: string; readonly inMemory: boolean })[]
}

/** What ranking pods takes. */
export type PodUse = {
  readonly uid: string
  readonly containers: readonly {
    readonly name: string
    readonly memoryWorkingSetBytes?: number
    readonly pids?: number
  }[]
}

/** A pod of which nothing runs has no readings. The first call rejects if the engine does not list its containers. */
export interface PodUsage {
  /**
   * Memory and processes: three small files a container (about 0.1 ms), nothing else. The engine lists its containers
   * only after it reported a change, for at most 2 s.
   */
  podUsage(): Promise<readonly PodUse[]>
  /** Everything that the kernel counts for the pods; `whole`: also I/O and CPU limits, three more files a container. */
  podReadings(whole?: boolean): Promise<readonly PodReading[]>
  /**
   * Walks folders: about 25 µs of CPU for each file. So an answer is given again until it is `maxAgeMs` old, and not more
   * than one walk is under way.
   */
  podDiskUsage(maxAgeMs?: number): Promise<readonly PodDiskReading[]>
}

export type FilesystemReading = {
  readonly capacityBytes: number
  readonly availableBytes: number
  readonly usedBytes: number
  readonly inodes: number
  readonly inodesFree: number
}

export type NodeReading = {
  readonly cpu?: CpuReading
  readonly memory?: MemoryReading & { readonly availableBytes: number }
  readonly network: readonly InterfaceReading[]
  /** The interface that leads out. */
  readonly defaultInterface: string | undefined
  /** Where our own data is. */
  readonly fs?: FilesystemReading
  /** Where the engine keeps images. */
  readonly imageFs?: FilesystemReading
  readonly pids?: { readonly current: number; readonly limit: number }
  readonly swap?: { readonly availableBytes: number; readonly usedBytes: number }
  /** Milliseconds since 1970. */
  readonly bootedMs: number | undefined
  /** This program itself. */
  readonly agent: { readonly cpuNanoSeconds: number; readonly rssBytes: number }
}

export interface NodeUsage {
  nodeReading(): Promise<NodeReading>
}

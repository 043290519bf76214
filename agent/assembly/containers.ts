/** The container engine as the other parts see it: with OOM kills from the kernel log, and with the usage of containers and disks. */
import type { Clock } from '../../daemon/clock.ts'
import type { Log } from '../../daemon/log.ts'
import type { VolumeFolders } from '../adapters/disk/volume-store.ts'
import { hostSignals } from '../adapters/kernel/host-signals.ts'
import { podUsage } from '../adapters/kernel/pod-usage.ts'
import type { SignalSource } from '../eviction/observations.ts'
import { oomWatch } from '../eviction/oom-watch.ts'
import type { KernelLog } from '../health/kernel-log.ts'
import type { NodeEvent } from '../node/status/node-event.ts'
import type { ContainerRuntime } from '../runtime/runtime.ts'
import { type ContainerList, containerList } from '../usage/container-list.ts'
import type { PodUsage } from '../usage/usage.ts'

export type ContainerParts = {
  readonly root: string
  readonly volumes: VolumeFolders
  readonly engine: ContainerRuntime
  /** The engine's directory, once it has reported it. */
  readonly imageDirectory: () => string | undefined
  readonly kernel: KernelLog
  readonly event: (event: NodeEvent) => void
  readonly clock: Clock
  readonly log: Log
}

export type Containers = {
  readonly runtime: ContainerRuntime
  readonly containerList: ContainerList
  readonly usage: PodUsage
  readonly signals: SignalSource
}

/** Subscribes to the kernel log: call it before that is read. */
export function assembleContainers(parts: ContainerParts): Containers {
  const { root, volumes, engine, imageDirectory, kernel, event, clock, log } = parts
  const kills = oomWatch({ kernel, event, clock, log })
  const list = containerList({ list: () => engine.listContainers(), clock })
  return {
    runtime: kills.withOomKills(list.observing(engine)),
    containerList: list,
    usage: podUsage({ root, containerList: list, volumes, clock }),
    signals: hostSignals({ root, dataDirectory: volumes.dataDirectory, imageDirectory }),
  }
}

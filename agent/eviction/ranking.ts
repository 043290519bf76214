/** The order in which pods are evicted. */
import type { Pod } from '../../api/pod.ts'
import { quantityToNumber } from '../../api/quantity.ts'
import type { PodDiskReading, PodUse } from '../usage/usage.ts'
import type { Signal } from './observations.ts'

export type RankingFacts = {
  readonly use: ReadonlyMap<string, PodUse>
  readonly disk: ReadonlyMap<string, PodDiskReading>
  readonly imagesApart: boolean
}

/**
 * The first pod is evicted first. For memory and disk: pods that exceed their requests first, then by lower priority, then by
 * larger excess. Processes and inodes have no requests. A pod without usage figures comes before all others (eviction/helpers.go,
 * rankMemoryPressure).
 */
export function rankForEviction<P extends Pod>(signal: Signal, pods: readonly P[], facts: RankingFacts): readonly P[] {
  const ranked = pods.map((pod) => ({ pod, priority: priorityOf(pod), ...excessOf(signal, pod, facts) }))
  const byPriority = (a: Ranked, b: Ranked) => a.priority - b.priority
  const byExcess = (a: Ranked, b: Ranked) => (b.excess ?? 0) - (a.excess ?? 0)
  const unknownFirst = (a: Ranked, b: Ranked) => Number(b.excess === undefined) - Number(a.excess === undefined)
  const aboveFirst = (a: Ranked, b: Ranked) => Number(b.isAbove) - Number(a.isAbove)
  const order =
    signal === 'pid.available' ? [byPriority, unknownFirst, byExcess] : [unknownFirst, aboveFirst, byPriority, byExcess]
  return ranked
    .sort((a, b) => order.reduce((sign, compare) => (sign === 0 ? compare(a, b) : sign), 0))
    .map(({ pod }) => pod)
}

type Ranked = Excess & { readonly priority: number }
/** undefined: the usage could not be read. */
type Excess = { readonly excess: number | undefined; readonly isAbove: boolean }

function excessOf(signal: Signal, pod: Pod, { use, disk, imagesApart }: RankingFacts): Excess {
  const uid = pod.metadata.uid ?? ''
  switch (signal) {
    case 'memory.available':
      return beyond(memoryOf(use.get(uid)), requestOf(pod, 'memory'))
    case 'pid.available':
      return { excess: processesOf(use.get(uid)), isAbove: false }
    case 'nodefs.available':
    case 'imagefs.available':
      return beyond(
        filledBy(disk.get(uid), partsOf(signal, imagesApart), 'usedBytes'),
        requestOf(pod, 'ephemeral-storage'),
      )
    case 'nodefs.inodesFree':
    case 'imagefs.inodesFree':
      return beyond(filledBy(disk.get(uid), partsOf(signal, imagesApart), 'inodesUsed'), 0)
  }
}

function beyond(used: number | undefined, request: number): Excess {
  return used === undefined
    ? { excess: undefined, isAbove: false }
    : { excess: used - request, isAbove: used > request }
}

export type DiskParts = { readonly rootfs: boolean; readonly logsAndVolumes: boolean }

/** The parts of a pod that are on the disk under pressure. */
function partsOf(signal: Signal, imagesApart: boolean): DiskParts {
  if (!imagesApart) return { rootfs: true, logsAndVolumes: true }
  const images = signal.startsWith('imagefs.')
  return { rootfs: images, logsAndVolumes: !images }
}

/** Volumes in memory use no disk space. */
export function filledBy(
  use: PodDiskReading | undefined,
  { rootfs, logsAndVolumes }: DiskParts,
  what: 'usedBytes' | 'inodesUsed',
): number | undefined {
  if (use === undefined) return undefined
  const layers = rootfs ? use.containers.flatMap((container) => container.rootfs ?? []) : []
  const logs = logsAndVolumes ? use.containers.flatMap((container) => container.logs ?? []) : []
  const volumes = logsAndVolumes ? use.volumes.filter(({ inMemory }) => !inMemory) : []
  return sum([...layers, ...logs, ...volumes].map((part) => part[what]))
}

function memoryOf(use: PodUse | undefined): number | undefined {
  return use && sum(use.containers.map(({ memoryWorkingSetBytes = 0 }) => memoryWorkingSetBytes))
}

function processesOf(use: PodUse | undefined): number | undefined {
  return use && sum(use.containers.map(({ pids = 0 }) => pids))
}

/** The sum of all containers, or the largest request of an init container if that is more. */
export function requestOf({ spec }: Pod, resource: 'memory' | 'ephemeral-storage'): number {
  const asked = (containers: Pod['spec']['containers']) =>
    containers.map(({ resources }) => quantityToNumber(resources?.requests?.[resource] ?? 0))
  const inits = spec.initContainers ?? []
  const sidecars = inits.filter(({ restartPolicy }) => restartPolicy === 'Always')
  const others = inits.filter(({ restartPolicy }) => restartPolicy !== 'Always')
  return Math.max(sum(asked([...spec.containers, ...sidecars])), ...asked(others))
}

function priorityOf({ spec }: Pick<Pod, 'spec'>): number {
  return spec.priority ?? 0
}

function sum(amounts: readonly number[]): number {
  return amounts.reduce((a, b) => a + b, 0)
}

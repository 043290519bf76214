/** The message of an eviction in Kubernetes' wording (eviction/helpers.go, evictionMessage): each sentence ends in a space. */
import type { Pod } from '../../api/pod.ts'
import { compareQuantities, formatQuantity, quantityOf } from '../../api/quantity.ts'
import type { PodDiskReading, PodUse } from '../usage/usage.ts'
import type { Observation } from './observations.ts'
import { resourceOf, type Threshold, writtenAmount } from './thresholds.ts'

export type EvictionFacts = {
  readonly pod: Pod
  readonly threshold: Threshold
  readonly observed: readonly Observation[]
  readonly use: PodUse | undefined
  readonly disk: PodDiskReading | undefined
}

export function evictionMessage({ pod, threshold, observed, use, disk }: EvictionFacts): string {
  const resource = resourceOf(threshold.signal)
  return [
    `The node was low on resource: ${resource}. `,
    thresholdSentence(threshold, observed),
    ...usages(resource, use, disk).map(([name, usedBytes]) => containerSentence(pod, name, resource, usedBytes)),
  ].join('')
}

function thresholdSentence({ signal, value }: Threshold, observed: readonly Observation[]): string {
  const observation = observed.find((one) => one.signal === signal)
  if (observation === undefined) return ''
  const { available, capacity } = observation
  const family = signal.endsWith('.inodesFree') || signal === 'pid.available' ? 'decimal' : 'binary'
  const left = formatQuantity(quantityOf(available, family))
  return `Threshold quantity: ${writtenAmount(value, capacity)}, available: ${left}. `
}

function usages(
  resource: ReturnType<typeof resourceOf>,
  use: PodUse | undefined,
  disk: PodDiskReading | undefined,
): readonly (readonly [string, number])[] {
  switch (resource) {
    case 'memory':
      return (use?.containers ?? []).flatMap(({ name, memoryWorkingSetBytes: bytes }) =>
        bytes === undefined ? [] : [[name, bytes]],
      )
    case 'ephemeral-storage':
      return (disk?.containers ?? []).flatMap(({ name, rootfs, logs }) =>
        rootfs === undefined || logs === undefined ? [] : [[name, rootfs.usedBytes + logs.usedBytes]],
      )
    case 'inodes':
    case 'pids':
      return []
  }
}

function containerSentence({ spec }: Pod, name: string, resource: string, usedBytes: number): string {
  const container = [...(spec.initContainers ?? []), ...spec.containers].find((one) => one.name === name)
  if (container === undefined) return ''
  const asked = container.resources?.requests?.[resource] ?? '0'
  const used = quantityOf(usedBytes, 'binary')
  if (compareQuantities(used, asked) <= 0) return ''
  return `Container ${name} was using ${formatQuantity(used)}, request is ${formatQuantity(asked)}, has larger consumption of ${resource}. `
}

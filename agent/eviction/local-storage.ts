/**
 * The limits of local storage that a pod exceeds, independent of how full the disk is (eviction_manager.go,
 * localStorageEviction).
 */
import type { Container, Pod } from '../../api/pod.ts'
import {
  addQuantities,
  compareQuantities,
  formatQuantity,
  type QuantityLike,
  quantityOf,
  zeroQuantity,
} from '../../api/quantity.ts'
import type { PodDiskReading } from '../usage/usage.ts'
import { filledBy } from './ranking.ts'

/** Whether the disk usage of the pod needs to be measured. */
export function hasStorageLimits({ spec }: Pod): boolean {
  const limited = containersOf({ spec }).some(({ resources }) => isSome(resources?.limits?.['ephemeral-storage']))
  return limited || (spec.volumes ?? []).some(({ emptyDir }) => isSome(emptyDir?.sizeLimit))
}

/** A message, in Kubernetes' wording, about the first limit that is strictly exceeded; undefined when none is. */
export function brokenStorageLimit(pod: Pod, use: PodDiskReading, imagesApart: boolean): string | undefined {
  return (
    brokenVolumeLimit(pod, use) ?? brokenPodLimit(pod, use, imagesApart) ?? brokenContainerLimit(pod, use, imagesApart)
  )
}

/** A part that could not be counted, and why; undefined when all parts were. */
export function incompleteCount({ containers, volumes }: PodDiskReading): string | undefined {
  const parts = [
    ...volumes.map(({ name, incomplete }) => ({ part: `volume ${name}`, incomplete })),
    ...containers.map(({ name, rootfs }) => ({ part: `layer of ${name}`, incomplete: rootfs?.incomplete })),
    ...containers.map(({ name, logs }) => ({ part: `logs of ${name}`, incomplete: logs?.incomplete })),
  ]
  const found = parts.find(({ incomplete }) => incomplete !== undefined)
  return found && `${found.part}: ${found.incomplete}`
}

function brokenVolumeLimit({ spec }: Pod, { volumes }: PodDiskReading): string | undefined {
  for (const { name, emptyDir } of spec.volumes ?? []) {
    const limit = emptyDir?.sizeLimit
    const used = volumes.find((volume) => volume.name === name)?.usedBytes
    if (!isSome(limit) || used === undefined || !exceeds(used, limit)) continue
    return `Usage of EmptyDir volume "${name}" exceeds the limit "${formatQuantity(limit)}". `
  }
  return undefined
}

/**
 * The sum of all containers' limits bounds everything that the pod has on disk (eviction_manager.go,
 * podEphemeralStorageLimitEviction).
 */
function brokenPodLimit({ spec }: Pod, use: PodDiskReading, imagesApart: boolean): string | undefined {
  const limit = podLimit(spec)
  if (limit === undefined) return undefined
  const used = filledBy(use, { rootfs: !imagesApart, logsAndVolumes: true }, 'usedBytes') ?? 0
  if (compareQuantities(quantityOf(used), limit) <= 0) return undefined
  return `Pod ephemeral local storage usage exceeds the total limit of containers ${formatQuantity(limit)}. `
}

/**
 * Sidecars count as regular containers; an init container, with the sidecars before it, only if that is more (PodLimits in
 * k8s.io/component-helpers/resource).
 */
function podLimit(spec: Pod['spec']): QuantityLike | undefined {
  const limitOf = ({ resources }: Container) => resources?.limits?.['ephemeral-storage']
  const inits = spec.initContainers ?? []
  if (!containersOf({ spec }).some((container) => isSome(limitOf(container)))) return undefined
  let sidecars: QuantityLike = zeroQuantity
  let most: QuantityLike = zeroQuantity
  for (const container of inits) {
    const together = addQuantities(sidecars, limitOf(container) ?? zeroQuantity)
    if (container.restartPolicy === 'Always') sidecars = together
    if (compareQuantities(together, most) > 0) most = together
  }
  const regular = spec.containers.map(limitOf).filter(isSome).reduce<QuantityLike>(addQuantities, sidecars)
  return compareQuantities(most, regular) > 0 ? most : regular
}

/** Limits of regular containers only (containerEphemeralStorageLimitEviction): those of others are in the sum. */
function brokenContainerLimit({ spec }: Pod, { containers }: PodDiskReading, imagesApart: boolean): string | undefined {
  for (const { name, rootfs, logs } of containers) {
    const limit = spec.containers.find((one) => one.name === name)?.resources?.limits?.['ephemeral-storage']
    const used = (logs?.usedBytes ?? 0) + (imagesApart ? 0 : (rootfs?.usedBytes ?? 0))
    if (!isSome(limit) || !exceeds(used, limit)) continue
    return `Container ${name} exceeded its local ephemeral storage limit "${formatQuantity(limit)}". `
  }
  return undefined
}

function containersOf({ spec }: Pick<Pod, 'spec'>): Pod['spec']['containers'] {
  return [...(spec.initContainers ?? []), ...spec.containers]
}

function isSome(limit: string | number | undefined): limit is string | number {
  return limit !== undefined && compareQuantities(limit, '0') > 0
}

function exceeds(usedBytes: number, limit: string | number): boolean {
  return compareQuantities(quantityOf(usedBytes), limit) > 0
}

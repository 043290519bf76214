/** Selects the images to remove when the disk is full, and their order (pkg/kubelet/images/image_gc_manager.go). */

import type { ImageReference } from '../../runtime/runtime.ts'
import { sandboxImage } from '../images/sandbox-image.ts'

export type ImagePolicy = {
  /** Percentage of the image filesystem from which images are removed … 100: never. */
  readonly highPercent: number
  /** … until the usage is at this percentage. */
  readonly lowPercent: number
  /** Minimum age since it was first observed. */
  readonly minAgeMs: number
  /** An image unused for longer is removed whatever space is free; 0: no such limit. */
  readonly maxAgeMs: number
}

/** Times are on the monotonic clock. */
export type ImageRecord = {
  readonly image: ImageReference
  readonly firstDetectedMs: number
  /** -Infinity: not used since the start. */
  readonly lastUsedMs: number
}

/** By the engine's image id. */
export type ImageRecords = ReadonlyMap<string, ImageRecord>

export type Disk = { readonly availableBytes: number; readonly capacityBytes: number }

/** `atMs`: the time of the first observation; -Infinity for images present at the start. */
export function remember(
  records: ImageRecords,
  images: readonly ImageReference[],
  inUse: ReadonlySet<string>,
  { nowMs, atMs }: { readonly nowMs: number; readonly atMs: number },
): ImageRecords {
  return new Map(
    images.map((image) => {
      const before = records.get(image.id)
      const lastUsedMs = inUse.has(image.id) ? nowMs : (before?.lastUsedMs ?? Number.NEGATIVE_INFINITY)
      return [image.id, { image, firstDetectedMs: before?.firstDetectedMs ?? atMs, lastUsedMs }]
    }),
  )
}

/**
 * No registry is known to have it, so no pod gets it again: it was imported, loaded or built on the machine. An image without a name is not
 * used by any pod.
 */
export function isOnlyHere({ digests, tags }: ImageReference): boolean {
  return digests.length === 0 && tags.some((tag) => !tag.startsWith(ownPrefix))
}

/** The agent makes these images itself, such as that of the layers of an unfinished pull. */
const ownPrefix = 'bramble.dev/'

/** Unused images above the minimum age: those of registries first, then the longest unused; among equals the first observed. */
export function removableImages(
  records: ImageRecords,
  inUse: ReadonlySet<string>,
  minAgeMs: number,
  nowMs: number,
): readonly ImageRecord[] {
  return [...records.values()]
    .filter(({ image, firstDetectedMs }) => {
      return !inUse.has(image.id) && !image.tags.includes(sandboxImage) && nowMs - firstDetectedMs >= minAgeMs
    })
    .sort(
      (a, b) =>
        Number(isOnlyHere(a.image)) - Number(isOnlyHere(b.image)) ||
        compare(a.lastUsedMs, b.lastUsedMs) ||
        compare(a.firstDetectedMs, b.firstDetectedMs),
    )
}

/** Images unused for longer than `maxAgeMs`: only after images were observed for that long. */
export function outlivedImages(
  removable: readonly ImageRecord[],
  maxAgeMs: number,
  { nowMs, sinceMs }: { readonly nowMs: number; readonly sinceMs: number },
): readonly ImageRecord[] {
  if (maxAgeMs === 0 || nowMs - sinceMs <= maxAgeMs) return []
  return removable.filter(({ lastUsedMs }) => nowMs - lastUsedMs > maxAgeMs)
}

/**
 * Whole percentages (pkg/kubelet/images/image_gc_manager.go, GarbageCollect). Reserved blocks of the filesystem count as used.
 */
export function usedPercent({ availableBytes, capacityBytes }: Disk): number {
  return 100 - Math.floor((Math.min(availableBytes, capacityBytes) * 100) / capacityBytes)
}

/** 0 while the usage is below the high threshold. */
export function bytesToFree(disk: Disk, { highPercent, lowPercent }: ImagePolicy): number {
  if (highPercent === 100 || usedPercent(disk) < highPercent) return 0
  const wanted = Math.floor((disk.capacityBytes * (100 - lowPercent)) / 100)
  return Math.max(0, wanted - disk.availableBytes)
}

/** Compares numbers; -Infinity equals itself. */
function compare(a: number, b: number): number {
  return a === b ? 0 : a - b
}

/** Which images can go when the disk fills up, and in which order? See pkg/kubelet/images/image_gc_manager.go. */

import { sandboxImage } from '../images/sandbox-image.ts'
import type { ImageReference } from '../runtime/runtime.ts'

export type ImagePolicy = {
  /** Of the file system with the images: from here on images are removed … 100: never. */
  readonly highPercent: number
  /** … until it is down to this. */
  readonly lowPercent: number
  /** Since it was first seen. */
  readonly minAgeMs: number
  /** Unused for longer it is removed, however much room there is; 0: never for its age. */
  readonly maxAgeMs: number
}

/** Times are on the monotonic clock. */
export type ImageRecord = {
  readonly image: ImageReference
  readonly firstDetectedMs: number
  /** -Infinity: not since we look. */
  readonly lastUsedMs: number
}

/** By the engine's id. */
export type ImageRecords = ReadonlyMap<string, ImageRecord>

export type Disk = { readonly availableBytes: number; readonly capacityBytes: number }

/** `atMs`: when they count as first seen; of those that were here before us, -Infinity. */
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

/** Unused images that are old enough, the longest unused first; among equals the first detected. */
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
    .sort((a, b) => compare(a.lastUsedMs, b.lastUsedMs) || compare(a.firstDetectedMs, b.firstDetectedMs))
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
 * In whole percents (pkg/kubelet/images/image_gc_manager.go, GarbageCollect): a reserve of the file system counts as
 * used.
 */
export function usedPercent({ availableBytes, capacityBytes }: Disk): number {
  return 100 - Math.floor((Math.min(availableBytes, capacityBytes) * 100) / capacityBytes)
}

/** 0 as long as the disk is less than full to the high mark. */
export function bytesToFree(disk: Disk, { highPercent, lowPercent }: ImagePolicy): number {
  if (highPercent === 100 || usedPercent(disk) < highPercent) return 0
  const wanted = Math.floor((disk.capacityBytes * (100 - lowPercent)) / 100)
  return Math.max(0, wanted - disk.availableBytes)
}

/** -Infinity equals itself. */
function compare(a: number, b: number): number {
  return a === b ? 0 : a - b
}

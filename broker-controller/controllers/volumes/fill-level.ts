/**
 * How full the volumes and the pools of a node are, as people should see it before pods are evicted. A level is recorded once, and again
 * after it was left by five percent. Pure.
 */
import { parseQuantity } from '../../../api/quantity.ts'
import type { PoolUsage } from '../../../api/storage/volume-messages.ts'
import type { VolumeEvent } from './claim-plan.ts'

/** Percent. Agents evict pods at 90 % of the disk of the machine, and empty the trash at 95 % of a pool. */
const levels = { volume: [80, 95, 100], pool: [80, 85, 90, 95] } as const
const leftBy = 5

/** The highest level that is reached; 0: none. `before`: the one that was recorded last. */
export function fillLevel(kind: keyof typeof levels, percent: number, before: number): number {
  const isReached = (level: number) => percent >= (level <= before ? level - leftBy : level)
  return levels[kind].filter(isReached).at(-1) ?? 0
}

export function volumePercent(usedBytes: number, capacity: string): number {
  const bytes = Number(parseQuantity(capacity).nano) / 1e9
  return bytes > 0 ? Math.floor((usedBytes / bytes) * 100) : 0
}

export function poolPercent({ capacityBytes, availableBytes }: PoolUsage): number {
  return capacityBytes > 0 ? Math.floor((1 - availableBytes / capacityBytes) * 100) : 0
}

/** `poolPercent`: undefined if it is not known. */
export function volumeFillEvent(percent: number, capacity: string, ofPool: number | undefined): VolumeEvent {
  const disk = ofPool === undefined ? '' : `, which is ${ofPool} % full`
  const message = `the volume uses ${percent} % of the ${capacity} of its claim. The size is not enforced: it can fill the disk of its pool${disk}`
  return { type: 'Warning', reason: 'VolumeFillingUp', message }
}

/** `path`: of the pool on its node, where that is known. `largest`: claims as `namespace/name`, with what they use. */
export function poolFillEvent(
  { id, path }: PoolUsage & { readonly path?: string | undefined },
  percent: number,
  largest: readonly { readonly claim: string; readonly usedBytes: number }[],
): VolumeEvent {
  const named = largest.map(({ claim, usedBytes }) => `${claim} (${sizeText(usedBytes)})`)
  const most = named.length === 0 ? '' : ` The largest volumes are those of ${named.join(', ')}.`
  const at = path === undefined ? '' : ` at ${path}`
  const message = `The pool ${id}${at} is ${percent} % full.${most} Pods are evicted when less than 10 % of the machine's disk is free`
  return { type: 'Warning', reason: 'PoolFillingUp', message }
}

function sizeText(bytes: number): string {
  return bytes < 2 ** 30 ? `${(bytes / 2 ** 20).toFixed(1)} MiB` : `${(bytes / 2 ** 30).toFixed(1)} GiB`
}

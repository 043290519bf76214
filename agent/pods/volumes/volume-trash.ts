/** The volumes of this machine's pool as orders and reports see them. `agent/adapters/disk/volumes/pool-trash.ts` implements it on files. */
import type { Pool } from '../../../api/storage/pools.ts'
import type { NodeVolumeOrder, PoolUsage, TrashedVolume, VolumeUsage } from '../../../api/storage/volume-messages.ts'

export interface VolumeTrash {
  /**
   * Moves the folder of the volume to the trash of its pool. Does nothing if it is there, or was never made. Throws VolumeError if it cannot be,
   * or must not be: a pod has it mounted, or it belongs to another claim.
   */
  discard(order: NodeVolumeOrder): Promise<void>
  /** No volume was ever made here. */
  isEmpty(): Promise<boolean>
  /** What is in the trash gets older by this, and is removed where it is old or the pool is full. */
  age(elapsedMs: number, signal: AbortSignal): Promise<void>
  /** The pool as it was opened last, or why it could not be; undefined: it was not opened yet. */
  poolState(): PoolState | undefined
  /** undefined: the pool is missing, or does not answer. */
  poolUsage(): Promise<PoolUsage | undefined>
  /** Of the volume that was counted least recently, and of those counted before. */
  volumeUsage(): Promise<readonly CountedVolume[]>
  /** What is in the trash, the latest first. */
  trashed(): Promise<readonly TrashedVolume[]>
}

export type PoolState = Pool | { readonly missing: string }

/** `claim`: `namespace/name`. */
export type CountedVolume = VolumeUsage & { readonly claim: string }

/** Saves which stores were obeyed. */
export interface KnownStores {
  load(): Promise<readonly string[]>
  save(known: readonly string[]): Promise<void>
}

/** Of a volume that was made in the pool. `claim`: `namespace/name`. Earlier versions wrote it and `uid` only. */
export type VolumeRecord = {
  readonly uid: string
  readonly claim: string
  readonly claimUID?: string
  readonly folder?: string
}

/** Why the folder that the order names is not that of its volume and claim; undefined: it is. */
export function otherVolume(record: VolumeRecord, { folder, claim, claimUID }: NodeVolumeOrder): string | undefined {
  if (record.folder !== undefined && record.folder !== folder) return `the folder of the volume is ${record.folder}`
  const haveUIDs = claimUID !== undefined && record.claimUID !== undefined
  const isOther = haveUIDs ? claimUID !== record.claimUID : claim !== undefined && claim !== record.claim
  return isOther ? `a pod of the claim ${record.claim} has used it since` : undefined
}

type Kept = { readonly id: string; readonly keptMs: number; readonly keepMs: number }
type Room = { readonly capacityBytes: number; readonly availableBytes: number }

const gibibyte = 2 ** 30

/**
 * What is removed from the trash next; undefined: nothing. The rest is judged again after it. `room`: of the pool. Times are those that this
 * machine was running: a date may be wrong.
 */
export function nextRemoval(entries: readonly Kept[], room: Room | undefined): string | undefined {
  const [oldest, ...others] = [...entries].sort((a, b) => b.keptMs - a.keptMs)
  if (oldest === undefined) return undefined
  const due = [oldest, ...others].find(({ keptMs, keepMs }) => keptMs >= keepMs)
  return (due ?? (isFull(room) ? oldest : undefined))?.id
}

/** Less than 5 % is free, or less than 1 GiB; of a small disk a fifth. */
function isFull(room: Room | undefined): boolean {
  if (room === undefined) return false
  const reserve = Math.min(Math.max(room.capacityBytes / 20, gibibyte), room.capacityBytes / 5)
  return room.availableBytes < reserve
}

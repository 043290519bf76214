/** The volumes of this machine's pools as orders and reports see them. `agent/adapters/disk/volumes/pool-trash.ts` implements it on files. */
import type { Pool } from '../../../api/storage/pools.ts'
import type { NodeVolumeOrder, PoolUsage, TrashedVolume, VolumeUsage } from '../../../api/storage/volume-messages.ts'
import { keptFreeBytes, type PoolReserve } from './pool-settings.ts'

export interface VolumeTrash {
  /**
   * Moves the folder of the volume to the trash of its pool or share, or deletes it there. Does nothing if it is there, or was never made. Throws
   * VolumeError if it cannot be, or must not be: a pod has it mounted, or it belongs to another claim.
   */
  discard(order: NodeVolumeOrder): Promise<void>
  /** The kinds of shares that this machine can mount. */
  shareKinds(): Promise<readonly string[]>
  /** No volume was ever made here. */
  isEmpty(): Promise<boolean>
  /** What is in the trash gets older by this, and is removed where it is old or the pool is full. */
  age(elapsedMs: number, signal: AbortSignal): Promise<void>
  /** Each pool as it was opened last, always in the same order. Empty: they were not opened yet. */
  poolStates(): readonly PoolState[]
  /** Usage of the pools that are present and answer. */
  poolUsage(): Promise<readonly PoolUsage[]>
  /** Counts the volume of each pool that was counted least recently; returns it and those counted before. */
  volumeUsage(): Promise<readonly CountedVolume[]>
  /** What is in the trash, the latest first. */
  trashed(): Promise<readonly TrashedVolume[]>
}

/** `missing`: why it cannot be used. */
export type PoolState = Pool | { readonly name?: string; readonly missing: string }

/** `claim`: `namespace/name`. `pool`: its id. */
export type CountedVolume = VolumeUsage & { readonly claim: string; readonly pool: string }

/** Saves which stores were obeyed. */
export interface KnownStores {
  load(): Promise<readonly string[]>
  save(known: readonly string[]): Promise<void>
}

/** Record of a volume that was made in the pool. `claim`: `namespace/name`. Earlier versions wrote it and `uid` only. */
export type VolumeRecord = {
  readonly uid: string
  readonly claim: string
  readonly claimUID?: string
  readonly folder?: string
}

/** Why the folder that the order names is not that of its volume and claim; undefined: it is. */
export function otherVolume(
  record: VolumeRecord,
  { folder, claim, claimUID }: Pick<NodeVolumeOrder, 'folder' | 'claim' | 'claimUID'>,
): string | undefined {
  if (record.folder !== undefined && record.folder !== folder) return `the folder of the volume is ${record.folder}`
  const haveUIDs = claimUID !== undefined && record.claimUID !== undefined
  const isOther = haveUIDs ? claimUID !== record.claimUID : claim !== undefined && claim !== record.claim
  return isOther ? `a pod of the claim ${record.claim} has used it since` : undefined
}

type Kept = { readonly id: string; readonly keptMs: number; readonly keepMs: number }
/** `reserve`: what the configuration keeps free. */
export type Room = {
  readonly capacityBytes: number
  readonly availableBytes: number
  readonly reserve?: PoolReserve | undefined
}

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

/** Whether nothing new is made in the pool. One that is full stays so until a tenth more than its reserve is free: it does not alternate. */
export function staysFull(wasFull: boolean, room: Room): boolean {
  return isFull(wasFull ? { ...room, availableBytes: room.availableBytes / 1.1 } : room)
}

/** Less than the reserve is free. */
export function isFull(room: Room | undefined): boolean {
  return room !== undefined && room.availableBytes < keptFreeBytes(room.reserve, room.capacityBytes)
}

/** The messages about volumes in pools: orders for a node, and what it reports. See docs/mqtt.md. */
import { bool, type Described, integer, list, object, optional, text } from '../schema.ts'
import { ShareSchema } from './shares.ts'

export const VolumeOrderSchema = object({
  /**
   * `trash`: the folder goes to the trash of its pool. `share-trash`, `share-delete`: a folder of a share goes to the trash there, or is deleted.
   * With `move`, at the source: `send`: it may be copied; `hold`: also, and no pod gets it; `release`: pods get it again. At the target: `receive`:
   * a copy may come; `keep`: it becomes the folder; `remove`: it goes. A node does nothing about an order of another kind.
   */
  kind: text,
  /** Name and uid of the PersistentVolume. */
  volume: text,
  uid: text,
  /** The id of the pool; empty for a share. */
  pool: text,
  /** The name of the folder in the pool, or its path below that of the share. */
  folder: text,
  share: optional(ShareSchema),
  /** The claim that the volume belonged to, as `namespace/name`, and its uid; left out: it is reserved for none. */
  claim: optional(text),
  claimUID: optional(text),
  /** What it is made again with: the size and the class of the volume. */
  capacity: optional(text),
  storageClass: optional(text),
  /** How long it stays in the trash; left out: 7 days. */
  keepSeconds: optional(integer),
  /** For a move to another pool: its ID, which of its copies, and the estimated size. */
  move: optional(object({ id: text, round: integer, bytes: optional(integer) })),
})
export type NodeVolumeOrder = Described<typeof VolumeOrderSchema>

/** All orders for a node. `version` only rises, within one `epoch` of the controller. */
export const VolumesMessageSchema = object({
  epoch: text,
  version: integer,
  /** Which store they are from. A node obeys a store that it has known for ten minutes. */
  store: text,
  orders: list(VolumeOrderSchema),
})
export type VolumesMessage = Described<typeof VolumesMessageSchema>

const RefusedOrderSchema = object({ uid: text, reason: text })
export type RefusedOrder = Described<typeof RefusedOrderSchema>

const PoolUsageSchema = object({
  id: text,
  capacityBytes: integer,
  availableBytes: integer,
  /** How many volumes are in its trash. */
  inTrash: optional(integer),
})
export type PoolUsage = Described<typeof PoolUsageSchema>

const VolumeUsageSchema = object({
  /** UID of the PersistentVolume. */
  uid: text,
  usedBytes: integer,
})
export type VolumeUsage = Described<typeof VolumeUsageSchema>

const TrashedVolumeSchema = object({
  /** UID and name of its PersistentVolume, and the name of its folder. */
  uid: text,
  pool: text,
  volume: text,
  folder: text,
  /** As in the order. */
  claim: optional(text),
  capacity: optional(text),
  storageClass: optional(text),
  /** Left out: not measured yet. */
  usedBytes: optional(integer),
  /** So long it has been there while the agent ran, and so long it stays. */
  keptSeconds: integer,
  keepSeconds: integer,
})
export type TrashedVolume = Described<typeof TrashedVolumeSchema>

const CopyResultSchema = object({
  /** Number of the copy within its move, from 1. */
  round: integer,
  files: integer,
  bytes: integer,
  /** Over names, kinds, owners, modes, times and contents. */
  digest: text,
})
export type CopyResult = Described<typeof CopyResultSchema>

const MoveReportSchema = object({
  /** UID of the PersistentVolume, and ID of the move. */
  uid: text,
  id: text,
  /** At the source: no pod has the volume or gets it, and what it has sent whole since; pods get it again. */
  held: optional(bool),
  sent: optional(CopyResultSchema),
  released: optional(bool),
  /** At the target: the last copy; it is the folder of the volume; nothing of the move is left; why it cannot receive. */
  received: optional(CopyResultSchema),
  kept: optional(bool),
  removed: optional(bool),
  refusal: optional(text),
  /** What the order waits for. */
  waits: optional(text),
})
export type MoveReport = Described<typeof MoveReportSchema>

/** A node's complete report. Orders are named by the UID of their volume. */
export const StorageMessageSchema = object({
  done: list(text),
  refused: list(RefusedOrderSchema),
  pools: optional(list(PoolUsageSchema)),
  volumes: optional(list(VolumeUsageSchema)),
  /** What is in the trash of its pools, the latest first. */
  trash: optional(list(TrashedVolumeSchema)),
  /** Left out: the agent is of a version that does not move volumes. */
  moves: optional(list(MoveReportSchema)),
  /** The kinds of shares that it can mount: their programs are there. It follows orders for them. */
  shares: optional(list(text)),
})
export type StorageMessage = Described<typeof StorageMessageSchema>

/** The others follow when these are done. An order has less than 2,048 bytes. */
export const mostOrders = 256
/** Characters of a reason in a node's report. */
export const longestRefusal = 1_024
/** Entries of the trash in a report: the pool's `inTrash` counts all. */
export const mostTrashed = 128
/** What is in the trash is reported again when it is so much older. */
export const trashReportSeconds = 6 * 3600

/** What `GET /fleet/volumes` answers: the pools of the fleet, its claims and volumes, and what is in the trash. See docs/storage.md. */
import { type Described, integer, list, object, oneOf, optional, text } from '../schema.ts'

const FleetPoolSchema = object({
  id: text,
  /** Left out with the state `Missing`. */
  node: optional(text),
  path: optional(text),
  /** As the node calls it; left out: it has one pool, without a name. */
  name: optional(text),
  /** `Missing`: volumes name it, and no node has it. */
  state: oneOf('Ready', 'NodeNotReady', 'Missing'),
  /** As last reported; left out: not since the controller started. */
  capacityBytes: optional(integer),
  availableBytes: optional(integer),
  /** How many volumes are in its trash. */
  inTrash: optional(integer),
  /** How many volumes are in it. */
  volumes: integer,
})
export type FleetPool = Described<typeof FleetPoolSchema>

const FleetVolumeSchema = object({
  /** `namespace/name`; left out: the volume is reserved for none. */
  claim: optional(text),
  /** Left out: the claim has none. */
  volume: optional(text),
  /** The phase of the volume, or of a claim without one, or `Terminating`. */
  state: text,
  storageClass: optional(text),
  pool: optional(text),
  node: optional(text),
  path: optional(text),
  /** What the claim requests, or the volume has. */
  requestedBytes: integer,
  usedBytes: optional(integer),
  /** It is being moved, or `waiting` for its nodes. `bytes`: as measured before; `copiedBytes`: of the present copy. */
  move: optional(
    object({ to: text, phase: text, bytes: optional(integer), copiedBytes: optional(integer), why: optional(text) }),
  ),
  /** It is being backed up, or `waiting` for that. `copiedBytes`: compressed. */
  backup: optional(
    object({
      phase: text,
      to: optional(text),
      mode: optional(text),
      bytes: optional(integer),
      copiedBytes: optional(integer),
    }),
  ),
  lastBackup: optional(object({ name: text, to: text, time: text, bytes: integer, mode: text })),
  /** Why the last backup failed, and when. */
  backupFailure: optional(object({ why: text, time: text })),
  /** Its data comes from this backup; why it did not come until now. */
  restore: optional(object({ from: text, name: text, copiedBytes: optional(integer), why: optional(text) })),
  /** Pods that run with it, in the namespace of the claim. */
  pods: list(text),
})
export type FleetVolume = Described<typeof FleetVolumeSchema>

const FleetTrashSchema = object({
  uid: text,
  pool: text,
  node: text,
  path: text,
  volume: text,
  folder: text,
  claim: optional(text),
  capacity: optional(text),
  storageClass: optional(text),
  usedBytes: optional(integer),
  /** It stays at least so long, while its node runs and the pool has space. */
  leftSeconds: integer,
})
export type FleetTrash = Described<typeof FleetTrashSchema>

export const FleetVolumesSchema = object({
  pools: list(FleetPoolSchema),
  volumes: list(FleetVolumeSchema),
  trash: list(FleetTrashSchema),
})
export type FleetVolumes = Described<typeof FleetVolumesSchema>

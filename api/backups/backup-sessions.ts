/** What a controller asks a node for in sessions about backups of volumes. */
import { type Described, integer, object, optional, text } from '../schema.ts'
import { ShareSchema } from '../storage/shares.ts'

/** The folder of a volume in a pool, and for which claim it was made. */
const place = { uid: text, pool: text, folder: text, claim: optional(text), claimUID: optional(text) }

/** A folder of a NAS, which the node mounts for the session. Its user is in the data of a Secret, as the API has it, and nowhere else. */
const BackupNasSchema = object({
  share: ShareSchema,
  secret: optional(object({ username: optional(text), password: optional(text), domain: optional(text) })),
})
export type BackupNas = Described<typeof BackupNasSchema>

/** A folder with backups. `path`: on this node, or, with `nas`, how messages name it. */
const folder = { path: text, nas: optional(BackupNasSchema) }

const BackupReadSchema = object({
  ...place,
  id: text,
  /** The backup of which this one has the changes; left out: everything. */
  since: optional(text),
  /** It must be held for this backup: no pod has it. */
  held: optional(text),
})
export type BackupRead = Described<typeof BackupReadSchema>

const BackupStoreSchema = object({
  ...folder,
  /** The identity that the folder must have; left out: it is given one if it has none. */
  mark: optional(text),
  /** UID of the PersistentVolume, id of the backup, and the name of its folder. */
  uid: text,
  id: text,
  name: text,
  /** The backup that it needs: it must be there. */
  base: optional(text),
  /** Which others of the same claim and the same fleet stay, as in the annotation; left out: all. */
  keep: optional(text),
})
export type BackupStore = Described<typeof BackupStoreSchema>

const BackupRestoreSchema = object({
  ...place,
  id: text,
  /** How many follow one another, and the data in all of them. */
  archives: integer,
  contentBytes: integer,
})
export type BackupRestore = Described<typeof BackupRestoreSchema>

/** One of these. */
export const BackupRequestSchema = object({
  read: optional(BackupReadSchema),
  store: optional(BackupStoreSchema),
  list: optional(object(folder)),
  fetch: optional(object({ ...folder, name: text })),
  restore: optional(BackupRestoreSchema),
})
export type BackupRequest = Described<typeof BackupRequestSchema>

/** What the node reports of it, on the channel of requests. */
export const BackupFactsSchema = object({
  /** `store`, before the data: the identity of the folder. After it: which backups were removed. */
  mark: optional(text),
  /** The manifest of the backup that was made before under this name: nothing is to be sent. */
  made: optional(text),
  removed: optional(integer),
  /** `read`, after the data. */
  contentBytes: optional(integer),
})
export type BackupFacts = Described<typeof BackupFactsSchema>

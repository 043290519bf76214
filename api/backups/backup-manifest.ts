/** What is in the folder of a backup of a volume, in `backup.json`: enough to restore it onto another fleet, or without one. */
import { decode } from '../decode.ts'
import { type Described, integer, list, object, oneOf, optional, text } from '../schema.ts'
import { parseJson } from '../text/json.ts'

const kind = 'bramble.dev/volume-backup/v1'
export const manifestFile = 'backup.json'
export const archiveFile = 'volume.tar.gz.age'

/** `live`: while pods wrote to it; `hooks`: after the commands that its pods ask for; `stopped`: no pod had it. */
const Consistency = oneOf('live', 'hooks', 'stopped')

export const BackupManifestSchema = object({
  kind: text,
  /** The name of its folder. */
  name: text,
  /** `namespace/name`, and the PersistentVolume. */
  claim: text,
  volume: text,
  storageClass: optional(text),
  capacity: optional(text),
  accessModes: list(text),
  /** RFC 3339. */
  time: text,
  consistency: Consistency,
  /** The name of the backup that has everything, of which this one has the changes. */
  base: optional(text),
  /** The size of the archive, and of the data in it before it was compressed. */
  bytes: integer,
  contentBytes: integer,
  /** The checksum of the archive, in hexadecimal digits. */
  sha256: text,
  /** For whom the archive is encrypted: the public key of age. */
  recipient: text,
  /** How a person reads it. */
  read: text,
  /** By the key of the fleet over all that is above; base64. */
  mac: text,
})
export type BackupManifest = Described<typeof BackupManifestSchema>

export const readCommand = `age --decrypt -i KEYFILE ${archiveFile} | tar --extract --gzip --listed-incremental=/dev/null --same-permissions --numeric-owner --acls --xattrs --xattrs-include='*' --directory FOLDER`

export const longestManifest = 8_192

export type BackupManifestFacts = Omit<BackupManifest, 'kind' | 'read' | 'mac'>

/** What the MAC is over. */
export function signedManifest(facts: BackupManifestFacts): string {
  const { name, claim, volume, storageClass = '', capacity = '', accessModes, time, consistency } = facts
  const { base = '', bytes, contentBytes, sha256, recipient } = facts
  const head = [kind, name, claim, volume, storageClass, capacity, accessModes, time, consistency]
  return JSON.stringify([...head, base, bytes, contentBytes, sha256, recipient])
}

export function manifestOf(facts: BackupManifestFacts, mac: string): BackupManifest {
  return { kind, ...facts, read: readCommand, mac }
}

/** undefined: the text is not the manifest of the folder with this name. */
export function readManifest(name: string, written: string): BackupManifest | undefined {
  if (written.length > longestManifest) return undefined
  const decoded = decode(BackupManifestSchema, parseJson(written))
  if (!decoded.ok) return undefined
  const found = decoded.value
  const areSizes = [found.bytes, found.contentBytes].every((size) => Number.isSafeInteger(size) && size >= 0)
  const areNames = found.name === name && [name, found.base ?? name].every(isBackupName)
  const isTime = !Number.isNaN(Date.parse(found.time))
  return found.kind === kind && areSizes && areNames && isTime ? found : undefined
}

/** The name of its folder: unique, and sorted by time within a claim. A file name has at most 255 bytes. */
export function backupName(claim: string, nowMs: number, id: string): string {
  const time = new Date(nowMs).toISOString().replace(/[-:]|\.\d+/g, '')
  return `${claim.replace('/', '_').slice(0, 200)}_${time}_${id}`
}

export function isBackupName(name: string): boolean {
  return /^[a-z0-9][a-z0-9._-]{0,200}_\d{8}T\d{6}Z_[0-9a-f]{8}$/.test(name)
}

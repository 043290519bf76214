/**
 * What a publisher signs of a release: `release.json`. Each key signs the file for itself; a release counts with the signatures of as
 * many keys as the threshold. Nothing in it expires: the clock of a machine may be wrong. Whether a fleet wants the release is
 * another question, which its operator answers.
 */
import { decode } from '../../api/decode.ts'
import { type Described, integer, list, mapOf, object, optional, text } from '../../api/schema.ts'
import { parseJson } from '../../api/text/json.ts'
import { checkSignature, readSignatureKey } from './minisign.ts'
import type { Release, UpdateState } from './update-state.ts'

/**
 * A file that makes an archive of an earlier one, the base: `base` is the digest of that, and `baseVersion` its version, for people.
 * `size` and `sha256` are those of the delta.
 */
const ReleaseDeltaSchema = object({ base: text, baseVersion: optional(text), size: integer, sha256: text })
export type ReleaseDelta = Described<typeof ReleaseDeltaSchema>

/** `size` in bytes, also of its files when unpacked. Versions that do not support `deltas` ignore them. */
export const ReleaseArchiveSchema = object({ size: integer, sha256: text, deltas: optional(list(ReleaseDeltaSchema)) })
export type ReleaseArchive = Described<typeof ReleaseArchiveSchema>

const ReleaseManifestSchema = object({
  format: integer,
  program: text,
  version: text,
  /** Never falls from one release to the next. */
  sequence: integer,
  /** The least sequence of a version that this one can follow: it reads the state of that version. */
  floor: integer,
  /** Major version of the Node.js that it runs on. */
  runtime: text,
  /** Formats of the controller's store that it uses without a migration. Undefined: the program has no such store. */
  storeFormats: optional(list(integer)),
  /** The archive for each Debian architecture. */
  archives: mapOf(ReleaseArchiveSchema),
})
export type ReleaseManifest = Described<typeof ReleaseManifestSchema>

/** Keys of the publisher: present and next, of which `threshold` must have signed. */
const ReleaseKeysSchema = object({ threshold: integer, keys: list(text) })
export type ReleaseKeys = Described<typeof ReleaseKeysSchema>

export type ReleaseCheck<T> = { readonly ok: true; readonly value: T } | { readonly ok: false; readonly why: string }

/** The size of release.json in bytes. */
export const largestManifest = 64 * 1024
const largestArchive = 256 * 1024 * 1024
const mostKeys = 16

/** Undefined: the file cannot be used, and no release may be installed. */
export function readReleaseKeys(written: string): ReleaseKeys | undefined {
  const decoded = decode(ReleaseKeysSchema, parseJson(written))
  if (!decoded.ok) return undefined
  const { threshold, keys } = decoded.value
  const ids = new Set(keys.map((key) => readSignatureKey(key)?.id))
  if (ids.has(undefined) || keys.length > mostKeys || threshold < 1 || threshold > ids.size) return undefined
  return decoded.value
}

/** The manifest if enough keys have signed it. Nothing in it is read before. */
export function checkRelease(
  file: Uint8Array,
  signatures: readonly string[],
  { threshold, keys }: ReleaseKeys,
): ReleaseCheck<ReleaseManifest> {
  if (file.length > largestManifest) return refused('release.json is larger than 64 KiB')
  const signers = new Set<string>()
  for (const key of keys.flatMap((one) => readSignatureKey(one) ?? []))
    if (signatures.slice(0, mostKeys).some((one) => checkSignature(file, one, key) !== undefined)) signers.add(key.id)
  if (signers.size < threshold)
    return refused(`release.json is signed by ${signers.size} of the keys of this machine, and needs ${threshold}`)
  const decoded = decode(ReleaseManifestSchema, parseJson(Buffer.from(file).toString()))
  if (!decoded.ok || decoded.value.format !== 1)
    return refused('release.json has a format that this version cannot read')
  const { version, sequence, floor } = decoded.value
  if (!/^[0-9A-Za-z][0-9A-Za-z.+~-]{0,63}$/.test(version)) return refused('release.json has an invalid version')
  if (![sequence, floor].every((one) => Number.isSafeInteger(one) && one > 0))
    return refused('release.json has an invalid sequence')
  return { ok: true, value: decoded.value }
}

export type ReleaseMachine = {
  readonly program: string
  readonly arch: string
  /** Major versions of Node.js that are installed. */
  readonly runtimes: readonly string[]
  readonly base: Pick<Release, 'version' | 'sequence'>
  readonly freeBytes: number
  /** The operator asked for an earlier version, or for one that was rejected. */
  readonly isForced: boolean
}

/** Whether this machine may try the release, and with which archive. */
export function admitRelease(
  manifest: ReleaseManifest,
  state: UpdateState,
  facts: ReleaseMachine,
): ReleaseCheck<Release & { readonly size: number }> {
  const { program, version, sequence, floor, runtime, archives } = manifest
  const { arch, runtimes, base, freeBytes, isForced } = facts
  const { committed } = state
  const running = committed !== undefined && committed.sequence > base.sequence ? committed : base
  const archive = archives[arch]
  if (program !== facts.program) return refused(`The release is one of ${program}`)
  if (archive === undefined) return refused(`Release ${version} has no archive for ${arch}`)
  const { size, sha256 } = archive
  if (!/^[0-9a-f]{64}$/.test(sha256) || size < 1 || size > largestArchive)
    return refused(`Release ${version} has an invalid archive`)
  if (sequence === running.sequence) return refused(`Version ${version} is installed already`)
  if (sequence <= base.sequence)
    return refused(`The package has version ${base.version}, which is newer: downgrade it with apt`)
  if (sequence < state.highestSequence && !isForced)
    return refused(`Version ${version} is older than one that was committed on this machine`)
  if (floor > running.sequence)
    return refused(`Version ${version} cannot follow ${running.version}: install a release between them first`)
  const rejected = state.rejected.find(({ digest }) => digest === sha256)
  if (rejected !== undefined && !isForced)
    return refused(`Version ${version} was rejected on this machine: ${rejected.reason}`)
  if (!runtimes.includes(runtime))
    return refused(`Version ${version} needs Node.js ${runtime}: upgrade bramble-runtime with apt`)
  if (freeBytes < 3 * size)
    return refused(`The disk has ${mebibytes(freeBytes)} MiB free, and the update needs ${mebibytes(3 * size)}`)
  return { ok: true, value: { version, sequence, digest: sha256, size } }
}

function mebibytes(bytes: number): number {
  return Math.ceil(bytes / 2 ** 20)
}

function refused(why: string): { readonly ok: false; readonly why: string } {
  return { ok: false, why }
}

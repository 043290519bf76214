/**
 * Downloads the release that the controller wants into a folder: release.json, its signatures, and the archive for this machine or a
 * delta that makes it, in ranges. Nothing of the archive is downloaded before the signatures of the publisher are checked and the machine
 * can install it.
 */
import { createHash } from 'node:crypto'
import { mkdir, readdir, readFile, rename, rm } from 'node:fs/promises'
import { basename, join } from 'node:path'
import type { AgentRelease } from '../../api/node/agent-update.ts'
import { replaceFile, syncFolder } from '../../daemon/durable-file.ts'
import { isMissing } from '../../daemon/errors.ts'
import { readSignatureKey } from '../../daemon/updates/minisign.ts'
import {
  checkRelease,
  type ReleaseCheck,
  type ReleaseKeys,
  type ReleaseManifest,
} from '../../daemon/updates/release-manifest.ts'
import type { Release } from '../../daemon/updates/update-state.ts'
import { allowedBytes, downloadFile, isWhole, sizeOnDisk, Unfinished } from './download-file.ts'
import { type DeltaFetch, fetchByDelta } from './fetch-delta.ts'

export type ReleaseFetch = DeltaFetch & {
  /** For downloads: one folder in it for each release. */
  readonly folder: string
  readonly wanted: AgentRelease
  readonly keys: ReleaseKeys
  /** Whether this machine can install the release. */
  readonly admit: (manifest: ReleaseManifest) => Promise<ReleaseCheck<Release & { readonly size: number }>>
}

/** `fetched`: all is in the folder `from`. */
export type FetchOutcome =
  | { readonly outcome: 'fetched'; readonly from: string }
  | { readonly outcome: 'waiting' | 'blocked'; readonly reason: string }

const largestSmallFile = 64 * 1024
const manifestFile = 'release.json'
/** Marks an archive that was damaged on its way once. */
const damagedFile = 'damaged'

export async function fetchRelease(fetch: ReleaseFetch): Promise<FetchOutcome> {
  const { folder, wanted, arch, admit } = fetch
  const from = join(folder, wanted.digest)
  await mkdir(from, { recursive: true, mode: 0o700 })
  for (const other of await readdir(folder))
    if (other !== wanted.digest) await rm(join(folder, other), { recursive: true, force: true })
  try {
    const manifest = await fetchManifest(fetch, from)
    const release = unblocked(await admit(manifest))
    const { program, version } = manifest
    const { size, digest } = release
    const archive = { path: join(from, `${program}_${version}_${arch}.tar`), size, digest }
    const isThere = (await isWhole(archive.path, size, digest)) || (await fetchByDelta(fetch, manifest, archive))
    if (!isThere) await fetchArchive(fetch, archive)
    return { outcome: 'fetched', from }
  } catch (error) {
    if (error instanceof Unfinished) return { outcome: error.outcome, reason: error.message }
    throw error
  }
}

function unblocked<T>(checked: ReleaseCheck<T>): T {
  if (!checked.ok) throw new Unfinished('blocked', checked.why)
  return checked.value
}

async function fetchManifest(fetch: ReleaseFetch, from: string): Promise<ReleaseManifest> {
  const { wanted, keys } = fetch
  const isWanted = (file: Uint8Array) => sha256(file) === wanted.digest
  const file = await smallFile(fetch, join(from, manifestFile), manifestFile, isWanted)
  if (file === undefined) throw new Unfinished('blocked', `The controller does not have release ${wanted.version}`)
  if (!isWanted(file)) throw new Unfinished('blocked', 'release.json is not the one that the controller wants')
  const signatures: string[] = []
  for (const { id } of keys.keys.flatMap((key) => readSignatureKey(key) ?? [])) {
    const name = `${manifestFile}.${id}.minisig`
    const signature = await smallFile(fetch, join(from, name), name, (content) => content.length > 0)
    if (signature !== undefined) signatures.push(Buffer.from(signature).toString())
  }
  const manifest = unblocked(checkRelease(file, signatures, keys))
  if (manifest.version !== wanted.version || manifest.sequence !== wanted.sequence)
    throw new Unfinished('blocked', `The controller calls it ${wanted.version}, and release.json ${manifest.version}`)
  return manifest
}

/** From the disk if it is there and right, else from the controller. Undefined: the controller has none. */
async function smallFile(
  { source, allowance, spend }: ReleaseFetch,
  path: string,
  name: string,
  isRight: (content: Uint8Array) => boolean,
): Promise<Uint8Array | undefined> {
  const kept = await readFile(path).catch((error: unknown) => {
    if (!isMissing(error)) throw error
  })
  if (kept !== undefined && isRight(kept)) return kept
  await allowedBytes(allowance)
  const found = await source.read(name, 0, largestSmallFile)
  if (found === undefined) return undefined
  await spend(found.bytes.length)
  if (found.size > largestSmallFile || found.bytes.length < found.size)
    throw new Unfinished('blocked', `${name} is larger than ${largestSmallFile} bytes`)
  if (isRight(found.bytes)) await replaceFile(path, found.bytes)
  return found.bytes
}

async function fetchArchive(
  fetch: ReleaseFetch,
  { path, size, digest }: { readonly path: string; readonly size: number; readonly digest: string },
): Promise<void> {
  const part = `${path}.part`
  await downloadFile(fetch, { path: part, name: basename(path), size })
  if (!(await isWhole(part, size, digest))) return refuseDamaged(part)
  await rename(part, path)
  await syncFolder(join(path, '..'))
}

/** Damaged by a power cut or on its way: once more. After that nothing is spent on it until another release is wanted. */
async function refuseDamaged(part: string): Promise<never> {
  const mark = join(part, '..', damagedFile)
  if ((await sizeOnDisk(mark)) > 0)
    throw new Unfinished('blocked', 'The archive was downloaded twice, and is not the one that the publisher signed')
  await replaceFile(mark, 'once')
  await rm(part)
  throw new Unfinished('waiting', 'The archive was damaged, and is downloaded again')
}

function sha256(file: Uint8Array): string {
  return createHash('sha256').update(file).digest('hex')
}

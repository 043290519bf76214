/**
 * Downloads the release that the controller wants into a folder: release.json, its signatures, and the archive for this machine, in
 * ranges. What is on disk is not downloaded again, also after a power cut. Nothing of the archive is downloaded before the signatures
 * of the publisher are checked and the machine can install it.
 */
import { createHash } from 'node:crypto'
import { mkdir, open, readdir, readFile, rename, rm, stat } from 'node:fs/promises'
import { join } from 'node:path'
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
import type { Allowance } from './download-allowance.ts'

export interface ReleaseSource {
  /** At most `most` bytes of a file of the release, and its size; undefined: there is no such file. Rejects if there is no answer. */
  read(
    file: string,
    from: number,
    most: number,
  ): Promise<{ readonly size: number; readonly bytes: Uint8Array } | undefined>
}

export type ReleaseFetch = {
  readonly source: ReleaseSource
  /** For downloads: one folder in it for each release. */
  readonly folder: string
  readonly wanted: AgentRelease
  readonly arch: string
  readonly keys: ReleaseKeys
  /** Whether this machine can install the release. */
  readonly admit: (manifest: ReleaseManifest) => Promise<ReleaseCheck<Release & { readonly size: number }>>
  readonly allowance: () => Promise<Allowance>
  /** Counts bytes that were downloaded. */
  readonly spend: (bytes: number) => Promise<void>
}

/** `fetched`: all is in the folder `from`. */
export type FetchOutcome =
  | { readonly outcome: 'fetched'; readonly from: string }
  | { readonly outcome: 'waiting' | 'blocked'; readonly reason: string }

/** Small enough for a slow link within the deadline of a request. */
const rangeBytes = 256 * 1024
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
    await fetchArchive(fetch, join(from, `${program}_${version}_${arch}.tar`), release)
    return { outcome: 'fetched', from }
  } catch (error) {
    if (error instanceof Unfinished) return { outcome: error.outcome, reason: error.message }
    throw error
  }
}

class Unfinished extends Error {
  readonly outcome: 'waiting' | 'blocked'

  constructor(outcome: 'waiting' | 'blocked', reason: string) {
    super(reason)
    this.outcome = outcome
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
  { source, allowance, spend }: ReleaseFetch,
  path: string,
  { size, digest }: Pick<Release, 'digest'> & { readonly size: number },
): Promise<void> {
  const part = `${path}.part`
  if (await isWhole(path, size, digest)) return
  for (let have = await sizeOf(part); have < size; ) {
    const most = Math.min(rangeBytes, size - have, await allowedBytes(allowance))
    const found = await source.read(nameOf(path), have, most)
    if (found === undefined) throw new Unfinished('blocked', `The controller does not have ${nameOf(path)}`)
    if (found.size !== size)
      throw new Unfinished('blocked', `The archive has ${found.size} bytes at the controller, and ${size} are signed`)
    if (found.bytes.length === 0 || found.bytes.length > most)
      throw new Error(`The controller sent ${found.bytes.length} bytes where ${most} were asked for`)
    await spend(found.bytes.length)
    await append(part, found.bytes, have)
    have += found.bytes.length
  }
  if (!(await isWhole(part, size, digest))) return refuseDamaged(part)
  await rename(part, path)
  await syncFolder(join(path, '..'))
}

/** Damaged by a power cut or on its way: once more. After that nothing is spent on it until another release is wanted. */
async function refuseDamaged(part: string): Promise<never> {
  const mark = join(part, '..', damagedFile)
  if ((await sizeOf(mark)) > 0)
    throw new Unfinished('blocked', 'The archive was downloaded twice, and is not the one that the publisher signed')
  await replaceFile(mark, 'once')
  await rm(part)
  throw new Unfinished('waiting', 'The archive was damaged, and is downloaded again')
}

async function allowedBytes(allowance: ReleaseFetch['allowance']): Promise<number> {
  const allowed = await allowance()
  if (allowed.may === 'wait') throw new Unfinished('waiting', allowed.reason)
  return allowed.bytes
}

/** On disk once it has resolved: what a power cut takes is downloaded again. */
async function append(path: string, bytes: Uint8Array, at: number): Promise<void> {
  const file = await open(path, at === 0 ? 'w' : 'r+', 0o600)
  try {
    await file.write(bytes, 0, bytes.length, at)
    await file.truncate(at + bytes.length)
    await file.sync()
  } finally {
    await file.close()
  }
  if (at === 0) await syncFolder(join(path, '..'))
}

async function isWhole(path: string, size: number, digest: string): Promise<boolean> {
  if ((await sizeOf(path)) !== size) return false
  const hash = createHash('sha256')
  const file = await open(path)
  for await (const piece of file.createReadStream()) hash.update(piece as Uint8Array)
  return hash.digest('hex') === digest
}

async function sizeOf(path: string): Promise<number> {
  const found = await stat(path).catch((error: unknown) => {
    if (!isMissing(error)) throw error
  })
  return found?.size ?? 0
}

function sha256(file: Uint8Array): string {
  return createHash('sha256').update(file).digest('hex')
}

function nameOf(path: string): string {
  return path.slice(path.lastIndexOf('/') + 1)
}

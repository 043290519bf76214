/**
 * Makes the archive of a release of a delta, if this machine has the archive that the delta needs. A delta that is not there, or cannot be
 * used, is left out: the next one or the whole archive takes its place. One whose bytes are wrong is not downloaded again.
 */
import { rm } from 'node:fs/promises'
import { join } from 'node:path'
import { replaceFile } from '../../daemon/durable-file.ts'
import { codeOf } from '../../daemon/errors.ts'
import { type Log, storyOf } from '../../daemon/log.ts'
import { applyDelta } from '../../daemon/updates/deltas/apply-delta.ts'
import { deltaFileName, usableDeltas } from '../../daemon/updates/deltas/choose-delta.ts'
import { archiveDigest, type InstalledArchive } from '../../daemon/updates/deltas/installed-archive.ts'
import { fileDisk } from '../../daemon/updates/file-disk.ts'
import type { ReleaseDelta, ReleaseManifest } from '../../daemon/updates/release-manifest.ts'
import { type Download, downloadFile, isWhole, NotServed, sizeOnDisk, Unfinished } from './download-file.ts'

export type DeltaFetch = Download & {
  readonly arch: string
  /** The archives of the versions that are on this machine. */
  readonly installed: () => Promise<readonly InstalledArchive[]>
  readonly log: Log
}

/** The archive that is wanted at `path`, as it is signed. */
type WantedArchive = { readonly path: string; readonly size: number; readonly digest: string }

/** True: the archive is at its path. False: no delta can be used. Rejects with Unfinished while no byte may be downloaded. */
export async function fetchByDelta(
  fetch: DeltaFetch,
  manifest: ReleaseManifest,
  { path, size, digest }: WantedArchive,
): Promise<boolean> {
  const { arch, log } = fetch
  const archive = manifest.archives[arch]
  if (archive?.deltas === undefined) return false
  const bases = await archivesByDigest(fetch)
  for (const delta of usableDeltas(archive, new Set(bases.keys()), await sizeOnDisk(`${path}.part`))) {
    const base = bases.get(delta.base)
    const name = deltaFileName(manifest, arch, delta)
    const file = join(path, '..', name)
    if (base === undefined || (await sizeOnDisk(refusedMark(file))) > 0) continue
    const refused = await whyRefused(fetch, { name, file, delta }, () =>
      applyDelta({ disk: fileDisk, base, delta: `${file}.part`, to: path, size, digest }),
    )
    if (refused !== undefined) {
      log.warn('A delta of a release cannot be used', { name, reason: refused.reason })
      if (refused.isForGood) await replaceFile(refusedMark(file), refused.reason)
    }
    await rm(`${file}.part`, { force: true })
    if (refused === undefined) return true
  }
  return false
}

const refusedMark = (file: string) => `${file}.refused`

async function archivesByDigest({ installed, log }: DeltaFetch): Promise<ReadonlyMap<string, InstalledArchive>> {
  const found = new Map<string, InstalledArchive>()
  for (const one of await installed())
    await archiveDigest(one).then(
      (digest) => found.set(digest, one),
      (error: unknown) => log.warn('An installed version cannot be the base of a delta', { error }),
    )
  return found
}

type DeltaFile = { readonly name: string; readonly file: string; readonly delta: ReleaseDelta }

type Refusal = { readonly reason: string; readonly isForGood: boolean }

/** Undefined: the delta is downloaded and applied. */
async function whyRefused(
  fetch: Download,
  { name, file, delta: { size, sha256 } }: DeltaFile,
  apply: () => Promise<void>,
): Promise<Refusal | undefined> {
  const part = `${file}.part`
  try {
    await downloadFile(fetch, { path: part, name, size })
  } catch (error) {
    if (!(error instanceof Unfinished) || error.outcome === 'waiting') throw error
    // Several controllers get a release one after the other.
    return { reason: error.message, isForGood: !(error instanceof NotServed) }
  }
  if (!(await isWhole(part, size, sha256)))
    return { reason: `${name} is not the delta that the publisher signed`, isForGood: true }
  return apply().then(
    () => undefined,
    (error: unknown) => {
      // A disk that is full takes the whole archive no better.
      if (codeOf(error) === 'ENOSPC') throw error
      return { reason: storyOf(error), isForGood: true }
    },
  )
}

/** Installs a release from a folder: its signatures and its archive are checked, then it is put on trial. */
import { createHash } from 'node:crypto'
import { readdir, readFile, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { readReleaseArchive } from './release-archive.ts'
import {
  admitRelease,
  checkRelease,
  largestManifest,
  type ReleaseKeys,
  type ReleaseMachine,
  type ReleaseManifest,
} from './release-manifest.ts'
import { beginTrial, loadUpdateState, type UpdateFolder } from './update-folder.ts'
import type { Release, SeenBefore } from './update-state.ts'

export type ReleaseInstallation = {
  /** With `release.json`, `release.json.KEY.minisig` for each key, and `PROGRAM_VERSION_ARCH.tar`. */
  readonly from: string
  readonly updates: UpdateFolder
  readonly keys: ReleaseKeys
  readonly machine: ReleaseMachine
  /** What is seen before the trial, when the release has passed its checks. Throws if the trial must not begin. */
  readonly see: (manifest: ReleaseManifest) => Promise<SeenBefore>
}

const mostSignatures = 16

/** Throws an Error with the reason if the release is refused: then nothing was changed. */
export async function installRelease({ from, updates, keys, machine, see }: ReleaseInstallation): Promise<Release> {
  const manifestFile = await readBounded(join(from, 'release.json'), largestManifest)
  const names = (await readdir(from)).filter((name) => /^release\.json\.[\w-]+\.minisig$/.test(name)).sort()
  const signatures: string[] = []
  for (const name of names.slice(0, mostSignatures))
    signatures.push((await readBounded(join(from, name), largestManifest)).toString())
  const manifest = admitted(checkRelease(manifestFile, signatures, keys))
  const release = admitted(admitRelease(manifest, await loadUpdateState(updates), machine))
  const path = join(from, `${manifest.program}_${manifest.version}_${machine.arch}.tar`)
  const archive = await readBounded(path, release.size)
  if (createHash('sha256').update(archive).digest('hex') !== release.digest)
    throw new Error(`${path} is not the archive that the publisher signed: its SHA-256 differs`)
  const files = readReleaseArchive(archive)
  const program = files.find((one) => one.path === manifest.program)
  if (program?.isProgram !== true) throw new Error(`${path} has no program ${manifest.program}`)
  await beginTrial(updates, release, files, await see(manifest))
  return release
}

async function readBounded(path: string, most: number): Promise<Buffer> {
  const { size } = await stat(path)
  if (size > most) throw new Error(`${path} is larger than ${most} bytes`)
  return readFile(path)
}

function admitted<T>(
  checked: { readonly ok: true; readonly value: T } | { readonly ok: false; readonly why: string },
): T {
  if (!checked.ok) throw new Error(checked.why)
  return checked.value
}

/** Adds releases to those that the controller serves, and lists them. Nodes check the signatures: the controller has no keys. */
import { createHash, randomUUID } from 'node:crypto'
import { mkdir, readdir, readFile, rename, rm, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { decode } from '../../api/decode.ts'
import { releaseFileOf, releasePath } from '../../api/node/release-paths.ts'
import { integer, mapOf, object, text } from '../../api/schema.ts'
import { parseJson } from '../../api/text/json.ts'
import { replaceFile, syncFolder } from '../../daemon/durable-file.ts'
import { isMissing } from '../../daemon/errors.ts'
import { deltaFileName } from '../../daemon/updates/deltas/choose-delta.ts'
import { signatureKeyID } from '../../daemon/updates/minisign.ts'
import { largestManifest, ReleaseArchiveSchema } from '../../daemon/updates/release-manifest.ts'
import { releaseFolder } from './release-folder.ts'

/** What of a release.json the controller needs. */
const ServedManifestSchema = object({
  program: text,
  version: text,
  sequence: integer,
  floor: integer,
  archives: mapOf(ReleaseArchiveSchema),
})

export const releasePrograms = ['bramble-agent', 'bramble-controller'] as const
export type ReleaseProgram = (typeof releasePrograms)[number]

export type ServedRelease = {
  readonly program: ReleaseProgram
  readonly version: string
  readonly sequence: number
  readonly floor: number
  readonly digest: string
  readonly archs: readonly string[]
  /** What a node downloads, in bytes: the archive, or the delta from another version; without a version, from nothing. */
  readonly downloads: readonly { readonly arch: string; readonly fromVersion?: string; readonly size: number }[]
}

const manifestFile = 'release.json'
const largestSignature = 4 * 1024
/** The controller runs as another user than who adds a release. */
const readableByAll = 0o644

/**
 * The newest first. Folders that hold no release are left out. Contents were checked when they were added, and nodes check them again:
 * here sizes are, for Home Assistant's view asks twice a minute.
 */
export async function listReleases(dataDir: string): Promise<readonly ServedRelease[]> {
  const names = await readdir(releaseFolder(dataDir)).catch((error: unknown) => {
    if (isMissing(error)) return []
    throw error
  })
  const found: ServedRelease[] = []
  for (const name of names.filter((one) => /^[0-9a-f]{64}$/.test(one))) {
    const folder = releaseFolder(dataDir, name)
    const read = await readRelease(folder).catch(() => undefined)
    if (read?.digest !== name) continue
    const { files, ...release } = read
    const sizes = await Promise.all(files.map((file) => hasSize(folder, file))).catch(() => [false])
    if (sizes.every(Boolean)) found.push(release)
  }
  return found.sort((one, other) => other.sequence - one.sequence)
}

/** Throws with the reason if the folder holds no whole release of the agent or of the controller. */
export async function addRelease(from: string, dataDir: string): Promise<ServedRelease> {
  const { files, ...release } = await readRelease(from)
  const signatures = await readSignatures(from, await readdir(from))
  if (signatures.size === 0) throw new Error(`${from} has no signature of ${manifestFile}`)
  const to = releaseFolder(dataDir, release.digest)
  await mkdir(releaseFolder(dataDir), { recursive: true, mode: 0o755 })
  const part = join(releaseFolder(dataDir), `.${randomUUID()}`)
  try {
    await mkdir(part, { mode: 0o755 })
    await replaceFile(join(part, manifestFile), await readFile(join(from, manifestFile)), readableByAll)
    // One at a time: an archive has tens of MB, and there is one for each architecture.
    for (const file of files) await replaceFile(join(part, file.name), await readSigned(from, file), readableByAll)
    for (const [key, text] of signatures)
      await replaceFile(join(part, `${manifestFile}.${key}.minisig`), text, readableByAll)
    await rm(to, { recursive: true, force: true })
    await rename(part, to)
  } finally {
    await rm(part, { recursive: true, force: true })
  }
  await syncFolder(releaseFolder(dataDir))
  return release
}

/** By the key that each names: nodes ask for those of their keys, and minisign writes `release.json.minisig`, whatever the key. */
async function readSignatures(from: string, names: readonly string[]): Promise<ReadonlyMap<string, string>> {
  const found = new Map<string, string>()
  for (const name of names.filter((one) => /^release\.json(\.[\w-]+)?\.minisig$/.test(one))) {
    const path = join(from, name)
    const text = (await stat(path)).size > largestSignature ? '' : await readFile(path, 'utf8')
    const key = signatureKeyID(text)
    if (key === undefined) throw new Error(`${path} is not a signature of minisign`)
    found.set(key, text)
  }
  return found
}

type SignedFile = { readonly name: string; readonly what: string; readonly size: number; readonly sha256: string }

/** With its archives and deltas, which are not looked at. Throws unless the manifest is that of a release. */
async function readRelease(folder: string): Promise<ServedRelease & { readonly files: readonly SignedFile[] }> {
  const path = join(folder, manifestFile)
  if ((await stat(path)).size > largestManifest) throw new Error(`${path} is larger than ${largestManifest} bytes`)
  const file = await readFile(path)
  const digest = sha256(file)
  const decoded = decode(ServedManifestSchema, parseJson(file.toString()))
  const program = decoded.ok ? releasePrograms.find((one) => one === decoded.value.program) : undefined
  if (!decoded.ok || program === undefined)
    throw new Error(`${path} is not that of a release of ${releasePrograms.join(' or ')}`)
  const { version, sequence, floor, archives } = decoded.value
  const downloads: ServedRelease['downloads'][number][] = []
  const files: SignedFile[] = []
  const add = (name: string, what: string, { size, sha256 }: { readonly size: number; readonly sha256: string }) => {
    if (releaseFileOf(releasePath({ digest, file: name })) === undefined)
      throw new Error(`${path} names the file ${JSON.stringify(name)}, which cannot be served`)
    files.push({ name, what, size, sha256 })
  }
  for (const [arch, archive] of Object.entries(archives)) {
    add(`${program}_${version}_${arch}.tar`, 'archive', archive)
    for (const delta of archive.deltas ?? []) {
      add(deltaFileName({ program, version }, arch, delta), 'delta', delta)
      const { baseVersion: fromVersion, size } = delta
      downloads.push({ arch, ...(fromVersion !== undefined && { fromVersion }), size })
    }
    if (!downloads.some((one) => one.arch === arch && one.fromVersion === undefined))
      downloads.push({ arch, size: archive.size })
  }
  const archs = Object.keys(archives).sort()
  return { program, version, sequence, floor, digest, archs, downloads, files }
}

/** The content of the file. Throws unless it is the one that is signed. */
async function readSigned(folder: string, { name, what, size, sha256: digest }: SignedFile): Promise<Uint8Array> {
  const content = await readFile(join(folder, name))
  if (content.length !== size || sha256(content) !== digest)
    throw new Error(`${join(folder, name)} is not the ${what} that ${manifestFile} names`)
  return content
}

async function hasSize(folder: string, { name, size }: SignedFile): Promise<boolean> {
  return (await stat(join(folder, name))).size === size
}

function sha256(content: Uint8Array): string {
  return createHash('sha256').update(content).digest('hex')
}

/** Adds releases to those that the controller serves, and lists them. Nodes check the signatures: the controller has no keys. */
import { createHash, randomUUID } from 'node:crypto'
import { mkdir, readdir, readFile, rename, rm, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { decode } from '../../api/decode.ts'
import { integer, mapOf, object, text } from '../../api/schema.ts'
import { parseJson } from '../../api/text/json.ts'
import { replaceFile, syncFolder } from '../../daemon/durable-file.ts'
import { isMissing } from '../../daemon/errors.ts'
import { signatureKeyID } from '../../daemon/updates/minisign.ts'
import { releaseFolder } from './release-folder.ts'

/** What of a release.json the controller needs. */
const ServedManifestSchema = object({
  program: text,
  version: text,
  sequence: integer,
  floor: integer,
  archives: mapOf(object({ size: integer, sha256: text })),
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
}

const manifestFile = 'release.json'
const largestManifest = 64 * 1024
const largestSignature = 4 * 1024
/** The controller runs as another user than who adds a release. */
const readableByAll = 0o644

/** The newest first. Folders that hold no release are left out. */
export async function listReleases(dataDir: string): Promise<readonly ServedRelease[]> {
  const names = await readdir(releaseFolder(dataDir)).catch((error: unknown) => {
    if (isMissing(error)) return []
    throw error
  })
  const found: ServedRelease[] = []
  for (const name of names.filter((one) => /^[0-9a-f]{64}$/.test(one))) {
    const release = await readRelease(releaseFolder(dataDir, name)).catch(() => undefined)
    if (release?.digest === name) found.push(release)
  }
  return found.sort((one, other) => other.sequence - one.sequence)
}

/** Throws with the reason if the folder holds no whole release of the agent or of the controller. */
export async function addRelease(from: string, dataDir: string): Promise<ServedRelease> {
  const release = await readRelease(from)
  const names = await readdir(from)
  const signatures = await readSignatures(from, names)
  if (signatures.size === 0) throw new Error(`${from} has no signature of ${manifestFile}`)
  const signed = new Set(release.archs.map((arch) => `${release.program}_${release.version}_${arch}.tar`))
  const archives = names.filter((name) => signed.has(name))
  const to = releaseFolder(dataDir, release.digest)
  await mkdir(releaseFolder(dataDir), { recursive: true, mode: 0o755 })
  const part = join(releaseFolder(dataDir), `.${randomUUID()}`)
  try {
    await mkdir(part, { mode: 0o755 })
    for (const name of [manifestFile, ...archives])
      await replaceFile(join(part, name), await readFile(join(from, name)), readableByAll)
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

/** Throws unless all archives are there, as the manifest names them. */
async function readRelease(folder: string): Promise<ServedRelease> {
  const path = join(folder, manifestFile)
  if ((await stat(path)).size > largestManifest) throw new Error(`${path} is larger than ${largestManifest} bytes`)
  const file = await readFile(path)
  const decoded = decode(ServedManifestSchema, parseJson(file.toString()))
  const program = decoded.ok ? releasePrograms.find((one) => one === decoded.value.program) : undefined
  if (!decoded.ok || program === undefined)
    throw new Error(`${path} is not that of a release of ${releasePrograms.join(' or ')}`)
  const { version, sequence, floor, archives } = decoded.value
  for (const [arch, { size, sha256 }] of Object.entries(archives)) {
    const archive = join(folder, `${program}_${version}_${arch}.tar`)
    const content = await readFile(archive)
    if (content.length !== size || createHash('sha256').update(content).digest('hex') !== sha256)
      throw new Error(`${archive} is not the archive that ${manifestFile} names`)
  }
  const digest = createHash('sha256').update(file).digest('hex')
  return { program, version, sequence, floor, digest, archs: Object.keys(archives).sort() }
}

/**
 * Compares the files of an image's layers with what Docker recorded when it unpacked them. Docker does not wait until the layers of a pull
 * are on the disk: after a power cut files of theirs can be missing, empty, or full of zeros. Layout of moby's layer/filestore.go and
 * daemon/graphdriver/overlay2.
 */
import { createHash } from 'node:crypto'
import { createReadStream, type Stats } from 'node:fs'
import { lstat, open, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { pipeline } from 'node:stream/promises'
import { createGunzip } from 'node:zlib'
import { codeOf, isMissing } from '../../../../daemon/errors.ts'
import { type JsonShape, jsonReader, type Kept } from '../json-reader.ts'

export type StoredImage = {
  /** `/var/lib/docker` */
  readonly rootDirectory: string
  /** The digests of its layers without compression, the lowest first (`RootFS.Layers`). */
  readonly layers: readonly string[]
}

/** An entry of tar-split.json.gz: of type 1 a file, of type 2 bytes between files. */
const entryShape = { fields: { type: 'number', name: 'text', size: 'number' } } as const satisfies JsonShape
type Entry = Kept<typeof entryShape>

/** The first damaged file of the image; undefined: all are as they were unpacked, as far as Docker recorded that. */
export async function layerDamage(
  { rootDirectory, layers }: StoredImage,
  signal: AbortSignal,
): Promise<string | undefined> {
  for (const chainID of chainIDs(layers)) {
    const record = join(rootDirectory, 'image/overlay2/layerdb', chainID.replace(':', '/'))
    const cacheID = await textOf(join(record, 'cache-id'))
    const layer = `in its layer ${chainID.slice(0, 'sha256:'.length + 12)}`
    if (!/^[\w-]+$/.test(cacheID ?? ''))
      return `the file "cache-id" is ${cacheID === undefined ? 'missing' : 'damaged'} ${layer}`
    const folder = join(rootDirectory, 'overlay2', cacheID ?? '')
    const damage = (await folderDamage(rootDirectory, folder)) ?? (await filesDamage(record, folder, signal))
    if (damage !== undefined) return `${damage} ${layer}`
  }
  return undefined
}

/** A layer is named by all layers below it, too (OCI image specification, ChainID). */
export function chainIDs(diffIDs: readonly string[]): readonly string[] {
  const chain: string[] = []
  for (const diffID of diffIDs) {
    const below = chain.at(-1)
    const digest = below && createHash('sha256').update(`${below} ${diffID}`).digest('hex')
    chain.push(digest === undefined ? diffID : `sha256:${digest}`)
  }
  return chain
}

/** What overlay2 needs to mount the layer: its folder, and the short name by which others refer to it. */
async function folderDamage(rootDirectory: string, folder: string): Promise<string | undefined> {
  const link = await textOf(join(folder, 'link'))
  if (!/^\w+$/.test(link ?? '')) return `the file "link" is ${link === undefined ? 'missing' : 'damaged'}`
  if (!(await statusOf(join(rootDirectory, 'overlay2/l', link ?? '')))) return `the link l/${link} is missing`
  const files = await statusOf(join(folder, 'diff'))
  return files?.isDirectory() ? undefined : 'the folder "diff" is missing'
}

async function filesDamage(record: string, folder: string, signal: AbortSignal): Promise<string | undefined> {
  const recorded = join(record, 'tar-split.json.gz')
  if (!(await statusOf(recorded))) return undefined
  const fileDamage = fileCheck(join(folder, 'diff'))
  const reader = jsonReader(entryShape)
  let found: { readonly name: string | undefined; readonly damage: string } | undefined
  const look = async (entry: Entry) => {
    // An archive may have a file twice, and then the later one is on the disk.
    if (found !== undefined && found.name !== entry.name) return
    const damage = await fileDamage(entry)
    found = damage === undefined ? undefined : { name: entry.name, damage }
  }
  const readAll = async (pieces: AsyncIterable<Buffer>) => {
    for await (const piece of pieces) for (const entry of reader.read(piece)) await look(entry)
  }
  try {
    await pipeline(createReadStream(recorded), createGunzip(), readAll, { signal })
  } catch (error) {
    // The record itself is damaged, or cannot be read to its end in time: what was read before that holds.
    if (signal.aborted && found === undefined) throw error
  }
  return found?.damage
}

const firstBytes = 4_096

/** A program or a library begins with a header. */
const isCode = (name: string, { mode }: Stats) => (mode & 0o111) !== 0 || /\.so(?:\.|$)/.test(name)

/** Looks at one file after the other below `root`. Follows no links: those of a layer may lead to any place of this machine. */
function fileCheck(root: string): (entry: Entry) => Promise<string | undefined> {
  const folders = new Map<string, boolean>([[root, true]])

  /** Whether it is a folder of the layer itself. */
  const isPlain = async (folder: string, parent: string): Promise<boolean> => {
    const known = folders.get(folder)
    if (known !== undefined) return known
    const status = await statusOf(folder)
    const plain = folders.get(parent) === true && (status === undefined || status.isDirectory())
    folders.set(folder, plain)
    return plain
  }

  return async ({ type, name = '', size = 0 }) => {
    const parts = name.split('/').filter((part) => part !== '' && part !== '.')
    const last = parts.at(-1) ?? ''
    // Of links and folders no size is recorded; a name with `.wh.` is a removed file of a layer below.
    if (type !== 1 || size <= 0 || last.startsWith('.wh.') || parts.includes('..')) return undefined
    let folder = root
    for (const part of parts.slice(0, -1)) {
      const below = join(folder, part)
      if (!(await isPlain(below, folder))) return undefined
      folder = below
    }
    const path = join(folder, last)
    const shown = JSON.stringify(`/${parts.join('/')}`)
    try {
      const status = await statusOf(path)
      if (status === undefined) return `the file ${shown} is missing`
      if (!status.isFile()) return undefined
      if (status.size !== size) return `the file ${shown} has ${status.size} of ${size} bytes`
      return isCode(last, status) && (await beginsWithZeros(path)) ? `the file ${shown} begins with zeros` : undefined
    } catch (error) {
      return `the file ${shown} cannot be read (${codeOf(error)})`
    }
  }
}

async function beginsWithZeros(path: string): Promise<boolean> {
  const file = await open(path)
  try {
    const { buffer, bytesRead } = await file.read(Buffer.alloc(firstBytes), 0, firstBytes, 0)
    return bytesRead > 0 && buffer.subarray(0, bytesRead).every((byte) => byte === 0)
  } finally {
    await file.close()
  }
}

/** undefined: it is not there. */
async function statusOf(path: string): Promise<Stats | undefined> {
  return await lstat(path).catch(undefinedIfMissing)
}

async function textOf(path: string): Promise<string | undefined> {
  return (await readFile(path, 'utf8').catch(undefinedIfMissing))?.trim()
}

function undefinedIfMissing(error: unknown): undefined {
  if (isMissing(error)) return undefined
  throw error
}

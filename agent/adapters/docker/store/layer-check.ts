/**
 * Compares the files of an image's layers with what Docker recorded when it unpacked them. Docker does not wait until the layers of a pull
 * are on the disk: after a power cut files of theirs can be missing, empty, or full of zeros. Layout of moby's layer/filestore.go and
 * daemon/graphdriver/overlay2.
 */
import { createHash } from 'node:crypto'
import { constants, createReadStream, type Stats } from 'node:fs'
import { lstat, open, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { pipeline } from 'node:stream/promises'
import { createGunzip } from 'node:zlib'
import { isMissing } from '../../../../daemon/errors.ts'
import { type JsonShape, jsonReader, type Kept } from '../json-reader.ts'
import { crc64 } from './crc64.ts'
import { diskErrorOf } from './disk-errors.ts'

export type StoredImage = {
  /** `/var/lib/docker` */
  readonly rootDirectory: string
  /** The digests of its layers without compression, the lowest first (`RootFS.Layers`). */
  readonly layers: readonly string[]
}

/** An entry of tar-split.json.gz: of type 1 a file, whose payload is its checksum, of type 2 bytes between files. */
const entryShape = {
  fields: { type: 'number', name: 'text', size: 'number', payload: 'text' },
} as const satisfies JsonShape
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
  const fileDamage = fileCheck(join(folder, 'diff'), signal)
  const reader = jsonReader(entryShape)
  let found: { readonly name: string | undefined; readonly damage: string } | undefined
  let failed: { readonly error: unknown } | undefined
  const look = async (entry: Entry) => {
    // An archive may have a file twice, and then the later one is on the disk.
    if (found !== undefined && found.name !== entry.name) return
    try {
      signal.throwIfAborted()
      const damage = await fileDamage(entry)
      found = damage === undefined ? undefined : { name: entry.name, damage }
    } catch (error) {
      failed = { error }
      throw error
    }
  }
  const readAll = async (pieces: AsyncIterable<Buffer>) => {
    for await (const piece of pieces) for (const entry of reader.read(piece)) await look(entry)
  }
  try {
    await pipeline(createReadStream(recorded), createGunzip(), readAll, { signal })
  } catch (error) {
    if (found !== undefined) return found.damage
    if (failed !== undefined) throw failed.error
    // The record itself is damaged, or cannot be read to its end in time: what was read before that holds.
    if (signal.aborted) throw error
  }
  return found?.damage
}

const firstBytes = 4_096
const pieceBytes = 64 * 1024
/** No link, and nothing that waits for another program. */
const readFlags = constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK

/** A program or a library begins with a header. */
const isCode = (name: string, { mode }: Stats) => (mode & 0o111) !== 0 || /\.so(?:\.|$)/.test(name)

/** Looks at one file after the other below `root`. Follows no links: those of a layer may lead to any place of this machine. */
function fileCheck(root: string, signal: AbortSignal): (entry: Entry) => Promise<string | undefined> {
  const areFolders = folderCheck(root)
  const damageOf = async (parts: readonly string[], { size, payload = '' }: Entry): Promise<string | undefined> => {
    const path = join(root, ...parts)
    if (!(await areFolders(parts.slice(0, -1)))) return undefined
    const status = await statusOf(path)
    if (status === undefined) return 'is missing'
    if (!status.isFile()) return undefined
    if (status.size !== size) return `has ${status.size} of ${size} bytes`
    if (payload === '' || !isCode(parts.at(-1) ?? '', status) || !(await beginsWithZeros(path))) return undefined
    return (await isAsRecorded(path, payload, signal)) ? undefined : 'begins with zeros'
  }
  return async (entry) => {
    const { type, name = '', size = 0 } = entry
    const parts = name.split('/').filter((part) => part !== '' && part !== '.')
    // The size of links and folders is not recorded; a name with `.wh.` is a removed file of a layer below.
    if (type !== 1 || size <= 0 || parts.at(-1)?.startsWith('.wh.') || parts.includes('..')) return undefined
    const shown = JSON.stringify(`/${parts.join('/')}`)
    try {
      const damage = await damageOf(parts, entry)
      return damage && `the file ${shown} ${damage}`
    } catch (error) {
      const damage = diskErrorOf(error)
      if (damage === undefined) throw error
      return `the file ${shown} cannot be read (${damage})`
    }
  }
}

/** Whether these, one in the other, are folders of the layer itself. Only those of the last call are remembered: the image chooses how many there are. */
function folderCheck(root: string): (names: readonly string[]) => Promise<boolean> {
  let last: readonly string[] = []
  /** How many names at the beginning of `last` are folders of the layer itself. */
  let depth = 0
  return async (names) => {
    const differs = names.findIndex((name, index) => name !== last[index])
    const common = differs < 0 ? names.length : differs
    if (common > depth) return false
    last = names
    for (depth = common; depth < names.length; depth++) {
      const status = await statusOf(join(root, ...names.slice(0, depth + 1)))
      if (status !== undefined && !status.isDirectory()) return false
    }
    return true
  }
}

async function beginsWithZeros(path: string): Promise<boolean> {
  const file = await open(path, readFlags)
  try {
    const { buffer, bytesRead } = await file.read(Buffer.alloc(firstBytes), 0, firstBytes, 0)
    return bytesRead > 0 && buffer.subarray(0, bytesRead).every((byte) => byte === 0)
  } finally {
    await file.close()
  }
}

/** `checksum`: in Base64. A file may begin with zeros for good, as a disk image does. */
async function isAsRecorded(path: string, checksum: string, signal: AbortSignal): Promise<boolean> {
  const sum = crc64()
  const buffer = Buffer.alloc(pieceBytes)
  const file = await open(path, readFlags)
  try {
    for (;;) {
      signal.throwIfAborted()
      const { bytesRead } = await file.read(buffer, 0, pieceBytes, null)
      if (bytesRead === 0) return sum.digest().toString('base64') === checksum
      sum.add(buffer.subarray(0, bytesRead))
    }
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

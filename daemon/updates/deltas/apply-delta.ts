/**
 * Makes an archive of a delta and its base, as a stream: in memory are pieces of the base and of the archive, below 2 MiB, and the window of
 * Brotli, 4 MiB as `make-delta.ts` writes it and 16 MiB at most (RFC 7932, section 9.1; the larger windows of later encoders are refused).
 */
import { createHash } from 'node:crypto'
import { Readable } from 'node:stream'
import { createBrotliDecompress } from 'node:zlib'
import type { UpdateDisk } from '../update-disk.ts'
import { type DeltaStep, deltaReader } from './delta-steps.ts'
import type { InstalledArchive } from './installed-archive.ts'

export type DeltaUse = {
  readonly disk: UpdateDisk
  readonly base: InstalledArchive
  /** Path of the delta. */
  readonly delta: string
  /** Path of the archive, and what it must be: no byte more is written. */
  readonly to: string
  readonly size: number
  readonly digest: string
}

const pieceBytes = 64 * 1024
/** Copies follow each other in the base, but for functions that were moved. */
const keptPieces = 16

/** The archive is on disk as a whole when it has resolved. If it rejects, nothing is at `to`; after a power cut it is done again. */
export async function applyDelta({ disk, base, delta, to, size, digest }: DeltaUse): Promise<void> {
  const aside = `${to}.made`
  const read = keptReads(base)
  const reader = deltaReader()
  const output = archiveOutput(disk, aside, size)
  const take = async (step: DeltaStep) => {
    if (step.step === 'insert') return output.add(step.bytes)
    const end = step.from + step.length
    if (end > base.size) throw new Error('The delta copies from behind the end of its base')
    for (let from = step.from; from < end; ) {
      const bytes = await read(from, end - from)
      await output.add(bytes)
      from += bytes.length
    }
  }
  try {
    await disk.write(aside, new Uint8Array(), 0o600)
    for await (const piece of decompressed(piecesOf(disk, delta)))
      for (const step of reader.read(piece)) await take(step)
    reader.end()
    if ((await output.end()) !== digest) throw new Error('The delta gives another archive than the one that is signed')
    await disk.sync(aside)
    await disk.rename(aside, to)
    await disk.syncFolder(to.slice(0, to.lastIndexOf('/')))
  } catch (error) {
    await disk.remove(aside)
    throw error
  }
}

async function* decompressed(pieces: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array> {
  const source = Readable.from(pieces)
  const plain = createBrotliDecompress()
  source.on('error', (error) => plain.destroy(error))
  source.pipe(plain)
  try {
    for await (const piece of plain) yield piece as Buffer
  } finally {
    source.destroy()
  }
}

async function* piecesOf(disk: UpdateDisk, path: string): AsyncGenerator<Uint8Array> {
  for (let from = 0; ; ) {
    const piece = await disk.readPart(path, from, pieceBytes)
    if (piece.length === 0) return
    yield piece
    from += piece.length
  }
}

/** Writes in pieces, and never more than `size` bytes. */
function archiveOutput(disk: UpdateDisk, path: string, size: number) {
  const hash = createHash('sha256')
  const piece = Buffer.alloc(pieceBytes)
  let filled = 0
  let total = 0
  const flush = async () => {
    const bytes = Buffer.from(piece.subarray(0, filled))
    filled = 0
    hash.update(bytes)
    if (bytes.length > 0) await disk.append(path, bytes)
  }
  return {
    async add(bytes: Uint8Array) {
      total += bytes.length
      if (total > size) throw new Error(`The delta gives more than the ${size} bytes that are signed`)
      for (let from = 0; from < bytes.length; ) {
        const part = bytes.subarray(from, from + pieceBytes - filled)
        piece.set(part, filled)
        filled += part.length
        from += part.length
        if (filled === pieceBytes) await flush()
      }
    },
    /** The digest of all that was added. */
    async end(): Promise<string> {
      await flush()
      return hash.digest('hex')
    },
  }
}

/** Reads up to the end of a piece of the base; the pieces that were read last are kept. */
function keptReads(base: InstalledArchive) {
  const kept = new Map<number, Uint8Array>()
  return async (from: number, most: number): Promise<Uint8Array> => {
    const begin = from - (from % pieceBytes)
    const piece = kept.get(begin) ?? (await base.read(begin, pieceBytes))
    kept.delete(begin)
    kept.set(begin, piece)
    const [oldest] = kept.keys()
    if (kept.size > keptPieces && oldest !== undefined) kept.delete(oldest)
    return piece.subarray(from - begin, from - begin + most)
  }
}

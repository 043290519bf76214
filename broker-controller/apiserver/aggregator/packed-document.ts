/**
 * A document that few clients read and that does not change: kept as gzip, a tenth of its size. It is written and packed in pieces, with
 * other work of the event loop in between.
 */
import { createHash } from 'node:crypto'
import { pipeline } from 'node:stream/promises'
import { promisify } from 'node:util'
import { createGzip, gunzip } from 'node:zlib'
import { systemClock } from '../../../daemon/clock.ts'
import { pauses } from '../handlers/turns.ts'

export type PackedDocument = {
  /** Hash of the bytes, or of what they are made from; clients keep the document under it. */
  readonly hash: string
  readonly gzip: Buffer
  /** Unpacked, and kept for a while for the next reader. */
  readonly bytes: () => Promise<Buffer>
}

const unpack = promisify(gunzip)
/** Clients that do not take gzip may come at once, after a change of the kinds. */
const unpackedMs = 10_000
const sliceBytes = 256 * 1024

/** `hash`: undefined: that of the bytes. */
export async function packedDocument(
  pieces: Iterable<string | Buffer>,
  { hash, keptMs = unpackedMs }: { readonly hash?: string | undefined; readonly keptMs?: number } = {},
): Promise<PackedDocument> {
  const digest = createHash('sha256')
  const packed: Buffer[] = []
  await pipeline(
    async function* () {
      const pause = pauses(systemClock)
      for (const piece of pieces) {
        for (const slice of slicesOf(piece)) {
          digest.update(slice)
          yield slice
        }
        await pause()
      }
    },
    createGzip(),
    async (parts) => {
      for await (const part of parts) packed.push(part as Buffer)
    },
  )
  const gzip = Buffer.concat(packed)
  return { hash: hash ?? shortened(digest.digest('hex')), gzip, bytes: unpackedWhile(gzip, keptMs) }
}

function* slicesOf(piece: string | Buffer): Generator<Buffer> {
  const bytes = typeof piece === 'string' ? Buffer.from(piece) : piece
  for (let start = 0; start < bytes.length; start += sliceBytes) yield bytes.subarray(start, start + sliceBytes)
}

/** One copy for all who read it within `keptMs`. */
function unpackedWhile(gzip: Buffer, keptMs: number): () => Promise<Buffer> {
  let present: Promise<Buffer> | undefined
  const forget = () => {
    present = undefined
  }
  return () => {
    if (present === undefined) {
      present = unpack(gzip)
      present.then(() => setTimeout(forget, keptMs).unref(), forget)
    }
    return present
  }
}

/** As clients name a document by its bytes. */
export function hashOf(content: Buffer | string): string {
  return shortened(createHash('sha256').update(content).digest('hex'))
}

function shortened(digest: string): string {
  return digest.slice(0, 32).toUpperCase()
}

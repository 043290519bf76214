/** Archives are compressed by the least effort of gzip: every machine has it, and a small processor keeps up with its disk. */
import { once } from 'node:events'
import { createGunzip, createGzip } from 'node:zlib'
import { codeOf } from '../../../../daemon/errors.ts'
import type { Pieces, SendPiece } from '../../../pods/volumes/volume-backups.ts'
import { VolumeError } from '../../../pods/volumes/volume-store.ts'

/** What `produce` writes is given to `send`, compressed. */
export async function compressing(send: SendPiece, produce: (write: SendPiece) => Promise<void>): Promise<void> {
  const gzip = createGzip({ level: 1 })
  const passing = (async () => {
    for await (const piece of gzip) await send(piece as Buffer)
  })()
  passing.catch(() => undefined)
  try {
    await produce(async (piece) => {
      if (!gzip.write(piece)) await Promise.race([once(gzip, 'drain'), passing])
    })
    gzip.end()
    await passing
  } finally {
    gzip.destroy()
  }
}

/** `most`: bytes that may come out of it together; more is not what was compressed. */
export function decompressed(next: Pieces, most: number): { readonly next: Pieces; end(): void } {
  const gunzip = createGunzip()
  const closed = new Promise((resolve) => gunzip.once('close', resolve))
  const feed = async () => {
    for (let piece = await next(); piece !== undefined; piece = await next()) {
      if (gunzip.destroyed) return
      if (!gunzip.write(piece)) await Promise.race([once(gunzip, 'drain'), closed])
    }
    gunzip.end()
  }
  feed().catch((error: unknown) => gunzip.destroy(error instanceof Error ? error : new Error(String(error))))
  const pieces = gunzip[Symbol.asyncIterator]()
  let bytes = 0
  return {
    async next() {
      const { done, value } = await pieces.next().catch((error: unknown) => {
        if (!codeOf(error).startsWith('Z_')) throw error
        throw new VolumeError('the archive is damaged: it is not what gzip wrote', { cause: error })
      })
      if (done === true) return undefined
      const piece = value as Buffer
      bytes += piece.length
      if (bytes > most) throw new VolumeError(`the archive has more than the ${most} bytes that its manifest names`)
      return piece
    },
    end: () => void gunzip.destroy(),
  }
}

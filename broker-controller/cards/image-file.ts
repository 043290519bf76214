/** Images of cards as files: taken out of .xz, and put into it, by the program xz. No image is ever in memory. */
import { spawn } from 'node:child_process'
import { createHash } from 'node:crypto'
import { createReadStream } from 'node:fs'
import { type FileHandle, open } from 'node:fs/promises'
import type { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { codeOf } from '../../daemon/errors.ts'
import { type PartitionTable, readPartitionTable } from './partition-table.ts'

export type CardImageNeeds = {
  readonly signal: AbortSignal
  /** Called once for each tenth that is done. */
  readonly progress: (text: string) => void
}

/** More than any card for a Raspberry Pi that an image is made for. An .xz of zeros can claim any size. */
const maxImageBytes = 64 * 2 ** 30
const zeros = Buffer.alloc(65_536)
/** Files of others that are not images, by their first bytes. */
const compressed: readonly (readonly [name: string, start: Buffer])[] = [
  ['zip', Buffer.from('PK\x03\x04', 'latin1')],
  ['gzip', Buffer.from([0x1f, 0x8b])],
  ['zstd', Buffer.from([0x28, 0xb5, 0x2f, 0xfd])],
  ['bzip2', Buffer.from('BZh')],
]
const xzStart = Buffer.from([0xfd, 0x37, 0x7a, 0x58, 0x5a, 0])

/** Writes the image at `path` to the empty file `to`, with holes for zeros. Throws if it is not the image of a card, before it is read to its end. */
export async function unpackImage(path: string, to: FileHandle, needs: CardImageNeeds): Promise<PartitionTable> {
  const start = await firstBytes(path)
  const other = compressed.find(([, mark]) => start.subarray(0, mark.length).equals(mark))
  if (other !== undefined) throw new Error(`${path} is compressed with ${other[0]}: decompress it, or use the .img.xz`)
  const file = createReadStream(path, { highWaterMark: 1 << 20, signal: needs.signal })
  const isXz = start.subarray(0, xzStart.length).equals(xzStart)
  const unpack = ['--decompress', '--memlimit-decompress=1GiB']
  const source = isXz ? throughXz(file, unpack, `Cannot decompress ${path}`, needs.signal) : file
  return copyImage(path, source as AsyncIterable<Buffer>, to, needs)
}

async function copyImage(
  path: string,
  source: AsyncIterable<Buffer>,
  to: FileHandle,
  { progress }: CardImageNeeds,
): Promise<PartitionTable> {
  let table: PartitionTable | undefined
  let head = Buffer.alloc(0)
  let [total, tenths] = [0, 0]
  const write = async (bytes: Buffer) => {
    await writeWithHoles(to, bytes, total)
    total += bytes.length
    if (total > maxImageBytes) throw new Error(`${path} has more than ${maxImageBytes} bytes`)
    if (table === undefined) return
    const done = Math.min(10, Math.floor((total / table.end) * 10))
    if (done > tenths) progress(`read ${done * 10} %`)
    tenths = done
  }
  for await (const chunk of source) {
    if (table !== undefined) {
      await write(chunk)
      continue
    }
    head = Buffer.concat([head, chunk])
    if (head.length < 512) continue
    table = tableOf(path, head)
    await write(head)
  }
  if (table === undefined) throw new Error(`${path} is shorter than a sector`)
  if (total < table.end) {
    throw new Error(
      `${path} is cut off: it has ${total} of the ${table.end} bytes that its partitions need. Download it again`,
    )
  }
  await to.truncate(total)
  return table
}

function tableOf(path: string, head: Buffer): PartitionTable {
  const table = readPartitionTable(head)
  if (typeof table === 'string') throw new Error(`${path} ${table}`)
  return table
}

/** An image is mostly zeros: where a whole block is zero, nothing is written. */
async function writeWithHoles(to: FileHandle, bytes: Buffer, position: number): Promise<void> {
  for (let at = 0; at < bytes.length; ) {
    let end = at
    const isZero = (from: number) => {
      const block = bytes.subarray(from, from + zeros.length)
      return block.equals(zeros.subarray(0, block.length))
    }
    const isHole = isZero(at)
    while (end < bytes.length && isZero(end) === isHole) end = Math.min(bytes.length, end + zeros.length)
    for (let done = at; !isHole && done < end; ) {
      done += (await to.write(bytes, done, end - done, position + done)).bytesWritten
    }
    at = end
  }
}

/** The digest of the image, in hexadecimal. */
export async function digestImage(path: string, signal: AbortSignal): Promise<{ readonly sha256: string }> {
  const digest = createHash('sha256')
  for await (const chunk of createReadStream(path, { highWaterMark: 1 << 20, signal })) digest.update(chunk)
  return { sha256: digest.digest('hex') }
}

/** From its first byte to before its end, of an image of this size. */
export type ImageRange = { readonly start: number; readonly end: number; readonly size: number }

/** Compresses a part of the image at `path` to where the file `to` ends. The digest of the part, and the bytes that were written. */
export async function packImage(
  path: string,
  to: FileHandle,
  { start, end, size }: ImageRange,
  needs: CardImageNeeds,
): Promise<{ readonly sha256: string; readonly packedBytes: number }> {
  const digest = createHash('sha256')
  let total = start
  let tenths = Math.floor((total / size) * 10)
  let packedBytes = 0
  const file = createReadStream(path, { start, end: end - 1, highWaterMark: 1 << 20, signal: needs.signal })
  file.on('data', (chunk) => {
    digest.update(chunk)
    total += chunk.length
    const done = Math.floor((total / size) * 10)
    if (done > tenths) needs.progress(`compressed ${done * 10} %`)
    tenths = done
  })
  const packed = throughXz(file, ['--compress', '--threads=0', '-3'], `Cannot compress ${path}`, needs.signal)
  for await (const chunk of packed) {
    await to.writeFile(chunk)
    packedBytes += chunk.length
  }
  return { sha256: digest.digest('hex'), packedBytes }
}

async function firstBytes(path: string): Promise<Buffer> {
  const file = await open(path, 'r').catch((cause: unknown) => {
    throw new Error(`Cannot read ${path}`, { cause })
  })
  try {
    const bytes = Buffer.alloc(8)
    await file.read(bytes, 0, 8, 0)
    return bytes
  } finally {
    await file.close()
  }
}

/** What xz makes of `input`. Throws with `failure` and xz's own reason, also where that comes after the last byte. */
async function* throughXz(
  input: Readable,
  options: readonly string[],
  failure: string,
  signal: AbortSignal,
): AsyncGenerator<Buffer> {
  const xz = spawn('xz', ['--stdout', '--quiet', ...options], { stdio: 'pipe', signal })
  let reason = ''
  xz.stderr.setEncoding('utf8').on('data', (text: string) => {
    reason = (reason + text).slice(0, 1000)
  })
  const ended = new Promise<number | null>((resolve, reject) => {
    xz.on('error', reject)
    xz.on('close', resolve)
  })
  ended.catch(() => undefined) // It is awaited below.
  const fed = pipeline(input, xz.stdin).catch((error: unknown) => error)
  try {
    yield* xz.stdout as AsyncIterable<Buffer>
    const code = await ended
    // xz that ends closes the pipe: then the reason is its own.
    const unread = codeOf(await fed)
    if (unread !== '' && unread !== 'EPIPE') throw await fed
    if (code !== 0) throw new Error(reason.trim().replace(/^xz: /, '') || `xz ended with status ${code}`)
  } catch (cause) {
    if (codeOf(cause) === 'ENOENT')
      throw new Error(`${failure}: the program xz is missing. Install it: apt install xz-utils`)
    throw new Error(failure, { cause })
  } finally {
    xz.kill()
    input.destroy()
  }
}

/**
 * `lossy-disk.js IMAGE FOLDER SEED COMMAND…`: serves IMAGE as the file FOLDER/disk, a disk that loses what was not flushed when its power is
 * cut. Then runs COMMAND, which mounts it by a loop device, and prints `mounted`. The line `lose` on standard input cuts the power: it prints
 * `lost` when nothing reaches IMAGE any more. The process ends when nothing uses the disk any more. It has a name space of mounts of its own.
 *
 * A FUSE file system with one file: the loop device turns each flush of the file system on it into FUSE_FSYNC (drivers/block/loop.c,
 * lo_req_flush). Structures and numbers are those of include/uapi/linux/fuse.h.
 */
import { type StdioOptions, spawn } from 'node:child_process'
import { closeSync, constants, fstatSync, openSync, read, writeSync } from 'node:fs'
import { mkdir } from 'node:fs/promises'
import { promisify } from 'node:util'
import { seededRandom } from '../../../daemon/testing/seeded-random.ts'
import { volatileBlocks } from './volatile-blocks.ts'

const operations = {
  ...{
    lookup: 1,
    forget: 2,
    getattr: 3,
    setattr: 4,
    open: 14,
    read: 15,
    write: 16,
    statfs: 17,
    release: 18,
    fsync: 20,
  },
  ...{ flush: 25, init: 26, opendir: 27, readdir: 28, releasedir: 29, interrupt: 36, batchForget: 42 },
} as const
const ENOENT = 2
const ENOSYS = 38
const [rootInode, diskInode] = [1n, 2n]
const [asyncRead, bigWrites, maxPages] = [1, 1 << 5, 1 << 22]
const mostBytes = 1 << 20
const pageBytes = 4096
const aYear = 31_536_000n

const [image = '', folder = '', seed = '1', ...command] = process.argv.slice(2)
const medium = openSync(image, 'r+')
const { size } = fstatSync(medium)
const blocks = volatileBlocks(medium, size, seededRandom(Number(seed)))
const device = openSync('/dev/fuse', constants.O_RDWR)
const readDevice = promisify(read)
let isLost = false

await mkdir(folder, { recursive: true })
const options = 'fd=3,rootmode=40000,user_id=0,group_id=0,default_permissions'
await run(['mount', '--internal-only', '-t', 'fuse', '-o', options, 'lossy-disk', folder], [device])
const serving = serve()
process.stdin.on('data', () => {
  isLost = true
  blocks.losePower()
  console.log('lost')
})
await run(command)
console.log('mounted')
await serving
process.stdin.destroy()
closeSync(device)

/** Until the file system is unmounted: read then fails with ENODEV. */
async function serve(): Promise<void> {
  const buffer = Buffer.alloc(mostBytes + pageBytes)
  for (;;) {
    let bytes: number
    try {
      ;({ bytesRead: bytes } = await readDevice(device, buffer, 0, buffer.length, null))
    } catch (error) {
      const code = error instanceof Error && 'code' in error ? error.code : undefined
      if (code === 'ENODEV') return
      // The caller was killed before its request was read.
      if (code === 'ENOENT' || code === 'EINTR' || code === 'EAGAIN') continue
      throw error
    }
    answer(buffer.subarray(0, bytes))
  }
}

function answer(request: Buffer): void {
  const operation = request.readUInt32LE(4)
  const none: readonly number[] = [operations.forget, operations.batchForget, operations.interrupt]
  if (none.includes(operation)) return
  const body = contentOf(operation, request)
  const head = Buffer.alloc(16)
  head.writeUInt32LE(16 + (typeof body === 'number' ? 0 : body.length), 0)
  head.writeInt32LE(typeof body === 'number' ? -body : 0, 4)
  request.copy(head, 8, 8, 16)
  try {
    writeSync(device, typeof body === 'number' ? head : Buffer.concat([head, body]))
  } catch (error) {
    // ENOENT: the caller was killed meanwhile.
    if (!(error instanceof Error && 'code' in error && error.code === 'ENOENT')) throw error
  }
  // Its last user is gone, and it has no power.
  if (operation === operations.release && isLost) void run(['umount', '--lazy', folder])
}

/** A number is the code of an error. */
function contentOf(operation: number, request: Buffer): Buffer | number {
  const inode = request.readBigUInt64LE(16)
  switch (operation) {
    case operations.init:
      return initialized(request)
    case operations.lookup: {
      if (request.subarray(40, request.indexOf(0, 40)).toString() !== 'disk') return ENOENT
      const entry = Buffer.alloc(40)
      for (const [index, value] of [diskInode, 0n, aYear, aYear].entries()) entry.writeBigUInt64LE(value, index * 8)
      return Buffer.concat([entry, attributes(diskInode)])
    }
    case operations.getattr:
    case operations.setattr: {
      const valid = Buffer.alloc(16)
      valid.writeBigUInt64LE(aYear, 0)
      return Buffer.concat([valid, attributes(inode)])
    }
    case operations.open:
    case operations.opendir:
      return Buffer.alloc(16)
    case operations.read:
      return blocks.read(Number(request.readBigUInt64LE(48)), request.readUInt32LE(56))
    case operations.write: {
      const bytes = request.readUInt32LE(56)
      blocks.write(Number(request.readBigUInt64LE(48)), request.subarray(80, 80 + bytes))
      const written = Buffer.alloc(8)
      written.writeUInt32LE(bytes, 0)
      return written
    }
    case operations.fsync:
      blocks.flush()
      return Buffer.alloc(0)
    case operations.statfs:
      return Buffer.alloc(80)
    case operations.flush:
    case operations.release:
    case operations.readdir:
    case operations.releasedir:
      return Buffer.alloc(0)
    default:
      return ENOSYS
  }
}

function attributes(inode: bigint): Buffer {
  const found = Buffer.alloc(88)
  found.writeBigUInt64LE(inode, 0)
  found.writeBigUInt64LE(BigInt(size), 8)
  found.writeBigUInt64LE(BigInt(size / 512), 16)
  found.writeUInt32LE(inode === rootInode ? 0o40755 : 0o100600, 60)
  found.writeUInt32LE(1, 64)
  found.writeUInt32LE(pageBytes, 80)
  return found
}

function initialized(request: Buffer): Buffer {
  const reply = Buffer.alloc(64)
  request.copy(reply, 0, 40, 48) // major and minor version
  reply.writeUInt32LE(mostBytes, 8) // max_readahead
  reply.writeUInt32LE(asyncRead | bigWrites | maxPages, 12)
  reply.writeUInt32LE(mostBytes, 20) // max_write
  reply.writeUInt16LE(mostBytes / pageBytes, 28) // max_pages
  return reply
}

/** `descriptors`: its descriptors from 3 on. */
async function run([file = '', ...args]: readonly string[], descriptors: readonly number[] = []): Promise<void> {
  const stdio: StdioOptions = ['ignore', 'inherit', 'inherit', ...descriptors]
  const code = await new Promise((resolve, reject) => {
    const child = spawn(file, args, { stdio })
    child.once('error', reject)
    child.once('exit', resolve)
  })
  if (code !== 0) throw new Error(`${file} ${args.join(' ')} ended with status ${code}`)
}

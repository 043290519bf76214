/**
 * A FUSE file system that does not answer, as a network file system whose server is gone. Without reading its requests it leaves
 * callers that SIGKILL ends, as NFS does; with `reads` it reads each request and does not answer it: callers stay in uninterruptible
 * sleep (fs/fuse/dev.c, request_wait_answer), as with cifs. `answer` is the return of the server: it then is an empty folder.
 * Needs root and /dev/fuse.
 */
import { spawn } from 'node:child_process'
import { closeSync, constants, existsSync, openSync, readSync, writeSync } from 'node:fs'
import { mkdir } from 'node:fs/promises'
import { unmount } from '../adapters/disk/mounts.ts'

type Ending = { teardown(end: () => unknown): void }

export const noFuse = existsSync('/dev/fuse') ? false : 'this kernel has no /dev/fuse'

export type HungFilesystem = {
  /** Answers what was asked so far, and from now on everything. */
  answer(): void
  /** From now on it answers nothing. */
  hang(): void
}

export async function mountHung(
  t: Ending,
  path: string,
  { reads }: { readonly reads: boolean },
): Promise<HungFilesystem> {
  await mkdir(path, { recursive: true })
  const device = openSync('/dev/fuse', constants.O_RDWR | constants.O_NONBLOCK)
  let isOpen = true
  // The end of the connection ends all calls with ENOTCONN.
  t.teardown(async () => {
    isOpen = false
    closeSync(device)
    await unmount(path)
  })
  const options = 'fd=3,rootmode=40000,user_id=0,group_id=0,allow_other'
  const code = await new Promise((resolve, reject) => {
    const stdio = ['ignore', 'inherit', 'inherit', device] as const
    const child = spawn('mount', ['--internal-only', '-t', 'fuse', '-o', options, 'nas:/export', path], {
      stdio: [...stdio],
    })
    child.once('error', reject)
    child.once('exit', resolve)
  })
  if (code !== 0) throw new Error(`mount of FUSE at ${path} ended with status ${code}`)
  const buffer = Buffer.alloc(256 * 1024)
  let unanswered: Buffer[] = []
  let isAnswering = false
  /** Reads what was asked, without blocking: EAGAIN means that there is nothing. */
  const readAll = () => {
    for (;;) {
      if (!isOpen) return
      try {
        const bytes = readSync(device, buffer)
        unanswered.push(Buffer.from(buffer.subarray(0, bytes)))
      } catch {
        return
      }
    }
  }
  const turn = () => {
    if (reads || isAnswering) readAll()
    if (isAnswering && isOpen) {
      for (const request of unanswered) answerTo(request, device)
      unanswered = []
    }
    if (isOpen) setTimeout(turn, 5).unref()
  }
  if (reads) {
    readSync(device, buffer)
    writeSync(device, initialized(buffer))
  }
  turn()
  return {
    answer() {
      isAnswering = true
    },
    hang() {
      isAnswering = false
    },
  }
}

const opcodes = { lookup: 1, forget: 2, getattr: 3, statfs: 17, init: 26, opendir: 27, readdir: 28 } as const
const codes = { ENOENT: 2, ENOSYS: 38 } as const

type Answer = { readonly code: number; readonly body: Buffer }

function answerTo(request: Buffer, device: number): void {
  const opcode = request.readUInt32LE(4)
  if (opcode === opcodes.forget) return // it has no answer
  if (opcode === opcodes.init) {
    writeSync(device, initialized(request))
    return
  }
  const { code, body } = answerOf(opcode)
  const head = Buffer.alloc(16)
  head.writeUInt32LE(16 + body.length, 0)
  head.writeInt32LE(-code, 4)
  request.copy(head, 8, 8, 16)
  try {
    writeSync(device, Buffer.concat([head, body]))
  } catch {
    // ENOENT: the caller was killed meanwhile.
  }
}

/** Structures of include/uapi/linux/fuse.h. */
function answerOf(opcode: number): Answer {
  switch (opcode) {
    case opcodes.getattr: {
      const body = Buffer.alloc(16 + 88)
      body.writeBigUInt64LE(1n, 16) // inode 1
      body.writeUInt32LE(0o40755, 16 + 60) // mode
      body.writeUInt32LE(2, 16 + 64) // links
      return { code: 0, body }
    }
    case opcodes.statfs: {
      const body = Buffer.alloc(80)
      for (const [index, value] of [100n, 60n, 50n, 10n, 4n].entries()) body.writeBigUInt64LE(value, index * 8)
      for (const [index, value] of [4096, 255, 4096].entries()) body.writeUInt32LE(value, 40 + index * 4)
      return { code: 0, body }
    }
    case opcodes.opendir:
      return { code: 0, body: Buffer.alloc(16) }
    case opcodes.readdir:
      return { code: 0, body: Buffer.alloc(0) }
    default:
      return { code: opcode === opcodes.lookup ? codes.ENOENT : codes.ENOSYS, body: Buffer.alloc(0) }
  }
}

/** The answer to FUSE_INIT (include/uapi/linux/fuse.h, fuse_out_header and fuse_init_out of 64 bytes). */
function initialized(request: Buffer): Buffer {
  const answer = Buffer.alloc(16 + 64)
  answer.writeUInt32LE(answer.length, 0)
  request.copy(answer, 8, 8, 16) // unique
  request.copy(answer, 16, 40, 48) // major and minor version
  answer.writeUInt32LE(4096, 16 + 20) // max_write
  return answer
}

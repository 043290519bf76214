/**
 * A FUSE file system that does not answer, as a network file system whose server is gone. Without reading its requests it leaves
 * callers that SIGKILL ends, as NFS does; with `reads` it reads each request and does not answer it: callers stay in uninterruptible
 * sleep (fs/fuse/dev.c, request_wait_answer), as with cifs. Needs root and /dev/fuse.
 */
import { spawn } from 'node:child_process'
import { closeSync, constants, existsSync, openSync, readSync, writeSync } from 'node:fs'
import { mkdir } from 'node:fs/promises'
import { unmount } from '../adapters/disk/mounts.ts'

type Ending = { teardown(end: () => unknown): void }

export const noFuse = existsSync('/dev/fuse') ? false : 'this kernel has no /dev/fuse'

export async function mountHung(t: Ending, path: string, { reads }: { readonly reads: boolean }): Promise<void> {
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
  if (!reads) return
  const request = Buffer.alloc(256 * 1024)
  readSync(device, request)
  writeSync(device, initialized(request))
  const readNext = () => {
    if (!isOpen) return
    try {
      readSync(device, request)
    } catch {
      // EAGAIN: there is none.
    }
    setTimeout(readNext, 5).unref()
  }
  readNext()
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

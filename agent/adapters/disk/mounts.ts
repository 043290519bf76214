/** The kernel's mounts: what is mounted, and to mount and unmount. Node cannot, so mount(8) and umount(8) do. */
import { execFile } from 'node:child_process'
import { readFile } from 'node:fs/promises'
import { promisify } from 'node:util'
import { VolumeError } from '../../pods/volumes/volume-store.ts'
import { unescapedPath } from '../kernel/kernel-files.ts'

const run = promisify(execFile)
const deadlineMs = 10_000

export type MountPoint = { readonly path: string; readonly type: string }

/** Of this process, in the order they were made. */
export async function mountPoints(): Promise<readonly MountPoint[]> {
  const lines = (await readFile('/proc/self/mountinfo', 'utf8')).split('\n')
  return lines.flatMap((line) => {
    const [before = '', after = ''] = line.split(' - ')
    const path = before.split(' ')[4]
    return path === undefined ? [] : [{ path: unescapedPath(path), type: after.split(' ')[0] ?? '' }]
  })
}

/** The folder itself, and what is mounted below it. */
export function mountsAt(points: readonly MountPoint[], folder: string): readonly MountPoint[] {
  return points.filter(({ path }) => path === folder || path.startsWith(`${folder}/`))
}

export async function mountMemory(path: string, options: readonly string[]): Promise<void> {
  await act(['mount', '-t', 'tmpfs', '-o', options.join(','), 'bramble', path], `Cannot mount memory at ${path}`)
}

/** `source` is taken as it stands: links in it are the kernel's to follow. */
export async function mountBind(source: string, path: string): Promise<void> {
  await act(['mount', '--no-canonicalize', '--bind', source, path], `Cannot mount a part of a volume at ${path}`)
}

/** Even while it is in use: it is then gone after its last use. */
export async function unmount(path: string): Promise<void> {
  await act(['umount', '--lazy', '--no-canonicalize', path], `Cannot unmount ${path}`)
}

async function act([command = '', ...args]: readonly string[], tried: string): Promise<void> {
  try {
    await run(command, args, { timeout: deadlineMs, killSignal: 'SIGKILL' })
  } catch (cause) {
    const { stderr } = (typeof cause === 'object' && cause !== null ? cause : {}) as { readonly stderr?: unknown }
    throw new VolumeError(`${tried}: ${String(stderr || cause).trim()}`, { cause })
  }
}

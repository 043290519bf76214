/**
 * The disk of a test machine: a Debian root with what the machine writes above it. It is mounted in a name space that ends with a process
 * of its own, so that no mount is ever left behind.
 */
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdir, truncate, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { createInterface, type Interface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import { commandOrThrow } from './machine-commands.ts'

/** `seed`: decides which blocks that were not flushed are on the disk after a cut. */
export type LossyDisk = { readonly mebibytes: number; readonly seed: number }

export type MachineDisk = {
  /** PID of the process that holds the mounts. */
  readonly holder: number
  /** Where the root of the machine is in that name space, and the folder of its Docker. */
  readonly root: string
  readonly docker: string
  /** Makes what was written so far durable. */
  sync(): Promise<void>
  /** The power is cut: nothing reaches the disk any more. */
  losePower(): Promise<void>
  /** Mounts it again as it was when its power was cut; nothing may use it. */
  mountAgain(): Promise<void>
  remove(): Promise<void>
}

const server = fileURLToPath(new URL('./lossy-disk/lossy-disk.js', import.meta.url))
/** The data of files is written before the metadata that refers to it, as by default; not to be filled in the background. */
const filesystem = ['-q', '-F', '-m', '0', '-E', 'lazy_itable_init=0,lazy_journal_init=0,nodiscard']

/**
 * `root`: of Debian. `folder`: of this machine alone. `lossy`: it loses what was not flushed when its power is cut; the disk of a machine without
 * this loses nothing, as the page cache is that of this host.
 */
export async function machineDisk(root: string, folder: string, lossy?: LossyDisk): Promise<MachineDisk> {
  const own = lossy === undefined ? folder : join(folder, 'own')
  const image = join(folder, 'image')
  await mkdir(join(folder, 'disk'))
  if (lossy === undefined) {
    for (const one of ['upper', 'work', 'docker']) await mkdir(join(folder, one))
  } else {
    await mkdir(own)
    await writeFile(image, '')
    await truncate(image, lossy.mebibytes * 2 ** 20)
    await commandOrThrow('mkfs.ext4', [...filesystem, image])
  }
  const layers = `lowerdir=${root},upperdir=${join(own, 'upper')},workdir=${join(own, 'work')}`
  const overlay = ['mount', '-t', 'overlay', 'overlay', '-o', layers, join(folder, 'disk')].join(' ')
  let mounts = 0
  const mount = () => {
    mounts++
    if (lossy === undefined) return held(['sh', '-c', `${overlay} && echo mounted && exec sleep infinity`])
    const below = `mount -o loop ${join(folder, 'fuse', 'disk')} ${own} && mkdir -p ${own}/upper ${own}/work ${own}/docker`
    const seed = String(lossy.seed + mounts)
    return held([process.execPath, server, image, join(folder, 'fuse'), seed, 'sh', '-c', `${below} && ${overlay}`])
  }
  let holder = await mount()
  const inside = (...command: readonly string[]) =>
    commandOrThrow('nsenter', [`--mount=/proc/${holder.child.pid}/ns/mnt`, ...command])
  const losePower = async () => {
    if (lossy !== undefined) await holder.send('lose', 'lost')
  }
  return {
    get holder() {
      return holder.child.pid ?? 0
    },
    root: join(folder, 'disk'),
    docker: join(own, 'docker'),
    async sync() {
      await inside('sync', '--file-system', own)
    },
    losePower,
    async mountAgain() {
      if (lossy === undefined) return
      await inside('umount', join(folder, 'disk'))
      await inside('umount', own)
      await ended(holder.child)
      holder = await mount()
    },
    async remove() {
      // With its power on, the file system on it would report errors of the disk to the kernel's log.
      if (lossy !== undefined && holder.child.exitCode === null) {
        await losePower()
        await inside('umount', '--lazy', join(folder, 'disk'), own).catch(() => undefined)
      } else holder.child.kill('SIGKILL')
      await ended(holder.child)
    },
  }
}

type Holder = {
  readonly child: ChildProcess
  /** Writes a line, and waits for another. */
  send(line: string, reply: string): Promise<void>
}

/** A process with a name space of mounts of its own, which dies with this one. Has printed `mounted`. */
async function held(command: readonly string[]): Promise<Holder> {
  const child = spawn(
    'setpriv',
    ['--pdeathsig', 'KILL', 'unshare', '--mount', '--propagation', 'private', ...command],
    { stdio: ['pipe', 'pipe', 'inherit'] },
  )
  const lines = createInterface({ input: child.stdout })
  child.stdin.on('error', () => undefined)
  await printed(child, lines, 'mounted')
  return {
    child,
    async send(line, reply) {
      const replied = printed(child, lines, reply)
      child.stdin.write(`${line}\n`)
      await replied
    },
  }
}

async function printed(child: ChildProcess, lines: Interface, wanted: string): Promise<void> {
  const stop = new AbortController()
  const { signal } = stop
  const exit = once(child, 'exit', { signal }).then(() => 'it ended')
  const [found] = await Promise.race([once(lines, 'line', { signal }), exit.then((what) => [what])])
  stop.abort()
  await exit.catch(() => undefined)
  if (found !== wanted) throw new Error(`The disk of a machine cannot be used: ${String(found)} instead of "${wanted}"`)
}

async function ended(child: ChildProcess): Promise<void> {
  if (child.exitCode === null && child.signalCode === null) await once(child, 'exit')
}

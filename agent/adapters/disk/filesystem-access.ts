/** FilesystemAccess on the kernel: mounts, error counters, and probes of the data directory. */
import { readFileSync, realpathSync } from 'node:fs'
import { open, readlink, statfs, unlink } from 'node:fs/promises'
import { basename, join } from 'node:path'
import { onceAtATime, within } from '../../../daemon/deadline.ts'
import { codeOf, messageOf } from '../../../daemon/errors.ts'
import type { FilesystemAccess, MountReading } from '../../health/filesystem-watch.ts'
import { textOf, unescapedPath } from '../kernel/kernel-files.ts'

const answerMs = 3_000

/** `root`: `/`, or a saved tree. */
export function filesystemAccess(root: string, dataDirectory: string): FilesystemAccess {
  const countersOf = new Map<string, string>()
  const query = onceAtATime((path) => failureOf(statfs(path)))
  const write = onceAtATime((path) => failureOf(writeAndRemove(join(path, '.write-probe'))))
  let last: { readonly mountinfo: string; readonly mounts: Mounts } | undefined
  /** Parsed only after a change: a machine with many containers has hundreds of mounts, and they change rarely. */
  const currentMounts = (): Mounts => {
    const mountinfo = readFileSync(join(root, 'proc/self/mountinfo'), 'utf8')
    if (last?.mountinfo !== mountinfo) {
      const table = mountinfo.split('\n')
      const dataPath = realpathOf(dataDirectory)
      last = {
        mountinfo,
        mounts: { dataPath, dataMount: mountOf(table, dataPath), rootMount: mountOf(table, '/') },
      }
    }
    return last.mounts
  }

  return {
    async mounts() {
      const { dataPath, dataMount, rootMount } = currentMounts()
      const read = async (mount: Mount | undefined): Promise<MountReading | undefined> =>
        mount && { ...mount, errors: await errorsOf(root, mount, countersOf) }
      return {
        data: await read(dataMount),
        root: await read(rootMount),
        dataPath,
        fstab: textOf(join(root, 'etc/fstab')) ?? '',
      }
    },
    query: () => within(answerMs, 'it does not answer', query(dataDirectory)).catch(messageOf),
    writeProbe: () => within(answerMs, 'a write does not end', write(dataDirectory)).catch(messageOf),
  }
}

/** Only errors of the device: a full disk, or a missing or foreign folder, is not one. */
async function failureOf(work: Promise<unknown>): Promise<string | undefined> {
  try {
    await work
    return undefined
  } catch (error) {
    return diskErrors.has(codeOf(error)) ? messageOf(error) : undefined
  }
}

const diskErrors: ReadonlySet<string> = new Set(['EIO', 'EROFS', 'ENXIO', 'EUCLEAN', 'ESHUTDOWN', 'ENODEV'])

async function writeAndRemove(path: string): Promise<void> {
  const file = await open(path, 'w', 0o600)
  try {
    await file.writeFile('x')
    await file.sync()
  } finally {
    await file.close()
  }
  await unlink(path)
}

type Mounts = {
  /** The data directory with symbolic links resolved. */
  readonly dataPath: string
  readonly dataMount: Mount | undefined
  readonly rootMount: Mount | undefined
}

type Mount = Omit<MountReading, 'errors'> & { readonly type: string }

/**
 * The mount that holds `path`, by proc_pid_mountinfo(5): the one with the longest matching path; of several at one place the last
 * hides the others. A machine has at least one mount for each container, so only matching lines are parsed.
 */
function mountOf(mountinfo: readonly string[], path: string): Mount | undefined {
  let longest = 0
  let found: string | undefined
  for (const line of mountinfo) {
    const point = unescapedPath(line.split(' ', 5)[4] ?? '')
    if (point === '' || point.length < longest) continue
    if (point !== '/' && point !== path && !path.startsWith(`${point}/`)) continue
    longest = point.length
    found = line
  }
  return found === undefined ? undefined : parsedMount(found)
}

function parsedMount(line: string): Mount | undefined {
  const [before = '', after = ''] = line.split(' - ')
  const [, , device, , path, options] = before.split(' ')
  const [type = '', source = '', superOptions = ''] = after.split(' ')
  if (device === undefined || path === undefined || options === undefined) return undefined
  // Since Linux 6.15 ext4 stays `rw` and has another option for having stopped writes.
  const words = [...options.split(','), ...superOptions.split(',')]
  const isReadOnly = words.some((word) => ['ro', 'emergency_ro', 'shutdown'].includes(word))
  return { path: unescapedPath(path), source: unescapedPath(source), device, type, isReadOnly }
}

/** `countersOf` caches the path of each device's counter: searching it took a tenth of the agent's CPU time at rest. */
async function errorsOf(
  root: string,
  { device, type }: Mount,
  countersOf: Map<string, string>,
): Promise<number | undefined> {
  if (type !== 'ext4') return undefined
  const known = countersOf.get(device)
  const count = numberIn(known) ?? numberIn(await counterOf(root, device, countersOf))
  if (count === undefined) countersOf.delete(device)
  return count
}

async function counterOf(root: string, device: string, countersOf: Map<string, string>): Promise<string | undefined> {
  const link = await readlink(join(root, 'sys/dev/block', device)).catch(() => undefined)
  if (link === undefined) return undefined
  const path = join(root, 'sys/fs/ext4', basename(link), 'errors_count')
  countersOf.set(device, path)
  return path
}

function numberIn(path: string | undefined): number | undefined {
  const text = path === undefined ? undefined : textOf(path)?.trim()
  return text === undefined || text === '' ? undefined : Number(text)
}

function realpathOf(path: string): string {
  try {
    return realpathSync(path)
  } catch {
    return path
  }
}

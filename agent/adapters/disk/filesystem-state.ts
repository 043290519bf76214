/**
 * How the filesystems we need are, by what the kernel says of them. Nothing is written to find out: only when there are signs
 * of trouble one small file is written, to see whether writes still arrive.
 */
import { readFileSync, realpathSync } from 'node:fs'
import { open, readlink, statfs, unlink } from 'node:fs/promises'
import { basename, join } from 'node:path'
import type { Clock } from '../../../daemon/clock.ts'
import { within } from '../../../daemon/deadline.ts'
import { type FilesystemReading, tellsOfDiskTrouble } from '../../health/filesystem.ts'
import type { KernelLog } from '../../health/kernel-log.ts'
import { textOf, unescapedPath } from '../kernel/kernel-files.ts'

export type FilesystemStateNeeds = {
  /** `/`, or a saved tree. */
  readonly root: string
  readonly dataDirectory: string
  readonly kernel: Pick<KernelLog, 'subscribe'>
  readonly clock: Clock
}

export interface FilesystemState {
  look(): Promise<readonly FilesystemReading[]>
}

const answerMs = 3_000
/** As long as trouble lasts; each is a write to what may be dying. */
const probeEveryMs = 30_000
/** Older lines of the kernel say nothing about now. */
const newsMs = 2 * 60_000

export function filesystemState({ root, dataDirectory, kernel, clock }: FilesystemStateNeeds): FilesystemState {
  const wasWritable = new Set<string>()
  const errorsBefore = new Map<string, number>()
  const countersOf = new Map<string, string>()
  let isSuspect = false
  let probedMs = Number.NEGATIVE_INFINITY
  let probeFailure: string | undefined
  let asking: Promise<string | undefined> | undefined
  let probing: Promise<string | undefined> | undefined

  kernel.subscribe(({ text, ageMs }) => {
    if (ageMs < newsMs && tellsOfDiskTrouble(text)) isSuspect = true
  })

  /** One question at a time: a filesystem that hangs holds a thread for each. */
  const ask = async (path: string): Promise<string | undefined> => {
    asking ??= statfs(path).then(
      () => undefined,
      (error: unknown) => (isDiskError(error) ? String(error) : undefined),
    )
    try {
      const failure = await within(answerMs, 'it does not answer', asking)
      asking = undefined
      return failure
    } catch (error) {
      return (error as Error).message
    }
  }

  const probeIfSuspect = async (isWritable: boolean) => {
    if (!isSuspect) return
    if (!isWritable) {
      probeFailure = undefined
      return
    }
    const nowMs = clock.monotonicMs()
    if (nowMs - probedMs < probeEveryMs) return
    probedMs = nowMs
    probing ??= writeProbe(dataDirectory).finally(() => {
      probing = undefined
    })
    probeFailure = await within(answerMs, 'a write does not end', probing).catch((error: Error) => error.message)
    isSuspect = probeFailure !== undefined
  }

  return {
    async look() {
      const mounts = readFileSync(join(root, 'proc/self/mountinfo'), 'utf8').split('\n')
      const configured = textOf(join(root, 'etc/fstab')) ?? ''
      const read = async (path: string, role: FilesystemReading['role']): Promise<FilesystemReading | undefined> => {
        const mount = mountOf(mounts, path)
        if (mount === undefined) return undefined
        const errors = await errorsOf(root, mount, countersOf)
        const before = errorsBefore.get(mount.device)
        if (errors !== undefined) errorsBefore.set(mount.device, errors)
        if (errors !== undefined && before !== undefined && errors > before) isSuspect = true
        if (!mount.isReadOnly) wasWritable.add(mount.path)
        const isMeantSo =
          role === 'root' && !wasWritable.has(mount.path) && (errors ?? 0) === 0 && isRootMeant(configured)
        return {
          role,
          path,
          device: mount.source,
          isReadOnly: mount.isReadOnly,
          isMeantSo,
          errors,
          failure: undefined,
        }
      }
      const folder = realpathOf(dataDirectory)
      const data = await read(folder, 'data directory')
      const first = await read('/', 'root')
      const isOne = mountOf(mounts, folder)?.path === '/'
      const [unreadable] = await Promise.all([ask(dataDirectory), probeIfSuspect(data?.isReadOnly === false)])
      const failure = unreadable ?? probeFailure
      return [
        ...(first === undefined ? [] : [isOne ? { ...first, isMeantSo: false, failure } : first]),
        ...(data === undefined || isOne ? [] : [{ ...data, failure }]),
      ]
    },
  }
}

type Mount = {
  readonly path: string
  readonly source: string
  /** `179:2` */
  readonly device: string
  readonly type: string
  readonly isReadOnly: boolean
}

/**
 * Where `path` is, by proc_pid_mountinfo(5): the mount with the longest way to it; of several at one place the last hides the
 * others. A machine has a mount or more for each container, so only those that matter are taken apart.
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
  // Since Linux 6.15 ext4 stays `rw` and says by another word that it writes no more.
  const words = [...options.split(','), ...superOptions.split(',')]
  const isReadOnly = words.some((word) => ['ro', 'emergency_ro', 'shutdown'].includes(word))
  return { path: unescapedPath(path), source: unescapedPath(source), device, type, isReadOnly }
}

/** `countersOf` remembers where each device's counter was found: the look for it took a tenth of the agent's time at rest. */
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

/** Without a line for it (images for read-only roots, containers) nobody expects to write there. */
function isRootMeant(fstab: string): boolean {
  const line = fstab.split('\n').find((text) => /^[^#\s]\S*\s+\/\s/.test(text))
  return line === undefined || (line.split(/\s+/)[3] ?? '').split(',').includes('ro')
}

async function writeProbe(folder: string): Promise<string | undefined> {
  const path = join(folder, '.write-probe')
  try {
    const file = await open(path, 'w', 0o600)
    try {
      await file.writeFile('x')
      await file.sync()
    } finally {
      await file.close()
    }
    await unlink(path)
    return undefined
  } catch (error) {
    return isDiskError(error) ? String((error as Error).message) : undefined
  }
}

/** A full disk, a folder that is gone or not ours is another matter. */
function isDiskError(error: unknown): boolean {
  const { code } = error as { readonly code?: unknown }
  return (
    code === 'EIO' ||
    code === 'EROFS' ||
    code === 'ENXIO' ||
    code === 'EUCLEAN' ||
    code === 'ESHUTDOWN' ||
    code === 'ENODEV'
  )
}

function realpathOf(path: string): string {
  try {
    return realpathSync(path)
  } catch {
    return path
  }
}

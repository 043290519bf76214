/**
 * The state of the filesystems that the agent writes to, as reported by the kernel. Only after signs of trouble does the agent
 * write a small file to check that writes still succeed. Decisions are pure steps over earlier readings.
 */
import type { Clock } from '../../daemon/clock.ts'
import { type FilesystemState, isDiskTrouble } from './filesystem.ts'
import type { KernelLine, KernelLog } from './kernel-log.ts'

export type MountReading = {
  /** The mount point. */
  readonly path: string
  /** `/dev/mmcblk0p2` */
  readonly source: string
  /** `179:2` */
  readonly device: string
  readonly isReadOnly: boolean
  /** Errors that the filesystem has counted since it was created; undefined where it does not count them. */
  readonly errors: number | undefined
}

export type MountsReading = {
  /** Undefined where the kernel shows no mounts. */
  readonly root: MountReading | undefined
  /** The mount that holds the data directory. */
  readonly data: MountReading | undefined
  /** The data directory with symbolic links resolved. */
  readonly dataPath: string
  /** The content of `/etc/fstab`. */
  readonly fstab: string
}

/** The disk operations of the watch. Every call ends within seconds. */
export interface FilesystemAccess {
  mounts(): Promise<MountsReading>
  /** Queries the filesystem of the data directory. Returns the reason of a failure; undefined on success. */
  query(): Promise<string | undefined>
  /**
   * Writes and removes one small file there. Returns the reason of a failure; undefined on success, or if the disk is not the
   * cause.
   */
  writeProbe(): Promise<string | undefined>
}

/** State from earlier readings. */
export type FilesystemHistory = {
  /** Mount points. */
  readonly wasWritable: ReadonlySet<string>
  /** By device. */
  readonly errors: ReadonlyMap<string, number>
  /** There were signs of trouble since the last successful write. */
  readonly isSuspect: boolean
  readonly probedMs: number
  readonly probeFailure: string | undefined
}

/** Interval of the write probe while trouble lasts; each is a write to a device that may be failing. */
const probeEveryMs = 30_000
/** Older lines of the kernel log are not evidence of the present state. */
const recentMs = 2 * 60_000

export const noHistory: FilesystemHistory = {
  wasWritable: new Set(),
  errors: new Map(),
  isSuspect: false,
  probedMs: Number.NEGATIVE_INFINITY,
  probeFailure: undefined,
}

export function afterKernelLine(history: FilesystemHistory, { text, ageMs }: KernelLine): FilesystemHistory {
  return ageMs < recentMs && isDiskTrouble(text) ? { ...history, isSuspect: true } : history
}

/** A rising error counter is a sign of trouble. */
export function afterMounts(history: FilesystemHistory, { root, data }: MountsReading): FilesystemHistory {
  const mounts = [data, root].filter((mount) => mount !== undefined)
  const rose = mounts.some(({ device, errors }) => (errors ?? 0) > (history.errors.get(device) ?? errors ?? 0))
  const counted = mounts.flatMap(({ device, errors }): [string, number][] =>
    errors === undefined ? [] : [[device, errors]],
  )
  const writable = mounts.filter(({ isReadOnly }) => !isReadOnly).map(({ path }) => path)
  return {
    ...history,
    wasWritable: new Set([...history.wasWritable, ...writable]),
    errors: new Map([...history.errors, ...counted]),
    isSuspect: history.isSuspect || rose,
    // The mount state already explains the failing write.
    probeFailure: data?.isReadOnly === false ? history.probeFailure : undefined,
  }
}

export function isProbeDue(
  { isSuspect, probedMs }: FilesystemHistory,
  { data }: MountsReading,
  nowMs: number,
): boolean {
  return isSuspect && data?.isReadOnly === false && nowMs - probedMs >= probeEveryMs
}

export function afterProbe(history: FilesystemHistory, nowMs: number, failure: string | undefined): FilesystemHistory {
  return { ...history, probedMs: nowMs, probeFailure: failure, isSuspect: failure !== undefined }
}

/** `failure`: of the data directory. Its filesystem is listed once if it is the root filesystem. */
export function statesOf(
  { wasWritable }: FilesystemHistory,
  { root, data, dataPath, fstab }: MountsReading,
  failure: string | undefined,
): readonly FilesystemState[] {
  const isSame = data?.path === '/'
  const isMeantSo =
    root !== undefined && !wasWritable.has(root.path) && (root.errors ?? 0) === 0 && isReadOnlyByDesign(fstab)
  const stateOf = ({ source, isReadOnly, errors }: MountReading) => ({ device: source, isReadOnly, errors })
  return [
    ...(root === undefined
      ? []
      : [
          {
            role: 'root' as const,
            path: '/',
            ...stateOf(root),
            isMeantSo: isMeantSo && !isSame,
            failure: isSame ? failure : undefined,
          },
        ]),
    ...(data === undefined || isSame
      ? []
      : [{ role: 'data directory' as const, path: dataPath, ...stateOf(data), isMeantSo: false, failure }]),
  ]
}

/** fstab(5) mounts the root read-only, or has no line for it, as in images for read-only roots and in containers. */
function isReadOnlyByDesign(fstab: string): boolean {
  const line = fstab.split('\n').find((text) => /^[^#\s]\S*\s+\/\s/.test(text))
  return line === undefined || (line.split(/\s+/)[3] ?? '').split(',').includes('ro')
}

export type FilesystemWatchNeeds = {
  readonly access: FilesystemAccess
  readonly kernel: Pick<KernelLog, 'subscribe'>
  readonly clock: Pick<Clock, 'monotonicMs'>
}

/** Reads the state now. Rejects where the mounts cannot be read. */
export function filesystemWatch({ access, kernel, clock }: FilesystemWatchNeeds) {
  let history = noHistory
  kernel.subscribe((line) => {
    history = afterKernelLine(history, line)
  })

  const probe = async (mounts: MountsReading) => {
    const nowMs = clock.monotonicMs()
    if (!isProbeDue(history, mounts, nowMs)) return
    history = { ...history, probedMs: nowMs }
    history = afterProbe(history, nowMs, await access.writeProbe())
  }

  return async (): Promise<readonly FilesystemState[]> => {
    const mounts = await access.mounts()
    history = afterMounts(history, mounts)
    const [unreadable] = await Promise.all([access.query(), probe(mounts)])
    return statesOf(history, mounts, unreadable ?? history.probeFailure)
  }
}

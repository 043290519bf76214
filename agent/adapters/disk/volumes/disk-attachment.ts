/**
 * Mounts the disk of a pool where only this agent uses it. The disk is found by the UUID of its file system: names like `sda1` change. It is
 * never formatted or repaired. While it is not attached its pool is missing, and nothing else waits for it.
 */
import { lstat, mkdir } from 'node:fs/promises'
import { join } from 'node:path'
import { onceAtATime } from '../../../../daemon/deadline.ts'
import { isMissing } from '../../../../daemon/errors.ts'
import { VolumeError } from '../../../pods/volumes/volume-store.ts'
import { type MountPoint, mountDisk, mountPoints, unmount } from '../mounts.ts'

/** A mount that failed is not tried again before: each try starts a program, and the kernel logs it. */
const againMs = 10_000

export type DiskAttachment = {
  readonly uuid: string
  /** Where it is mounted. */
  readonly path: string
  /** Where udev has a link for each file system that is attached. Without udev each is tried. */
  readonly links?: string
  readonly mount?: (uuid: string, path: string) => Promise<void>
  readonly points?: () => Promise<readonly MountPoint[]>
  readonly unmountAt?: (path: string) => Promise<void>
  readonly nowMs?: () => number
}

/** Gives a function that mounts it unless it is mounted, and throws VolumeError if it cannot be. */
export function diskAttachment({
  uuid,
  path,
  links = '/dev/disk/by-uuid',
  mount = mountDisk,
  points = mountPoints,
  unmountAt = unmount,
  nowMs = () => performance.now(),
}: DiskAttachment): () => Promise<void> {
  let failed: { readonly error: unknown; readonly untilMs: number } | undefined

  const attach = async (): Promise<void> => {
    const mounted = (await points()).findLast((point) => point.path === path)
    if (mounted !== undefined && (await exists(mounted.source))) return
    // The disk was removed. Attached again it has another name, and this mount never works again.
    if (mounted !== undefined) await unmountAt(path)
    if ((await exists(links)) && !(await exists(join(links, uuid))))
      throw new VolumeError(`no disk with the UUID ${uuid} is attached`)
    if (failed !== undefined && nowMs() < failed.untilMs) throw failed.error
    try {
      await mkdir(path, { recursive: true, mode: 0o700 })
      await mount(uuid, path)
      failed = undefined
    } catch (error) {
      failed = { error, untilMs: nowMs() + againMs }
      throw error
    }
  }
  const once = onceAtATime(attach)
  return () => once(path)
}

async function exists(path: string): Promise<boolean> {
  return await lstat(path).then(
    () => true,
    (error: unknown) => !isMissing(error),
  )
}

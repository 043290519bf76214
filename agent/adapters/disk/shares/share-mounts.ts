/**
 * Mounts of shares: one for each volume, in memory, as long as a pod of this machine has it. The helper of the file system is a process with a
 * deadline; a worker waits for it a little, and it goes on afterwards. A share that is mounted is asked whether it answers before each use.
 */
import { join } from 'node:path'
import type { NodeVolumeOrder } from '../../../../api/storage/volume-messages.ts'
import { withinOr } from '../../../../daemon/deadline.ts'
import type { MountedShare } from '../../../pods/volumes/share-mount.ts'
import { VolumeError } from '../../../pods/volumes/volume-store.ts'
import { type MountPoint, mountPoints, unmount } from '../mounts.ts'
import { commandOf, type ShareMounterNeeds, safeUID, shareMounter } from './share-mounter.ts'
import { discardOnShare } from './share-trash.ts'

export interface ShareMounts {
  /** Mounts it, unless it is mounted and answers. Gives where it is. */
  place(uid: string, share: MountedShare): Promise<string>
  /** Throws VolumeError if it is not mounted, or does not answer. */
  check(uid: string): Promise<void>
  pathOf(uid: string): string
  /** Lazily: what has files open there keeps them. */
  unmount(uid: string): Promise<void>
  /** The volumes that are mounted. */
  uids(): Promise<readonly string[]>
  /** Moves the folder of the volume to the trash of its share, or deletes it. Throws VolumeError. */
  discard(order: NodeVolumeOrder, share: MountedShare): Promise<void>
}

export type ShareMountsNeeds = ShareMounterNeeds & { readonly patienceMs?: number }

/** The end of a mount in the background; its error is for the next caller. */
type Running = { readonly done: Promise<void>; isOver: boolean }

export function shareMounts(needs: ShareMountsNeeds): ShareMounts {
  const { folder, remote, patienceMs = 2_000 } = needs
  const mounts = join(folder, 'shares')
  const pathOf = (uid: string) => join(mounts, safeUID(uid))
  const mounter = shareMounter(needs)
  const running = new Map<string, Running>()

  const mounted = async (uid: string): Promise<MountPoint | undefined> =>
    (await mountPoints()).findLast(({ path }) => path === pathOf(uid))

  const start = (uid: string, work: () => Promise<void>): Running => {
    const one: Running = {
      isOver: false,
      done: work().finally(() => {
        one.isOver = true
      }),
    }
    one.done.catch(() => undefined) // The caller that waits for it, or the next one, throws its error.
    running.set(uid, one)
    return one
  }

  /** Whether it is there and answers. One that the server has replaced meanwhile is unmounted. */
  const isUsable = async (uid: string): Promise<boolean> => {
    const mount = await mounted(uid)
    if (mount === undefined) return false
    try {
      await remote.kindOf(mount, mount.path)
      return true
    } catch (error) {
      if (!(error instanceof VolumeError) || !isStale(error)) throw error
      await unmount(mount.path)
      return false
    }
  }

  const unmountOf = async (uid: string) => {
    if ((await mounted(uid)) !== undefined) await unmount(pathOf(uid))
  }

  return {
    pathOf,
    async place(uid, share) {
      commandOf(share) // It throws where the share must not be mounted, also one that is mounted already.
      const before = running.get(uid)
      if (before?.isOver === false) throw stillMounting(share)
      if (before !== undefined) {
        running.delete(uid)
        await before.done
      }
      if (await isUsable(uid)) return pathOf(uid)
      const { done } = start(uid, () => mounter.mount(pathOf(uid), uid, share))
      const isLate = await withinOr(patienceMs, true, done).finally(() => {
        if (running.get(uid)?.isOver) running.delete(uid)
      })
      if (isLate) throw stillMounting(share)
      return pathOf(uid)
    },
    async check(uid) {
      if (!(await isUsable(uid))) throw new VolumeError('its share is no longer mounted')
    },
    unmount: unmountOf,
    async discard(order, share) {
      await unmountOf(order.uid)
      await mounter.during(order.uid, share, (path) => discardOnShare(path, order, share))
    },
    async uids() {
      const points = await mountPoints()
      const below = points.flatMap(({ path }) => (path.startsWith(`${mounts}/`) ? [path.slice(mounts.length + 1)] : []))
      // A server may have exports below one, which the kernel mounts by itself: they go with it.
      return below.filter((name) => !name.includes('/'))
    },
  }
}

function isStale({ message }: VolumeError): boolean {
  return /Stale file handle/.test(message)
}

function stillMounting({ server, path }: MountedShare): VolumeError {
  return new VolumeError(`the mount of ${path} of ${server} takes longer than usual`)
}

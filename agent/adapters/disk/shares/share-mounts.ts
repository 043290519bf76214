/**
 * Mounts of shares: one for each volume, in memory, as long as a pod of this machine has it. The helper of the file system is a process with a
 * deadline; a worker waits for it a little, and it goes on afterwards. A share that is mounted is asked whether it answers before each use.
 */
import { mkdir, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { withinOr } from '../../../../daemon/deadline.ts'
import { codeOf, messageOf } from '../../../../daemon/errors.ts'
import { type MountedShare, type ShareMount, type ShareUser, shareMount } from '../../../pods/volumes/share-mount.ts'
import { VolumeError } from '../../../pods/volumes/volume-store.ts'
import { type MountPoint, mountPoints, unmount } from '../mounts.ts'
import { runBounded } from '../remote/bounded-child.ts'
import type { RemoteFiles } from '../remote/remote-files.ts'
import { type ServerProbe, serverProbe } from './server-probe.ts'

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
}

export type ShareMountsNeeds = {
  /** In memory, for the agent alone. */
  readonly folder: string
  readonly remote: RemoteFiles
  readonly probe?: ServerProbe
  readonly patienceMs?: number
  readonly deadlineMs?: number
}

/** The end of a mount in the background; its error is for the next caller. */
type Running = { readonly done: Promise<void>; isOver: boolean }

const longestOutput = 1_000

export function shareMounts(needs: ShareMountsNeeds): ShareMounts {
  const { folder, remote, probe = serverProbe(), patienceMs = 2_000, deadlineMs = 30_000 } = needs
  const mounts = join(folder, 'shares')
  const pathOf = (uid: string) => join(mounts, safeUID(uid))
  const running = new Map<string, Running>()

  const mounted = async (uid: string): Promise<MountPoint | undefined> =>
    (await mountPoints()).findLast(({ path }) => path === pathOf(uid))

  const mountNow = async (uid: string, share: MountedShare, mount: ShareMount) => {
    await probe({ server: share.server, port: mount.port })
    const path = pathOf(uid)
    await mkdir(path, { recursive: true, mode: 0o700 })
    await withCredentials(join(folder, 'credentials', safeUID(uid)), share.user, async (options) => {
      const command = [mount.helper, mount.source, path, '-o', [...mount.options, ...options].join(',')]
      const { code, stderr } = await runBounded({ key: path, command, deadlineMs, ownGroup: true }).catch((cause) => {
        const missing = `${mount.helper} is not on this machine. Install the package ${mount.package}`
        throw new VolumeError(`mount failed: ${codeOf(cause) === 'ENOENT' ? missing : messageOf(cause)}`, { cause })
      })
      if (code !== 0)
        throw new VolumeError(`mount failed: exit status ${code}: ${stderr.trim().slice(0, longestOutput)}`)
    })
  }

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

  return {
    pathOf,
    async place(uid, share) {
      const mount = shareMount(share)
      if (!mount.ok) throw new VolumeError(mount.message)
      const before = running.get(uid)
      if (before?.isOver === false) throw stillMounting(share)
      if (before !== undefined) {
        running.delete(uid)
        await before.done
      }
      if (await isUsable(uid)) return pathOf(uid)
      const { done } = start(uid, () => mountNow(uid, share, mount.value))
      const isLate = await withinOr(patienceMs, true, done).finally(() => {
        if (running.get(uid)?.isOver) running.delete(uid)
      })
      if (isLate) throw stillMounting(share)
      return pathOf(uid)
    },
    async check(uid) {
      if (!(await isUsable(uid))) throw new VolumeError('its share is not mounted any more')
    },
    async unmount(uid) {
      if ((await mounted(uid)) !== undefined) await unmount(pathOf(uid))
    },
    async uids() {
      const points = await mountPoints()
      return points.flatMap(({ path }) => (path.startsWith(`${mounts}/`) ? [path.slice(mounts.length + 1)] : []))
    },
  }
}

/** In a file that exists while the helper runs: a command line can be read by all users. */
async function withCredentials(
  path: string,
  user: ShareUser | undefined,
  work: (options: readonly string[]) => Promise<void>,
): Promise<void> {
  if (user === undefined) return await work([])
  await mkdir(join(path, '..'), { recursive: true, mode: 0o700 })
  try {
    const { username, password, domain } = user
    const lines = [
      `username=${username}`,
      `password=${password}`,
      ...(domain === undefined ? [] : [`domain=${domain}`]),
    ]
    await rm(path, { force: true })
    await writeFile(path, `${lines.join('\n')}\n`, { mode: 0o600, flag: 'wx' })
    await work([`credentials=${path}`])
  } finally {
    await rm(path, { force: true })
  }
}

function isStale({ message }: VolumeError): boolean {
  return /Stale file handle/.test(message)
}

function stillMounting({ server, path }: MountedShare): VolumeError {
  return new VolumeError(`the mount of ${path} of ${server} takes longer than usual`)
}

function safeUID(uid: string): string {
  if (!/^[\w-][\w.-]{0,254}$/.test(uid)) throw new VolumeError(`Not a name for a mount: ${JSON.stringify(uid)}`)
  return uid
}

/** Mounts a share, and makes its folder first where it has one of its own. */
import { randomUUID } from 'node:crypto'
import { access, constants, mkdir, rm, rmdir, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { madeFolder, type NasShare } from '../../../../api/storage/shares.ts'
import { codeOf, messageOf } from '../../../../daemon/errors.ts'
import {
  type MountedShare,
  type ShareMount,
  type ShareUser,
  shareHelpers,
  shareMount,
} from '../../../pods/volumes/share-mount.ts'
import { VolumeError } from '../../../pods/volumes/volume-store.ts'
import { type MountPoint, mountPoints, mountsAt, unmount } from '../mounts.ts'
import { runBounded } from '../remote/bounded-child.ts'
import type { RemoteFiles } from '../remote/remote-files.ts'
import { type ServerProbe, serverProbe } from './server-probe.ts'
import { folderIndex } from './share-trash.ts'

export type ShareMounterNeeds = {
  /** In memory, for the agent alone. */
  readonly folder: string
  readonly remote: RemoteFiles
  readonly probe?: ServerProbe
  readonly deadlineMs?: number
}

/** They throw VolumeError. */
export interface ShareMounter {
  /** Mounts the share of the volume `uid` at the path. */
  mount(path: string, uid: string, share: MountedShare): Promise<void>
  /** Mounts a share during the work, aside, for the volume `uid`. `path`: where. */
  during(uid: string, share: MountedShare, work: (path: string) => Promise<void>): Promise<void>
  /** Mounts a share aside until it is released, which resolves also if the server does not answer. No record remembers a folder that it makes. */
  hold(share: MountedShare): Promise<HeldShare>
}

export type HeldShare = { readonly path: string; release(): Promise<void> }

const longestOutput = 1_000

type MakeFolder = (
  uid: string,
  made: { readonly root: MountedShare; readonly folder: string },
  options: readonly string[],
) => Promise<void>

export function shareMounter(needs: ShareMounterNeeds): ShareMounter {
  const { folder, remote, probe = serverProbe(), deadlineMs = 30_000 } = needs

  const reached = async (
    uid: string,
    share: MountedShare,
    work: (mount: ShareMount, options: readonly string[]) => Promise<void>,
  ) => {
    const mount = commandOf(share)
    await probe({ server: share.server, port: mount.port })
    await withCredentials(join(folder, 'credentials', safeUID(uid)), share.user, (options) => work(mount, options))
  }

  /** `make`: its folder on the share, where it has one of its own that is not there. */
  const mountMade = (path: string, uid: string, share: MountedShare, make: MakeFolder) =>
    reached(uid, share, async (mount, options) => {
      const failure = await attempt(path, mount, options)
      if (failure === undefined) return
      const made = madeFolder(share)
      if (made === undefined || !/No such file or directory/.test(failure.message)) throw failure
      await make(uid, made, options)
      const second = await attempt(path, mount, options)
      if (second !== undefined) throw second
    })

  /** Why it could not be mounted there. */
  const attempt = async (path: string, mount: ShareMount, options: readonly string[]) => {
    await mkdir(path, { recursive: true, mode: 0o700 })
    const command = [mount.helper, mount.source, path, '-o', [...mount.options, ...options].join(',')]
    const { code, stderr } = await runBounded({ key: path, command, deadlineMs, ownGroup: true }).catch((cause) => {
      const missing = `${mount.helper} is not on this machine. Install the package ${mount.package}`
      throw new VolumeError(`mount failed: ${codeOf(cause) === 'ENOENT' ? missing : messageOf(cause)}`, { cause })
    })
    if (code === 0) return undefined
    return new VolumeError(`mount failed: exit status ${code}: ${stderr.trim().slice(0, longestOutput)}`)
  }

  /**
   * At the first mount. A folder beside it on the share remembers that it was made: later it is missing, and an empty one would look like
   * lost data. Every step is held open, as pods that have the whole share could put a link there.
   */
  const makeFolder: MakeFolder = (uid, { root, folder: made }, options) =>
    aside(uid, root, options, async (point) => {
      const { path } = point
      const record = join('.bramble', 'volumes', safeUID(uid))
      const isMade = (await remote.kindOf(point, join(path, record))) !== undefined
      if (isMade && (await remote.kindOf(point, join(path, made))) === undefined) {
        throw new VolumeError(`the folder ${made} was made before and is missing on ${root.server}`)
      }
      const ofFolder = join('.bramble', 'folders', folderIndex(made), safeUID(uid))
      for (const one of [made, ofFolder, record]) await (await remote.hold(point, path, one)).release()
    })

  const aside = async (
    uid: string,
    share: MountedShare,
    options: readonly string[],
    work: (point: MountPoint) => Promise<void>,
  ) => {
    const path = join(folder, 'roots', safeUID(uid))
    const failure = await attempt(path, commandOf(share), options)
    if (failure !== undefined) throw failure
    try {
      const point = (await mountPoints()).findLast((one) => one.path === path)
      if (point === undefined) throw new VolumeError(`the share ${share.path} of ${share.server} is not mounted`)
      await work(point)
    } finally {
      await unmount(path)
    }
  }

  const makeBare: MakeFolder = (uid, made, options) =>
    aside(uid, made.root, options, async (point) => (await remote.hold(point, point.path, made.folder)).release())
  const hold = holder(join(folder, 'held'), (name, path, share) => mountMade(path, name, share, makeBare))

  return {
    hold,
    mount: (path, uid, share) => mountMade(path, uid, share, makeFolder),
    during: (uid, share, work) =>
      reached(uid, share, (_, options) => aside(uid, share, options, ({ path }) => work(path))),
  }
}

/** Mounts below `folder`, each in a folder of its own. */
function holder(
  folder: string,
  mount: (name: string, path: string, share: MountedShare) => Promise<void>,
): ShareMounter['hold'] {
  /** What an agent that was killed has left. */
  let cleaned: Promise<void> | undefined
  const clean = async () => {
    for (const { path } of mountsAt(await mountPoints(), folder).toReversed()) await unmount(path)
  }
  return async (share) => {
    cleaned ??= clean().catch((error: unknown) => {
      cleaned = undefined
      throw error
    })
    await cleaned
    const name = randomUUID()
    const path = join(folder, name)
    const release = async () => {
      if (mountsAt(await mountPoints(), path).length > 0) await unmount(path)
      await rmdir(path).catch(() => undefined)
    }
    try {
      await mount(name, path, share)
    } catch (error) {
      await release()
      throw error
    }
    return { path, release }
  }
}

/** The kinds whose programs are in the PATH of the agent. */
export async function mountableShares(): Promise<readonly NasShare['kind'][]> {
  const folders = (process.env['PATH'] ?? '').split(':').filter((folder) => folder.startsWith('/'))
  const isThere = async (helper: string) => {
    for (const one of folders)
      if (
        await access(join(one, helper), constants.X_OK).then(
          () => true,
          () => false,
        )
      )
        return true
    return false
  }
  const found = await Promise.all(
    (['nfs', 'smb'] as const).map(async (kind) => ((await isThere(shareHelpers[kind])) ? [kind] : [])),
  )
  return found.flat()
}

/** Throws VolumeError where the share must not be mounted. */
export function commandOf(share: MountedShare): ShareMount {
  const mount = shareMount(share)
  if (!mount.ok) throw new VolumeError(mount.message)
  return mount.value
}

/** In a file that exists while the helper runs: a command line can be read by all users. */
async function withCredentials(
  path: string,
  user: ShareUser | undefined,
  work: (options: readonly string[]) => Promise<void>,
): Promise<void> {
  if (user === undefined) return await work([])
  await mkdir(dirname(path), { recursive: true, mode: 0o700 })
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

export function safeUID(uid: string): string {
  if (!/^[\w-][\w.-]{0,254}$/.test(uid)) throw new VolumeError(`Not a name for a mount: ${JSON.stringify(uid)}`)
  return uid
}

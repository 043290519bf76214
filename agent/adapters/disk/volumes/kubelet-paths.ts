/**
 * The volumes of pods at the paths of the kubelet, for backup programs that have its folder `pods` mounted (hostPath). They are bind mounts,
 * made only while a pod of this machine sees that folder. Programs in such pods may write there: folders are opened one below the other, no link
 * is followed, and only empty folders are removed.
 */
import { type FileHandle, lstat, mkdir, realpath, rmdir, writeFile } from 'node:fs/promises'
import { join, relative } from 'node:path'
import { codeOf, isMissing, messageOf } from '../../../../daemon/errors.ts'
import { turnsByKey } from '../../../../daemon/limits/turns-by-key.ts'
import type { Log } from '../../../../daemon/log.ts'
import { type KubeletPlace, kubeletPlugins, type ShownVolume, seesPods } from '../../../pods/volumes/kubelet-places.ts'
import { VolumeError } from '../../../pods/volumes/volume-store.ts'
import { namesIn } from '../../csi/kubelet-folders.ts'
import { type MountedFolder, type MountPoint, mountBindAt, mountPoints, unmount } from '../mounts.ts'
import { openFolder, pathOf } from '../open-folders.ts'
import { remoteMountOn } from '../remote/remote-mounts.ts'

export interface KubeletPaths {
  /** A pod has this path of the machine. If it sees the folders of pods, the volumes of all pods are shown, until it is removed. */
  mounted(podUID: string, path: string): Promise<void>
  /** Shows what the pod has, if a pod sees it. A failure is logged: it keeps no pod from starting. */
  show(podUID: string): Promise<void>
  /** Nothing of the pod is shown any more. Throws VolumeError if something stays mounted. */
  hide(podUID: string): Promise<void>
  /** The same, and then `work`, which removes the pod: nothing is shown meanwhile. */
  remove(podUID: string, work: () => Promise<void>): Promise<void>
}

export type KubeletPathsNeeds = {
  readonly kubeletDirectory: string
  /** The folder of a pod in memory: a file in it records that the pod sees the folders of others. */
  readonly asideOf: (podUID: string) => string
  readonly podUIDs: () => Promise<readonly string[]>
  /** It was not removed. */
  readonly isHere: (podUID: string) => Promise<boolean>
  readonly volumesOf: (podUID: string) => Promise<readonly ShownVolume[]>
  /** Has the pod removed by a later agent, also after a reboot. */
  readonly keep: (podUID: string) => Promise<void>
  readonly mounts?: FolderMounts
  readonly log: Log
}

export type FolderMounts = {
  readonly points: typeof mountPoints
  readonly bind: typeof mountBindAt
  readonly unmount: typeof unmount
}

const machineMounts: FolderMounts = { points: mountPoints, bind: mountBindAt, unmount }

const record = 'sees-pods'
/** Beside what a driver has mounted (see `csi-records.ts`). */
const driverRecord = 'vol_data.json'
const driverPlugin = 'kubernetes.io~csi'

export function kubeletPaths(needs: KubeletPathsNeeds): KubeletPaths {
  const { kubeletDirectory, asideOf, mounts = machineMounts, log } = needs
  const inTurn = turnsByKey()
  let read: Promise<Set<string>> | undefined
  const readViewers = async () => {
    const found = new Set<string>()
    const hasRecord = async (podUID: string) => await exists(join(asideOf(podUID), record))
    for (const podUID of await needs.podUIDs().catch(() => [])) {
      if (await hasRecord(podUID).catch(() => false)) found.add(podUID)
    }
    return found
  }
  const viewers = () => {
    read ??= readViewers()
    return read
  }

  const logged = (podUID: string, work: Promise<void>) =>
    work.catch((error: unknown) => log.warn('Volumes not shown at the paths of the kubelet', { podUID, error }))

  const show = (podUID: string) =>
    inTurn(podUID, async () => {
      if ((await viewers()).size === 0 || !(await needs.isHere(podUID))) return
      await needs.keep(podUID)
      const folder = join(await realpath(kubeletDirectory), 'pods')
      await within(folder, [podUID], async () => undefined, { make: true })
      for (const volume of await needs.volumesOf(podUID))
        await logged(podUID, bind(join(folder, podUID), volume, mounts))
    })

  const hide = async (podUID: string) => {
    const folder = join(await realpath(kubeletDirectory).catch(() => kubeletDirectory), 'pods')
    const pod = join(folder, podUID)
    if (!(await exists(pod))) return
    await unmountIn(pod, mounts)
    for (const place of await placesIn(pod)) {
      for (let parts = ['volumes', ...place]; parts.length > 2; parts = parts.slice(0, -1)) {
        await removeIfEmpty(pod, parts)
      }
    }
    for (const plugin of kubeletPlugins) await removeIfEmpty(pod, ['volumes', plugin])
    await removeIfEmpty(pod, ['volumes'])
    await removeIfEmpty(folder, [podUID])
  }
  const hideAll = async (seen: ReadonlySet<string>) => {
    for (const podUID of await needs.podUIDs()) {
      // Another pod that sees them may start meanwhile.
      await inTurn(podUID, async () => (seen.size === 0 ? await hide(podUID) : undefined)).catch((error: unknown) =>
        log.warn('Volumes stay at the paths of the kubelet', { podUID, error }),
      )
    }
  }

  return {
    async mounted(podUID, path) {
      if (!seesPods(path, kubeletDirectory)) return
      await mkdir(asideOf(podUID), { recursive: true, mode: 0o700 })
      await writeFile(join(asideOf(podUID), record), '')
      const seen = await viewers()
      seen.add(podUID)
      for (const uid of await needs.podUIDs()) await logged(uid, show(uid))
    },
    show: (podUID) => logged(podUID, show(podUID)),
    hide: (podUID) => inTurn(podUID, () => hide(podUID)),
    async remove(podUID, work) {
      const seen = await viewers()
      const wasSeen = seen.delete(podUID)
      await inTurn(podUID, async () => {
        await hide(podUID)
        await work()
      })
      if (wasSeen && seen.size === 0) await hideAll(seen)
    },
  }
}

/** Without the folders of a kubelet. */
export const noKubeletPaths: KubeletPaths = {
  mounted: async () => undefined,
  show: async () => undefined,
  hide: async () => undefined,
  remove: (_podUID, work) => work(),
}

/** `pod`: the folder of the pod, which exists. */
async function bind(pod: string, { place, path }: ShownVolume, mounts: FolderMounts): Promise<void> {
  const target = join(pod, 'volumes', ...place)
  const source = (await remoteMountOn(path)) ? path : await realpath(path)
  const points = await mounts.points()
  const there = points.findLast((point) => point.path === target)
  const wanted = mountedFolder(points, source)
  if (there !== undefined && there.device === wanted?.device && there.root === wanted.root) return
  const { above, name } = parted(place)
  const mount = async (folder: FileHandle) => {
    const link = linkOf(folder, name)
    if (there !== undefined) await mounts.unmount(target, link)
    await mkdir(link, { mode: 0o750 }).catch(unlessThere)
    const own = await openFolder(link)
    await mounts.bind(source, target, { folder: pathOf(own), name: link }).finally(() => own.close())
  }
  await within(pod, above, mount, { make: true })
}

/** What a bind mount of this folder has. */
function mountedFolder(points: readonly (MountPoint & MountedFolder)[], folder: string): MountedFolder | undefined {
  const above = points.filter(({ path }) => `${folder}/`.startsWith(path === '/' ? '/' : `${path}/`))
  const longest = Math.max(...above.map(({ path }) => path.length))
  const covering = above.findLast(({ path }) => path.length === longest)
  return covering && { device: covering.device, root: join(covering.root, relative(covering.path, folder)) }
}

/** Where volumes of the pod are shown, or were. What a driver has mounted is not meant. */
async function placesIn(pod: string): Promise<readonly KubeletPlace[]> {
  const places: KubeletPlace[] = []
  for (const plugin of kubeletPlugins) {
    const names = await within(pod, ['volumes', plugin], (folder) => namesIn(pathOf(folder))).catch(missing)
    for (const name of names ?? []) {
      if (await isDriven(pod, [plugin, name])) continue
      places.push(plugin === driverPlugin ? [plugin, name, 'mount'] : [plugin, name])
    }
  }
  return places
}

function isDriven(pod: string, [plugin = '', name = '']: readonly string[]): Promise<boolean> {
  const file = join(pod, 'volumes', plugin, name, driverRecord)
  return plugin === driverPlugin ? exists(file) : Promise.resolve(false)
}

/** Where they are now: a program may have renamed a folder above. What is mounted below one of them goes with it. */
async function unmountIn(pod: string, { points, unmount }: FolderMounts): Promise<void> {
  const volumes = join(pod, 'volumes')
  const mounted = (await points()).map(({ path }) => path).filter((path) => path.startsWith(`${volumes}/`))
  for (const path of mounted) {
    const place = relative(volumes, path).split('/')
    if (mounted.some((other) => path.startsWith(`${other}/`)) || (await isDriven(pod, place))) continue
    const { above, name } = parted(place)
    await within(pod, above, (folder) => unmount(path, linkOf(folder, name)))
  }
}

/** Never more than an empty folder. One in which something is mounted does not go: that is thrown. */
async function removeIfEmpty(top: string, parts: readonly string[]): Promise<void> {
  const name = parts.at(-1) ?? ''
  await within(top, parts.slice(0, -1), (folder) => rmdir(linkOf(folder, name))).catch((cause: unknown) => {
    if (isMissing(cause) || codeOf(cause) === 'ENOTEMPTY' || codeOf(cause) === 'ELOOP') return
    throw new VolumeError(`Cannot remove ${join(top, ...parts)}: ${messageOf(cause)}`, { cause })
  })
}

/** Opens one folder below the other, and follows no link. */
async function within<T>(
  top: string,
  [name, ...rest]: readonly string[],
  act: (folder: FileHandle) => Promise<T>,
  options: { readonly make?: boolean } = {},
): Promise<T> {
  const folder = await openFolder(top)
  try {
    if (name === undefined) return await act(folder)
    if (options.make) await mkdir(linkOf(folder, name), { mode: 0o750 }).catch(unlessThere)
    return await within(linkOf(folder, name), rest, act, options)
  } finally {
    await folder.close()
  }
}

function parted(place: KubeletPlace): { readonly above: readonly string[]; readonly name: string } {
  return { above: ['volumes', ...place.slice(0, -1)], name: place.at(-1) ?? '' }
}

function linkOf(folder: FileHandle, name: string): string {
  return `${pathOf(folder)}/${name}`
}

function missing(error: unknown): undefined {
  if (!isMissing(error) && codeOf(error) !== 'ELOOP') throw error
  return undefined
}

function unlessThere(error: unknown): void {
  if (codeOf(error) !== 'EEXIST') throw error
}

async function exists(path: string): Promise<boolean> {
  return (await lstat(path).catch(() => undefined)) !== undefined
}

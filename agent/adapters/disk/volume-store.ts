/**
 * The volumes of pods on this machine. Scratch (emptyDir) volumes are in the agent's data directory; Secrets and all other volumes that are
 * copies are in memory, below a folder that does not survive a boot.
 */

import { createHash } from 'node:crypto'
import { chmod, chown, mkdir, mkdtemp, readdir, realpath, rename, stat as statOf, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { withinOr } from '../../../daemon/deadline.ts'
import { messageOf } from '../../../daemon/errors.ts'
import type { Log } from '../../../daemon/log.ts'
import { emptyDirPlace, type ShownVolume } from '../../pods/volumes/kubelet-places.ts'
import type { ConfiguredPool } from '../../pods/volumes/pool-settings.ts'
import type { VolumeBackups } from '../../pods/volumes/volume-backups.ts'
import type { VolumeCopies, VolumeMoves } from '../../pods/volumes/volume-moves.ts'
import {
  VolumeError,
  type VolumeSilence,
  type VolumeStore,
  type WantedVolume,
} from '../../pods/volumes/volume-store.ts'
import type { KnownStores, VolumeTrash } from '../../pods/volumes/volume-trash.ts'
import { type CsiVolumes, noCsiVolumes } from '../csi/csi-volumes.ts'
import { hasFiles, replaceFiles } from './atomic-files.ts'
import { diskBackups } from './backups/disk-backups.ts'
import { removeFolder } from './folder-removal.ts'
import { type Held, holdInside } from './inside-volume.ts'
import { makeMessageFile, messageMemory, readMessageFile, writeEtcFile } from './message-files.ts'
import { type MountPoint, mountBind, mountMemory, mountPoints, mountsAt, unmount } from './mounts.ts'
import { type RemoteFiles, remoteFiles } from './remote/remote-files.ts'
import { remoteMountOn } from './remote/remote-mounts.ts'
import { type ShareMounter, shareMounter } from './shares/share-mounter.ts'
import { shareMounts } from './shares/share-mounts.ts'
import { readToken, writeToken } from './token-files.ts'
import { type ClaimVolumes, claimVolumes } from './volumes/claim-volumes.ts'
import { deviceMounts } from './volumes/device-mounts.ts'
import { diskMoves } from './volumes/disk-moves.ts'
import { diskTrash, knownStores } from './volumes/disk-trash.ts'
import { checkHostPath } from './volumes/host-files.ts'
import { type KubeletPaths, kubeletPaths, noKubeletPaths } from './volumes/kubelet-paths.ts'
import { poolFilesOfMachine } from './volumes/pool-files.ts'
import { type VolumePools, volumePools } from './volumes/pools.ts'

const releaseMs = 1_000

export type VolumeFolders = {
  readonly dataDirectory: string
  /** A filesystem in memory is mounted here. */
  readonly memoryDirectory: string
}

/** For the agent with this data directory, which must exist. Several agents may run on one machine. */
export async function volumeFolders(dataDir: string): Promise<VolumeFolders> {
  const dataDirectory = await realpath(dataDir)
  const id = createHash('sha256').update(dataDirectory).digest('hex').slice(0, 12)
  return { dataDirectory, memoryDirectory: join(await realpath('/run'), 'bramble', id) }
}

export interface DiskVolumes extends VolumeStore {
  readonly trash: VolumeTrash
  readonly stores: KnownStores
  readonly pools: VolumePools
  readonly moves: VolumeMoves & VolumeCopies
  readonly backups: VolumeBackups
  /** Called when a pod has given up its volumes: an order that it held up can be carried out. One listener. */
  onRelease(listener: () => void): void
}

export type VolumeStoreOptions = {
  readonly remote?: RemoteFiles
  readonly pools?: readonly ConfiguredPool[]
  readonly csi?: CsiVolumes
  /** Its folder, in which backup programs look for the volumes of pods. */
  readonly kubelet?: { readonly directory: string; readonly log: Log }
}

export function volumeStore(folders: VolumeFolders, options: VolumeStoreOptions = {}): DiskVolumes {
  const { remote = remoteFiles(), pools: configured = [], csi = noCsiVolumes, kubelet } = options
  const { dataDirectory, memoryDirectory } = folders
  const messages = join(memoryDirectory, 'messages')
  const inMemory = once(() => mountOwnMemory(memoryDirectory, ['mode=0700', 'nosuid', 'nodev', 'size=25%']))
  const messagesInMemory = once(() => inMemory().then(() => mountOwnMemory(messages, messageMemory)))
  const onDisk = (podUID: string, ...rest: readonly string[]) => join(dataDirectory, 'pods', safe(podUID), ...rest)
  const aside = (podUID: string, ...rest: readonly string[]) => join(memoryDirectory, 'pods', safe(podUID), ...rest)
  const files = poolFilesOfMachine(remote)
  const pools = volumePools(configured, folders, files)
  const claims = claimVolumes({
    folderOf: (podUID) => aside(podUID, 'claims'),
    pods: join(memoryDirectory, 'pods'),
    shares: shareMounts({ folder: memoryDirectory, remote }),
    ...{ remote, pools, files, csi, devices: deviceMounts({ folder: memoryDirectory }) },
  })
  const podUIDs = () => podsIn([join(dataDirectory, 'pods'), join(memoryDirectory, 'pods'), messages], csi)
  const foldersOf = podFolders(folders)
  const paths = kubelet === undefined ? noKubeletPaths : pathsOf(kubelet, { claims, podUIDs, foldersOf })
  const placeOf = (podUID: string, volume: WantedVolume) => {
    if (volume.kind === 'hostPath' || volume.kind === 'claim') return volume.path
    const isOnDisk = volume.kind === 'emptyDir' && !volume.memory
    return (isOnDisk ? onDisk : aside)(podUID, 'volumes', safe(volume.name))
  }

  const place = async (podUID: string, volume: WantedVolume) => {
    const path = placeOf(podUID, volume)
    if (volume.kind === 'hostPath') {
      await checkHostPath(path, volume.type, remote)
      return path
    }
    if (volume.kind === 'emptyDir' && !volume.memory) {
      await scratchFolder(path, volume.group)
      return path
    }
    if (volume.kind === 'earlierFiles') return await withFiles(path)
    if (volume.kind === 'earlierClaim') return await claims.earlier(podUID, safe(volume.name))
    await inMemory()
    if (volume.kind === 'claim') return await claims.place(podUID, safe(volume.name), volume)
    await mkdir(path, { recursive: true })
    if (volume.kind === 'files') await writeFiles(path, volume)
    else if (mountsAt(await mountPoints(), path).length === 0) {
      await mountMemory(path, memoryOptions(volume.sizeBytes, volume.group))
    }
    return path
  }

  const part: VolumeStore['part'] = async (podUID, volume, subPath, { containerName, index }) => {
    const isClaim = volume.kind === 'claim' || volume.kind === 'earlierClaim'
    const path = isClaim ? await claims.earlier(podUID, safe(volume.name)) : placeOf(podUID, volume)
    if (volume.kind === 'files' || volume.kind === 'earlierFiles') return await amongFiles(path, subPath)
    await inMemory()
    const target = aside(podUID, 'parts', safe(containerName), String(index))
    await mountPart(await holdPart(path, subPath, remote), target)
    return target
  }

  let released = () => {}
  const remove = async (podUID: string, signal?: AbortSignal) => {
    claims.stop(podUID)
    // What is mounted of a driver's volume for a container is below the folder of the pod: it goes before the volume.
    await unmountBelow([aside(podUID)])
    await csi.remove(podUID)
    await paths.remove(podUID, () => removeUnmounted(podUID, Object.values(foldersOf(podUID)), signal))
    await releaseShares(claims)
    released()
  }

  return {
    pools,
    onRelease(listener) {
      released = listener
    },
    trash: diskTrash({ pools, discard: claims.discard }),
    stores: knownStores(dataDirectory, files),
    moves: diskMoves({ pools, whileUnused: claims.whileUnused }),
    backups: diskBackups({ pools, shares: mountedAside(shareMounter({ folder: memoryDirectory, remote }), inMemory) }),
    place: (podUID, volume) =>
      described(`volume "${volume.name}"`, async () => {
        const path = await place(podUID, volume)
        const isOfHost = volume.kind === 'hostPath' || (volume.kind === 'claim' && volume.source === 'hostPath')
        if (isOfHost) await paths.mounted(podUID, path)
        await paths.show(podUID)
        return path
      }),
    part: (podUID, volume, subPath, mount) => described(subPath, () => part(podUID, volume, subPath, mount)),
    silence: (path) => silenceAt(path, remote),
    placedAt: (podUID, name) => claims.placedAt(podUID, safe(name)),
    unmountParts: (podUID) =>
      described(`the volumes of pod ${podUID}`, async () => {
        await paths.hide(podUID)
        await unmountBelow([aside(podUID, 'parts')])
      }),
    ...messageFiles(messages, messagesInMemory, paths.show),
    ...tokenFiles((podUID) => [aside(podUID, 'tokens'), onDisk(podUID, 'tokens')], inMemory),
    remove: (podUID, signal) => described(`the volumes of pod ${podUID}`, () => remove(podUID, signal)),
    podUIDs,
  }
}

type PodFolders = { readonly aside: string; readonly onDisk: string; readonly messages: string }

function podFolders({ dataDirectory, memoryDirectory }: VolumeFolders): (podUID: string) => PodFolders {
  return (podUID) => ({
    aside: join(memoryDirectory, 'pods', safe(podUID)),
    onDisk: join(dataDirectory, 'pods', safe(podUID)),
    messages: join(memoryDirectory, 'messages', safe(podUID)),
  })
}

type PathsNeeds = {
  readonly claims: Pick<ClaimVolumes, 'shown'>
  readonly podUIDs: () => Promise<readonly string[]>
  readonly foldersOf: (podUID: string) => PodFolders
}

function pathsOf(
  { directory, log }: NonNullable<VolumeStoreOptions['kubelet']>,
  { claims, podUIDs, foldersOf }: PathsNeeds,
): KubeletPaths {
  return kubeletPaths({
    ...{ kubeletDirectory: directory, podUIDs, log },
    asideOf: (podUID) => foldersOf(podUID).aside,
    isHere: async (podUID) => (await Promise.all(Object.values(foldersOf(podUID)).map(exists))).includes(true),
    keep: async (podUID) => void (await mkdir(foldersOf(podUID).onDisk, { recursive: true, mode: 0o750 })),
    volumesOf: async (podUID) => {
      const { onDisk, aside } = foldersOf(podUID)
      return [...(await claims.shown(podUID)), ...(await emptyDirsIn(join(onDisk, 'volumes'), join(aside, 'volumes')))]
    },
  })
}

type TokenFiles = Pick<VolumeStore, 'saveToken' | 'savedToken'>

/** `foldersOf`: the one in memory, which `prepare` makes, and the one that survives a reboot. */
function tokenFiles(foldersOf: (podUID: string) => readonly string[], prepare: () => Promise<void>): TokenFiles {
  return {
    saveToken: (podUID, id, token, { durable }) =>
      described('a token', async () => {
        await prepare()
        await writeToken(foldersOf(podUID).slice(0, durable ? 2 : 1), safe(id), token)
      }),
    savedToken: (podUID, id) => described('a saved token', () => readToken(foldersOf(podUID), safe(id))),
  }
}

type MessageFiles = Pick<VolumeStore, 'messageFile' | 'etcFile' | 'message'>

/** Files that are mounted in containers, in a folder in memory that `prepare` makes. `made`: called for a pod that has one. */
function messageFiles(
  messages: string,
  prepare: () => Promise<void>,
  made: (podUID: string) => Promise<void>,
): MessageFiles {
  return {
    messageFile: (podUID, containerName, attempt) =>
      described('the file for a termination message', async () => {
        await prepare()
        const file = await makeMessageFile(join(messages, safe(podUID), safe(containerName)), attempt)
        await made(podUID)
        return file
      }),
    etcFile: (podUID, name, text) =>
      described(`the file for /etc/${name}`, async () => {
        await prepare()
        return await writeEtcFile(join(messages, safe(podUID)), name, text)
      }),
    message: (podUID, containerName, attempt, most) =>
      described('the termination message', () =>
        readMessageFile(join(messages, safe(podUID), safe(containerName), String(attempt)), most),
      ),
  }
}

async function podsIn(folders: readonly string[], csi: Pick<CsiVolumes, 'podUIDs'>): Promise<readonly string[]> {
  const found = await Promise.all(folders.map((folder) => readdir(folder).catch(() => [])))
  return [...new Set([...found.flat(), ...(await csi.podUIDs())])]
}

async function silenceAt(path: string, remote: RemoteFiles): Promise<VolumeSilence | undefined> {
  const mount = await remoteMountOn(path)
  return mount && (await remote.silence(mount))
}

/** The unmount of a share whose server is away may take long, and is tried again with the next pod. */
async function releaseShares(claims: Pick<ClaimVolumes, 'release'>): Promise<void> {
  const released = claims.release().catch(() => undefined)
  await withinOr(releaseMs, undefined, released)
}

/** In place of what is mounted at the target. Releases the part. */
async function mountPart(held: Held, target: string): Promise<void> {
  try {
    await unmountBelow([target])
    await removeFolder(target)
    await mkdir(held.folder ? target : dirname(target), { recursive: true })
    if (!held.folder) await writeFile(target, '')
    await mountBind(held.link, target)
  } finally {
    await held.release()
  }
}

async function removeUnmounted(podUID: string, folders: readonly string[], signal?: AbortSignal): Promise<void> {
  // A remaining mount must not be emptied: its content belongs to another program.
  const [left] = await unmountBelow(folders)
  if (left !== undefined) throw new VolumeError(`Cannot remove the volumes of pod ${podUID}: ${left.path} is mounted`)
  for (const folder of folders) await removeFolder(folder, signal)
}

/** Unmounts these folders and all below them; resolves with the mounts that remain. */
async function unmountBelow(folders: readonly string[]): Promise<readonly MountPoint[]> {
  const mounted = async () => {
    const points = await mountPoints()
    return folders.flatMap((folder) => mountsAt(points, folder))
  }
  for (const { path } of [...(await mounted())].reverse()) await unmount(path)
  return await mounted()
}

/** A second mount would hide the first, so an existing one is reused. */
async function mountOwnMemory(folder: string, options: readonly string[]): Promise<void> {
  await mkdir(folder, { recursive: true, mode: 0o700 })
  const points = await mountPoints()
  const own = await realpath(folder)
  if (points.some(({ path, type }) => path === own && type === 'tmpfs')) return
  await mountMemory(own, options)
}

/** Done once, for the first caller; after a failure the next caller tries again. */
function once(work: () => Promise<void>): () => Promise<void> {
  let done: Promise<void> | undefined
  return async () => {
    done ??= work()
    try {
      await done
    } catch (error) {
      done = undefined
      throw error
    }
  }
}

/** With the sticky bit, which a tmpfs has without a mode, as that of the kubelet: only the owner of a file can remove it. */
function memoryOptions(sizeBytes: number | undefined, group: number | undefined): readonly string[] {
  return [
    ...(sizeBytes === undefined ? [] : [`size=${Math.ceil(sizeBytes)}`]),
    ...(group === undefined ? ['mode=1777'] : ['mode=3777', `gid=${group}`]),
  ]
}

/** Those in memory are mounts, beside copies of Secrets, which no other pod is shown. */
async function emptyDirsIn(onDisk: string, inMemory: string): Promise<readonly ShownVolume[]> {
  const points = await mountPoints()
  const found: ShownVolume[] = []
  for (const folder of [onDisk, inMemory]) {
    for (const name of await readdir(folder).catch(() => [])) {
      const path = join(folder, name)
      const isMount = points.some((point) => point.path === path)
      if (!name.startsWith('..') && (folder === onDisk || isMount)) found.push({ place: emptyDirPlace(name), path })
    }
  }
  return found
}

/** Created with its mode, or not at all. */
async function scratchFolder(path: string, group: number | undefined): Promise<void> {
  if (await exists(path)) return
  await mkdir(dirname(path), { recursive: true, mode: 0o750 })
  const fresh = await mkdtemp(join(dirname(path), '..new-'))
  if (group !== undefined) await chown(fresh, process.getuid?.() ?? 0, group)
  await chmod(fresh, group === undefined ? 0o777 : 0o2777)
  await rename(fresh, path)
}

/** A link in the volume may lead to a remote mount, too. */
async function holdPart(root: string, subPath: string, remote: RemoteFiles): Promise<Held> {
  const mount = await remoteMountOn(join(root, subPath))
  return await (mount === undefined ? holdInside(root, subPath) : remote.hold(mount, root, subPath))
}

async function writeFiles(path: string, { files, group }: WantedVolume & { readonly kind: 'files' }): Promise<void> {
  await chmod(path, 0o755)
  await replaceFiles(path, files, group)
}

async function withFiles(path: string): Promise<string> {
  if (await hasFiles(path)) return path
  throw new VolumeError('its files were not written before')
}

/** What is not there is made, as a folder. Only the agent writes there, so the links cannot change after the check. */
async function amongFiles(folder: string, subPath: string): Promise<string> {
  const root = await realpath(folder)
  const path = join(root, subPath)
  if (!(await exists(path))) await mkdir(path, { recursive: true, mode: 0o755 })
  const found = await realpath(path)
  if (!found.startsWith(`${root}/`)) throw new VolumeError(`${subPath} leads out of the volume`)
  return found
}

function safe(name: string): string {
  if (!/^[A-Za-z0-9][-.\w]{0,252}$/.test(name))
    throw new VolumeError(`Not a name for a folder: ${JSON.stringify(name)}`)
  return name
}

async function exists(path: string): Promise<boolean> {
  return await statOf(path).then(
    () => true,
    () => false,
  )
}

async function described<T>(what: string, work: () => Promise<T>): Promise<T> {
  try {
    return await work()
  } catch (error) {
    if (error instanceof VolumeError) throw error
    throw new VolumeError(`${what}: ${messageOf(error)}`, { cause: error })
  }
}

/** Where it is mounted must be in memory first. */
function mountedAside(shares: ShareMounter, inMemory: () => Promise<void>): Pick<ShareMounter, 'hold'> {
  return {
    async hold(share) {
      await inMemory()
      return shares.hold(share)
    },
  }
}

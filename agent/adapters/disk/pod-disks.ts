/** The disk usage of pods: writable layers, logs and volumes. */
import { lstat, readdir } from 'node:fs/promises'
import { basename, dirname, join } from 'node:path'
import type { RuntimeContainer } from '../../runtime/runtime.ts'
import type { Filled, PodDiskReading } from '../../usage/usage.ts'
import { type FolderCounter, mountUsage } from './folder-usage.ts'
import { type MountPoint, mountPoints, mountsAt } from './mounts.ts'
import { isRemote } from './remote/remote-mounts.ts'
import type { VolumeFolders } from './volume-store.ts'

/** One after another: concurrent reads slow a card down. Mounts are read once for all pods. */
export async function readPodDisks(
  containers: readonly RuntimeContainer[],
  folders: VolumeFolders,
  counter: FolderCounter,
  readMounts = mountPoints,
): Promise<readonly PodDiskReading[]> {
  const readings: PodDiskReading[] = []
  const remote = (await readMounts()).filter(isRemote)
  for (const [uid, own] of byPod(containers)) {
    const found: PodDiskReading['containers'][number][] = []
    for (const [name, attempts] of byName(own)) {
      const newest = attempts.reduce((one, other) => (other.identity.attempt > one.identity.attempt ? other : one))
      const rootfs = newest.layerPath === undefined ? undefined : await counter.usage(newest.layerPath)
      const logs = await logUsage(
        attempts.flatMap(({ logPath }) => logPath ?? []),
        counter,
      )
      found.push({ name, ...(rootfs && { rootfs }), ...(logs && { logs }) })
    }
    readings.push({ uid, containers: found, volumes: await volumesOf(uid, { folders, remote, counter }) })
  }
  await counter.endRound()
  return readings
}

type VolumeNeeds = {
  readonly folders: VolumeFolders
  readonly remote: readonly MountPoint[]
  readonly counter: FolderCounter
}

async function volumesOf(uid: string, { folders, remote, counter }: VolumeNeeds) {
  const { dataDirectory, memoryDirectory } = folders
  const volumes: PodDiskReading['volumes'][number][] = []
  for (const [directory, inMemory] of [
    [dataDirectory, false],
    [memoryDirectory, true],
  ] as const) {
    const folder = join(directory, 'pods', uid, 'volumes')
    for (const name of await readdir(folder).catch(() => [])) {
      if (name.startsWith('..')) continue // it is being created
      const path = join(folder, name)
      // A container may have mounted a remote file system there, whose files are not looked at.
      const own = inMemory && mountsAt(remote, path).length === 0 && (await isMount(path, folder))
      const used = own ? await mountUsage(path) : await counter.usage(path)
      if (used !== undefined) volumes.push({ name, inMemory, ...used })
    }
  }
  return volumes
}

async function isMount(path: string, parent: string): Promise<boolean> {
  const [own, above] = await Promise.all([path, parent].map((one) => lstat(one).catch(() => undefined)))
  return own !== undefined && above !== undefined && own.dev !== above.dev
}

/** The current log file, and the rotated ones. */
async function logUsage(paths: readonly string[], counter: FolderCounter): Promise<Filled | undefined> {
  let sum: Filled | undefined
  for (const path of paths) {
    const name = basename(path)
    for (const file of await readdir(dirname(path)).catch(() => [])) {
      if (file !== name && !file.startsWith(`${name}.`)) continue
      const used = await counter.usage(join(dirname(path), file))
      if (used !== undefined) sum = added(sum ?? { usedBytes: 0, inodesUsed: 0 }, used)
    }
  }
  return sum
}

function added(one: Filled, other: Filled): Filled {
  const incomplete = one.incomplete ?? other.incomplete
  return {
    usedBytes: one.usedBytes + other.usedBytes,
    inodesUsed: one.inodesUsed + other.inodesUsed,
    ...(incomplete !== undefined && { incomplete }),
  }
}

export function byPod(containers: readonly RuntimeContainer[]): ReadonlyMap<string, readonly RuntimeContainer[]> {
  return grouped(containers, ({ identity }) => identity.podUID)
}

function byName(containers: readonly RuntimeContainer[]): ReadonlyMap<string, readonly RuntimeContainer[]> {
  const inside = containers.filter(({ identity }) => identity.kind === 'container')
  return grouped(inside, ({ identity }) => identity.containerName)
}

function grouped(containers: readonly RuntimeContainer[], keyOf: (container: RuntimeContainer) => string) {
  const groups = new Map<string, RuntimeContainer[]>()
  for (const container of containers) {
    const key = keyOf(container)
    const group = groups.get(key)
    if (group === undefined) groups.set(key, [container])
    else group.push(container)
  }
  return groups
}

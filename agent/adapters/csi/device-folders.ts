/**
 * Where block volumes of CSI drivers are: in the folders of the kubelet (pkg/volume/csi/csi_block.go), with a record for each pod beside the link
 * that people and backup programs look for.
 */
import { lstat, mkdir, readdir, rm, rmdir, symlink, unlink } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { codeOf } from '../../../daemon/errors.ts'
import { VolumeError } from '../../pods/volumes/volume-store.ts'
import { removeEmpty, safeName } from './kubelet-folders.ts'

export function deviceFolders(kubeletDirectory: string) {
  const root = join(kubeletDirectory, 'plugins', 'kubernetes.io', 'csi', 'volumeDevices')
  const pods = join(kubeletDirectory, 'pods')
  const ofPod = (podUID: string) => join(pods, safeName(podUID), 'volumeDevices', 'kubernetes.io~csi')
  const publishedIn = (volume: string) => join(root, 'publish', safeName(volume))
  const stagingOf = (volume: string) => join(root, 'staging', safeName(volume))
  const dataOf = (volume: string) => join(root, safeName(volume), 'data')
  const targetOf = (podUID: string, volume: string) => join(publishedIn(volume), safeName(podUID))
  const linkOf = (podUID: string, volume: string) => join(ofPod(podUID), safeName(volume))
  // Names of volumes do not begin with a dot.
  const recordOf = (podUID: string, volume: string) => join(ofPod(podUID), `.${safeName(volume)}.json`)

  return {
    root,
    targetOf,
    stagingOf,
    dataOf,
    recordOf,
    /** The driver makes the target in it. */
    async makeFor(podUID: string, volume: string): Promise<void> {
      for (const folder of [publishedIn(volume), ofPod(podUID)]) await mkdir(folder, { recursive: true, mode: 0o750 })
      await symlink(targetOf(podUID, volume), linkOf(podUID, volume)).catch((error: unknown) => {
        if (codeOf(error) !== 'EEXIST') throw error
      })
    },
    async removeFor(podUID: string, volume: string): Promise<void> {
      await removeDevice(targetOf(podUID, volume))
      await rm(linkOf(podUID, volume), { force: true })
      await rm(recordOf(podUID, volume), { force: true })
      // They hold those of other pods and other volumes, too.
      const folders = [publishedIn(volume), ofPod(podUID), dirname(ofPod(podUID)), join(pods, safeName(podUID))]
      for (const folder of folders) await rmdir(folder).catch(() => undefined)
    },
    /** Files that the driver left in the folder of the stage go, as in the kubelet; folders and mounts do not. */
    async removeStaged(volume: string, record: string): Promise<void> {
      for (const name of await readdir(stagingOf(volume)).catch(() => [])) {
        await removeDevice(join(stagingOf(volume), name))
      }
      await removeEmpty(stagingOf(volume))
      await rm(join(dataOf(volume), record), { force: true })
      for (const folder of [dataOf(volume), dirname(dataOf(volume)), publishedIn(volume)]) {
        await rmdir(folder).catch(() => undefined)
      }
    },
    /** The names of the volumes of a pod that have a record. */
    async volumesOf(podUID: string): Promise<readonly string[]> {
      const names = await readdir(ofPod(podUID)).catch((): string[] => [])
      return names.flatMap((name) => /^\.(.+)\.json$/.exec(name)?.[1] ?? [])
    },
  }
}

/** An empty file is where a device was mounted; a device is one that the driver made there. Anything else stays. */
async function removeDevice(path: string): Promise<void> {
  const found = await lstat(path).catch(() => undefined)
  if (found === undefined) return
  const isLeft = (found.isFile() && found.size === 0) || found.isBlockDevice() || found.isSymbolicLink()
  if (!isLeft) throw new VolumeError(`${path} is left by its driver and is not a device`)
  await unlink(path).catch((cause: unknown) => {
    throw new VolumeError(`${path} is left by its driver and cannot be removed: ${codeOf(cause)}`, { cause })
  })
}

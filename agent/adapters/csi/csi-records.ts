/**
 * Which volumes of CSI drivers are staged on this machine and published for which pods: files in the places and with the names of the kubelet
 * (pkg/volume/csi), which drivers and people read. Each is on the disk before its driver is called, so nothing that a driver has mounted is
 * forgotten by a restart or a power cut.
 */
import { createHash } from 'node:crypto'
import { mkdir, readdir, readFile, rm, rmdir } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { decode } from '../../../api/decode.ts'
import { bool, object, optional, text } from '../../../api/schema.ts'
import { parseJson } from '../../../api/text/json.ts'
import { replaceFile } from '../../../daemon/durable-file.ts'
import { codeOf } from '../../../daemon/errors.ts'
import { VolumeError } from '../../pods/volumes/volume-store.ts'

const VolumeDataSchema = object({
  driverName: text,
  volumeHandle: text,
  specVolID: optional(text),
  attachable: optional(bool),
  /** The data directory of the agent: several may run on one machine. */
  agent: text,
})

export type PublishedVolume = {
  readonly podUID: string
  /** The name of the PersistentVolume. */
  readonly volume: string
  readonly driver: string
  readonly handle: string
  /** It is detached from this machine when it is not used here. */
  readonly attachable?: true
  readonly isInline?: true
}
export type StagedVolume = Pick<PublishedVolume, 'driver' | 'handle' | 'attachable'>

export interface CsiRecords {
  /** Where the driver publishes it. */
  targetOf(podUID: string, volume: string): string
  stagingOf(volume: StagedVolume): string
  writePublished(volume: PublishedVolume): Promise<void>
  writeStaged(volume: StagedVolume): Promise<void>
  /** What the driver left is removed where it is empty, and never more. Throws VolumeError if it is not empty. */
  removePublished(volume: PublishedVolume): Promise<void>
  removeStaged(volume: StagedVolume): Promise<void>
  /** Those of this agent, for all pods or one. */
  published(podUID?: string): Promise<readonly PublishedVolume[]>
  staged(): Promise<readonly StagedVolume[]>
}

const fileName = 'vol_data.json'

export function csiRecords(kubeletDirectory: string, agent: string): CsiRecords {
  const pods = join(kubeletDirectory, 'pods')
  const drivers = join(kubeletDirectory, 'plugins', 'kubernetes.io', 'csi')
  const volumesOf = (podUID: string) => join(pods, safeName(podUID), 'volumes', 'kubernetes.io~csi')
  const folderOf = (podUID: string, volume: string) => join(volumesOf(podUID), safeName(volume))
  const stageFolderOf = ({ driver, handle }: StagedVolume) =>
    join(drivers, safeName(driver), createHash('sha256').update(handle).digest('hex'))
  const targetOf = (podUID: string, volume: string) => join(folderOf(podUID, volume), 'mount')
  const stagingOf = (volume: StagedVolume) => join(stageFolderOf(volume), 'globalmount')

  const read = async (folder: string) => {
    const found = await readFile(join(folder, fileName), 'utf8').catch(() => undefined)
    if (found === undefined) return undefined
    const record = decode(VolumeDataSchema, parseJson(found))
    return record.ok && record.value.agent === agent ? record.value : undefined
  }
  const write = async (folder: string, data: { readonly [name: string]: string | true }) => {
    await mkdir(folder, { recursive: true, mode: 0o750 })
    await replaceFile(join(folder, fileName), `${JSON.stringify({ ...data, agent })}\n`)
  }

  return {
    targetOf,
    stagingOf,
    writePublished: ({ podUID, volume, driver, handle, attachable, isInline }) =>
      write(folderOf(podUID, volume), {
        ...{ driverName: driver, volumeHandle: handle, specVolID: volume },
        volumeLifecycleMode: isInline ? 'Ephemeral' : 'Persistent',
        ...(attachable && { attachable }),
      }),
    async writeStaged(volume) {
      const { driver, handle, attachable } = volume
      await write(stageFolderOf(volume), {
        ...{ driverName: driver, volumeHandle: handle },
        ...(attachable && { attachable }),
      })
      await mkdir(stagingOf(volume), { recursive: true, mode: 0o750 })
    },
    async removePublished({ podUID, volume }) {
      const folder = folderOf(podUID, volume)
      await removeEmpty(targetOf(podUID, volume))
      await rm(join(folder, fileName), { force: true })
      await removeEmpty(folder)
      // Those above hold other volumes of the pod, too.
      for (const above of [volumesOf(podUID), dirname(volumesOf(podUID)), join(pods, safeName(podUID))]) {
        await rmdir(above).catch(() => undefined)
      }
    },
    async removeStaged(volume) {
      const folder = stageFolderOf(volume)
      await removeEmpty(stagingOf(volume))
      await rm(join(folder, fileName), { force: true })
      await removeEmpty(folder)
    },
    async published(podUID) {
      const found: PublishedVolume[] = []
      for (const uid of podUID === undefined ? await namesIn(pods) : [podUID]) {
        for (const volume of await namesIn(volumesOf(uid))) {
          const record = await read(join(volumesOf(uid), volume))
          if (record === undefined) continue
          found.push({ podUID: uid, volume, driver: record.driverName, ...handleIn(record) })
        }
      }
      return found
    },
    async staged() {
      const found: StagedVolume[] = []
      for (const driver of await namesIn(drivers)) {
        for (const volume of await namesIn(join(drivers, driver))) {
          const record = await read(join(drivers, driver, volume))
          if (record?.driverName === driver) found.push({ driver, ...handleIn(record) })
        }
      }
      return found
    },
  }
}

function handleIn({ volumeHandle: handle, attachable }: { volumeHandle: string; attachable?: boolean | undefined }) {
  return { handle, ...(attachable && { attachable }) }
}

/** Names that no agent has written are passed over. */
async function namesIn(folder: string): Promise<readonly string[]> {
  const names = await readdir(folder).catch((): string[] => [])
  return names.filter((name) => isSafe(name))
}

async function removeEmpty(folder: string): Promise<void> {
  await rmdir(folder).catch((cause: unknown) => {
    if (codeOf(cause) === 'ENOENT') return
    throw new VolumeError(`${folder} is left by its driver and cannot be removed: ${codeOf(cause)}`, { cause })
  })
}

function isSafe(name: string): boolean {
  return /^[A-Za-z0-9][-.\w]{0,252}$/.test(name)
}

function safeName(name: string): string {
  if (!isSafe(name)) throw new VolumeError(`Not a name for a folder: ${JSON.stringify(name)}`)
  return name
}

/**
 * Which volumes of CSI drivers are staged on this machine and published for which pods: files in the places and with the names of the kubelet
 * (pkg/volume/csi), which drivers and people read. Each is on the disk before its driver is called, so nothing that a driver has mounted is
 * forgotten by a restart or a power cut.
 */
import { createHash } from 'node:crypto'
import { mkdir, readFile, rm, rmdir } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { decode } from '../../../api/decode.ts'
import { bool, type Described, object, optional, text } from '../../../api/schema.ts'
import { parseJson } from '../../../api/text/json.ts'
import { replaceFile } from '../../../daemon/durable-file.ts'
import { deviceFolders } from './device-folders.ts'
import { namesIn, removeEmpty, safeName } from './kubelet-folders.ts'

const VolumeDataSchema = object({
  driverName: text,
  volumeHandle: text,
  specVolID: optional(text),
  attachable: optional(bool),
  volumeLifecycleMode: optional(text),
  pod: optional(text),
  claim: optional(text),
  /** The data directory of the agent: several may run on one machine. */
  agent: text,
})

type VolumeData = Described<typeof VolumeDataSchema>

export type PublishedVolume = {
  readonly podUID: string
  /** The name of the PersistentVolume. */
  readonly volume: string
  readonly driver: string
  readonly handle: string
  /** It is detached from this machine when it is not used here. */
  readonly attachable?: true
  readonly isInline?: true
  readonly isBlock?: true
  /** As `namespace/name`. Records of earlier versions do not have them. */
  readonly pod?: string
  readonly claim?: string
}
/** `volume`: a block volume is staged by its name. */
export type StagedVolume = Pick<PublishedVolume, 'driver' | 'handle' | 'attachable' | 'isBlock'> &
  Partial<Pick<PublishedVolume, 'volume'>>

export interface CsiRecords {
  /** Where the driver publishes it. */
  targetOf(volume: Pick<PublishedVolume, 'podUID' | 'volume' | 'isBlock'>): string
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

/** `agent` distinguishes the agents of one machine. */
export function csiRecords(kubeletDirectory: string, agent: string): CsiRecords {
  const pods = join(kubeletDirectory, 'pods')
  const drivers = join(kubeletDirectory, 'plugins', 'kubernetes.io', 'csi')
  const volumesOf = (podUID: string) => join(pods, safeName(podUID), 'volumes', 'kubernetes.io~csi')
  const folderOf = (podUID: string, volume: string) => join(volumesOf(podUID), safeName(volume))
  const stageFolderOf = ({ driver, handle }: StagedVolume) =>
    join(drivers, safeName(driver), createHash('sha256').update(handle).digest('hex'))
  const devices = deviceFolders(kubeletDirectory)
  const targetOf: CsiRecords['targetOf'] = ({ podUID, volume, isBlock }) =>
    isBlock ? devices.targetOf(podUID, volume) : join(folderOf(podUID, volume), 'mount')
  const stagingOf = (volume: StagedVolume) =>
    volume.isBlock ? devices.stagingOf(volume.volume ?? '') : join(stageFolderOf(volume), 'globalmount')

  const { readEach, write } = recordFiles(agent)

  const publishedTo = async (podUID: string): Promise<readonly PublishedVolume[]> => {
    const mounts = await readEach(await namesIn(volumesOf(podUID)), (name) => join(volumesOf(podUID), name, fileName))
    const blocks = await readEach(await devices.volumesOf(podUID), (name) => devices.recordOf(podUID, name))
    return [
      ...mounts.map(({ name: volume, record }) => ({ podUID, volume, ...volumeIn(record) })),
      ...blocks.map(({ name: volume, record }) => ({ podUID, volume, ...volumeIn(record), isBlock: true as const })),
    ]
  }

  const stagedOf = async (driver: string): Promise<readonly StagedVolume[]> => {
    const found = await readEach(await namesIn(join(drivers, driver)), (name) => join(drivers, driver, name, fileName))
    return found.flatMap(({ record }) => (record.driverName === driver ? { driver, ...handleIn(record) } : []))
  }

  const stagedDevices = async (): Promise<readonly StagedVolume[]> => {
    const found = await readEach(await namesIn(devices.root), (name) => join(devices.dataOf(name), fileName))
    return found.map(({ name: volume, record }) => ({
      ...{ driver: record.driverName, ...handleIn(record), volume },
      isBlock: true as const,
    }))
  }

  return {
    targetOf,
    stagingOf,
    async writePublished({ podUID, volume, driver, handle, attachable, isInline, isBlock, pod, claim }) {
      if (isBlock) await devices.makeFor(podUID, volume)
      await write(isBlock ? devices.recordOf(podUID, volume) : join(folderOf(podUID, volume), fileName), {
        ...{ driverName: driver, volumeHandle: handle, specVolID: volume },
        volumeLifecycleMode: isInline ? 'Ephemeral' : 'Persistent',
        ...(attachable && { attachable }),
        ...(pod !== undefined && { pod }),
        ...(claim !== undefined && { claim }),
      })
    },
    async writeStaged(volume) {
      const { driver, handle, attachable, isBlock, volume: name = '' } = volume
      await write(join(isBlock ? devices.dataOf(name) : stageFolderOf(volume), fileName), {
        ...{ driverName: driver, volumeHandle: handle },
        ...(attachable && { attachable }),
      })
      await mkdir(stagingOf(volume), { recursive: true, mode: 0o750 })
    },
    async removePublished({ podUID, volume, isBlock }) {
      if (isBlock) return await devices.removeFor(podUID, volume)
      const folder = folderOf(podUID, volume)
      await removeEmpty(targetOf({ podUID, volume }))
      await rm(join(folder, fileName), { force: true })
      await removeEmpty(folder)
      // Those above hold other volumes of the pod, too.
      for (const above of [volumesOf(podUID), dirname(volumesOf(podUID)), join(pods, safeName(podUID))]) {
        await rmdir(above).catch(() => undefined)
      }
    },
    async removeStaged(volume) {
      if (volume.isBlock) return await devices.removeStaged(volume.volume ?? '', fileName)
      const folder = stageFolderOf(volume)
      await removeEmpty(stagingOf(volume))
      await rm(join(folder, fileName), { force: true })
      await removeEmpty(folder)
    },
    async published(podUID) {
      const found: PublishedVolume[] = []
      for (const uid of podUID === undefined ? await namesIn(pods) : [podUID]) found.push(...(await publishedTo(uid)))
      return found
    },
    async staged() {
      const found: StagedVolume[] = []
      for (const driver of await namesIn(drivers)) found.push(...(await stagedOf(driver)))
      return [...found, ...(await stagedDevices())]
    },
  }
}

function handleIn({ volumeHandle: handle, attachable }: Pick<VolumeData, 'volumeHandle' | 'attachable'>) {
  return { handle, ...(attachable && { attachable }) }
}

function volumeIn(record: VolumeData) {
  const { driverName: driver, pod, claim, volumeLifecycleMode } = record
  return {
    ...{ driver, ...handleIn(record) },
    ...(pod !== undefined && { pod }),
    ...(claim !== undefined && { claim }),
    ...(volumeLifecycleMode === 'Ephemeral' && { isInline: true as const }),
  }
}

function recordFiles(agent: string) {
  const read = async (file: string): Promise<VolumeData | undefined> => {
    const found = await readFile(file, 'utf8').catch(() => undefined)
    if (found === undefined) return undefined
    const record = decode(VolumeDataSchema, parseJson(found))
    return record.ok && record.value.agent === agent ? record.value : undefined
  }
  /** Without those that have no record, or one of another agent. */
  const readEach = async (names: readonly string[], fileOf: (name: string) => string) => {
    const found: { readonly name: string; readonly record: VolumeData }[] = []
    for (const name of names) {
      const record = await read(fileOf(name))
      if (record !== undefined) found.push({ name, record })
    }
    return found
  }
  const write = async (file: string, data: { readonly [name: string]: string | true }) => {
    await mkdir(dirname(file), { recursive: true, mode: 0o750 })
    await replaceFile(file, `${JSON.stringify({ ...data, agent })}\n`)
  }
  return { readEach, write }
}

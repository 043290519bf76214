/**
 * Volumes of CSI drivers: staged once for the machine and published for each pod, in the order of the kubelet, and the way back
 * (pkg/volume/csi). All calls for one volume of a driver are made one after another.
 */
import { messageOf } from '../../../daemon/errors.ts'
import { turnsByKey } from '../../../daemon/limits/turns-by-key.ts'
import type { Log } from '../../../daemon/log.ts'
import { driverNotFound } from '../../pods/volumes/csi/csi-driver-words.ts'
import { type CsiCapabilities, type CsiMount, volumeCapability } from '../../pods/volumes/csi/csi-mount.ts'
import { isFinalError } from '../../pods/volumes/csi/grpc-error.ts'
import { type ClaimVolume, setUpFailed, VolumeError } from '../../pods/volumes/volume-store.ts'
import { mountPoints } from '../disk/mounts.ts'
import type { CsiClient } from './csi-client.ts'
import { csiRecords, type PublishedVolume, type StagedVolume } from './csi-records.ts'
import { patientWork } from './patient-work.ts'

export type RegisteredDriver = { readonly client: CsiClient; readonly capabilities: CsiCapabilities }

export type CsiPlaced = {
  readonly path: string
  /** The driver has given the files to the group. */
  readonly hasGroup: boolean
}

export interface CsiVolumes {
  /** Stages and publishes it, unless that was done. Throws VolumeError. */
  place(podUID: string, volume: ClaimVolume, csi: CsiMount): Promise<CsiPlaced>
  /** Throws VolumeError if nothing is mounted there. */
  check(path: string): Promise<void>
  /** Unpublishes all that the pod has. Throws VolumeError if that is not done yet. */
  remove(podUID: string): Promise<void>
  /** Unstages what no pod has. */
  release(): Promise<void>
  /** The pods that have something here. */
  podUIDs(): Promise<readonly string[]>
}

export type CsiVolumesNeeds = {
  readonly kubeletDirectory: string
  /** Distinguishes the agents of one machine. */
  readonly agent: string
  readonly driver: (name: string) => RegisteredDriver | undefined
  readonly log: Log
  readonly isMounted?: (path: string) => Promise<boolean>
  readonly patienceMs?: number
}

const stageFailed = 'MountVolume.MountDevice failed'

export function csiVolumes(needs: CsiVolumesNeeds): CsiVolumes {
  const { kubeletDirectory, agent, log, isMounted = isMountPoint, patienceMs = 2_000 } = needs
  const records = csiRecords(kubeletDirectory, agent)
  const inTurn = turnsByKey()
  const patient = patientWork(patienceMs)
  /** Since this agent started. A call that is repeated afterwards changes nothing. */
  const staged = new Set<string>()
  const published = new Set<string>()

  const driverOf = (name: string): RegisteredDriver => {
    const found = needs.driver(name)
    if (found === undefined) throw new VolumeError(driverNotFound(name))
    return found
  }

  const stage = async (volume: StagedVolume, csi: CsiMount) => {
    if (staged.has(keyOf(volume))) return
    const { client, capabilities } = driverOf(csi.driver)
    await records.writeStaged(volume)
    const request = {
      ...{ volumeId: csi.handle, stagingTargetPath: records.stagingOf(volume), volumeContext: csi.attributes },
      ...{ publishContext: csi.publishContext, secrets: csi.stageSecrets },
      volumeCapability: volumeCapability(csi, capabilities),
    }
    await refused(stageFailed, () => client.stage(request))
    staged.add(keyOf(volume))
  }

  const publish = async (volume: PublishedVolume, csi: CsiMount) => {
    const { client, capabilities } = driverOf(csi.driver)
    const target = records.targetOf(volume.podUID, volume.volume)
    // Before the stage: one that no pod has is unstaged.
    await records.writePublished(volume)
    try {
      if (capabilities.stages) await stage(volume, csi)
      await refused(setUpFailed, () =>
        client.publish({
          ...{ volumeId: csi.handle, targetPath: target, readonly: csi.readOnly, secrets: csi.publishSecrets },
          ...(capabilities.stages && { stagingTargetPath: records.stagingOf(volume) }),
          ...{ publishContext: csi.publishContext, volumeContext: { ...csi.attributes, ...csi.podAttributes } },
          volumeCapability: volumeCapability(csi, capabilities),
        }),
      )
    } catch (error) {
      // After another error it may be mounted: the record has it unpublished with the pod.
      const isOver = error instanceof VolumeError && isFinalError(error.cause)
      if (isOver && !(await isMounted(target))) await records.removePublished(volume).catch(() => undefined)
      throw error
    }
  }

  const unpublish = async (volume: PublishedVolume) => {
    const { client } = driverOf(volume.driver)
    const target = records.targetOf(volume.podUID, volume.volume)
    await refused('UnmountVolume.TearDown failed', () =>
      client.unpublish({ volumeId: volume.handle, targetPath: target }),
    )
    if (await isMounted(target)) {
      throw new VolumeError(`driver ${volume.driver} has unpublished ${target}, but it is still mounted`)
    }
    await records.removePublished(volume)
    published.delete(placeKey(volume.podUID, volume.volume))
  }

  const unstage = async (volume: StagedVolume) => {
    const others = await records.published()
    if (others.some((one) => keyOf(one) === keyOf(volume))) return
    const { client } = driverOf(volume.driver)
    const staging = records.stagingOf(volume)
    staged.delete(keyOf(volume))
    await refused('UnmountDevice failed', () => client.unstage({ volumeId: volume.handle, stagingTargetPath: staging }))
    await records.removeStaged(volume)
  }

  const releaseAll = async () => {
    for (const volume of await records.staged()) {
      if (needs.driver(volume.driver) === undefined) continue
      // That of another driver is not kept waiting by one that hangs.
      const late = `driver ${volume.driver} takes longer than usual to unstage ${volume.handle}`
      await patient
        .run(`unstage ${keyOf(volume)}`, late, () => inTurn(keyOf(volume), () => unstage(volume)))
        .catch((error: unknown) => log.warn('Volume not unstaged', { ...volume, error }))
    }
  }

  return {
    async place(podUID, { volume }, csi) {
      const own: PublishedVolume = { podUID, volume, driver: csi.driver, handle: csi.handle }
      const key = placeKey(podUID, volume)
      const target = records.targetOf(podUID, volume)
      if (!published.has(key)) {
        const isThere =
          (await records.published(podUID)).some((one) => one.volume === volume) && (await isMounted(target))
        const late = `driver ${csi.driver} takes longer than usual to mount the volume`
        if (!isThere) await patient.run(key, late, () => inTurn(keyOf(own), () => publish(own, csi)))
        published.add(key)
      }
      return { path: target, hasGroup: needs.driver(csi.driver)?.capabilities.mountsWithGroup === true }
    },
    async check(path) {
      if (!(await isMounted(path))) throw new VolumeError('its driver has not mounted it any more')
    },
    async remove(podUID) {
      const own = await records.published(podUID)
      const failures: unknown[] = []
      for (const volume of own) {
        const key = placeKey(podUID, volume.volume)
        patient.forget(key)
        const late = `driver ${volume.driver} takes longer than usual to unmount the volume`
        // A driver that hangs does not keep those of others mounted.
        await patient
          .run(`remove ${key}`, late, () => inTurn(keyOf(volume), () => unpublish(volume)))
          .catch((error: unknown) => failures.push(error))
      }
      if (own.length > 0) await releaseAll()
      if (failures.length > 0) throw failures[0]
    },
    release: releaseAll,
    podUIDs: async () => [...new Set((await records.published()).map(({ podUID }) => podUID))],
  }
}

function keyOf({ driver, handle }: StagedVolume): string {
  return `${driver}^${handle}`
}

function placeKey(podUID: string, volume: string): string {
  return `${podUID}/${volume}`
}

/** The words of the driver, as the kubelet passes them on. */
async function refused(step: string, call: () => Promise<void>): Promise<void> {
  await call().catch((cause: unknown) => {
    throw new VolumeError(messageOf(cause), { step, cause })
  })
}

async function isMountPoint(path: string): Promise<boolean> {
  return (await mountPoints()).some((point) => point.path === path)
}

/** For a machine without drivers. */
export const noCsiVolumes: CsiVolumes = {
  async place(_podUID, _volume, { driver }) {
    throw new VolumeError(driverNotFound(driver))
  },
  async check() {
    throw new VolumeError('its driver has not mounted it any more')
  },
  remove: async () => undefined,
  release: async () => undefined,
  podUIDs: async () => [],
}

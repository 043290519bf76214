/** The calls that mount a volume of a CSI driver and unmount it, each with its record (pkg/volume/csi/csi_attacher.go, csi_mounter.go). */
import { messageOf } from '../../../daemon/errors.ts'
import { driverNotFound } from '../../pods/volumes/csi/csi-driver-words.ts'
import { type CsiCapabilities, type CsiMount, csiSteps, volumeCapability } from '../../pods/volumes/csi/csi-mount.ts'
import { isFinalError } from '../../pods/volumes/csi/grpc-error.ts'
import type { ExpandCall } from '../../pods/volumes/csi/volume-growth.ts'
import { VolumeError } from '../../pods/volumes/volume-store.ts'
import type { CsiClient } from './csi-client.ts'
import type { CsiRecords, PublishedVolume, StagedVolume } from './csi-records.ts'

export type RegisteredDriver = { readonly client: CsiClient; readonly capabilities: CsiCapabilities }

export type CsiCallsNeeds = {
  readonly records: CsiRecords
  readonly driver: (name: string) => RegisteredDriver | undefined
  readonly isThere: (volume: PublishedVolume) => Promise<boolean>
}

/** All throw VolumeError. */
export interface CsiCalls {
  /** Stages it first if its driver does that. */
  publish(volume: PublishedVolume, csi: CsiMount): Promise<void>
  unpublish(volume: PublishedVolume): Promise<void>
  /** Rejects with GrpcError. undefined: its driver does not expand volumes on nodes. */
  expansion(volume: PublishedVolume, csi: CsiMount): ExpandCall
  /** Unless a pod has it. */
  unstage(volume: StagedVolume): Promise<void>
}

export function csiCalls({ records, driver, isThere }: CsiCallsNeeds): CsiCalls {
  /** Since this agent started. A call that is repeated afterwards changes nothing. */
  const staged = new Set<string>()

  const driverOf = (name: string): RegisteredDriver => {
    const found = driver(name)
    if (found === undefined) throw new VolumeError(driverNotFound(name))
    return found
  }

  const stage = async (volume: StagedVolume, csi: CsiMount) => {
    if (staged.has(csiKeyOf(volume))) return
    const { client, capabilities } = driverOf(csi.driver)
    await records.writeStaged(volume)
    const request = {
      ...{ volumeId: csi.handle, stagingTargetPath: records.stagingOf(volume), volumeContext: csi.attributes },
      ...{ publishContext: csi.publishContext, secrets: csi.stageSecrets },
      volumeCapability: volumeCapability(csi, capabilities),
    }
    await refused(csiSteps(csi.isBlock).stage, () => client.stage(request))
    staged.add(csiKeyOf(volume))
  }

  const publish = async (volume: PublishedVolume, csi: CsiMount) => {
    const { client, capabilities } = driverOf(csi.driver)
    const target = records.targetOf(volume)
    // Before the stage: one that no pod has is unstaged.
    await records.writePublished(volume)
    const isStaged = capabilities.stages && !csi.isInline
    try {
      if (isStaged) await stage(volume, csi)
      await refused(csiSteps(csi.isBlock).publish, () =>
        client.publish({
          ...{ volumeId: csi.handle, targetPath: target, readonly: csi.readOnly, secrets: csi.publishSecrets },
          ...(isStaged && { stagingTargetPath: records.stagingOf(volume) }),
          ...{ publishContext: csi.publishContext, volumeContext: { ...csi.attributes, ...csi.podAttributes } },
          volumeCapability: volumeCapability(csi, capabilities),
        }),
      )
    } catch (error) {
      // After another error it may be mounted: the record has it unpublished with the pod.
      const isOver = error instanceof VolumeError && isFinalError(error.cause)
      if (isOver && !(await isThere(volume))) await records.removePublished(volume).catch(() => undefined)
      throw error
    }
  }

  const expansion = (volume: PublishedVolume, csi: CsiMount): ExpandCall => {
    const { client, capabilities } = driverOf(csi.driver)
    if (!capabilities.expands) return undefined
    return (requiredBytes, secrets) =>
      client.expand({
        ...{ volumeId: csi.handle, volumePath: records.targetOf(volume), secrets },
        ...(capabilities.stages && { stagingTargetPath: records.stagingOf(volume) }),
        ...{ capacityRange: { requiredBytes }, volumeCapability: volumeCapability(csi, capabilities) },
      })
  }

  const unpublish = async (volume: PublishedVolume) => {
    const { client } = driverOf(volume.driver)
    const target = records.targetOf(volume)
    await refused('UnmountVolume.TearDown failed', () =>
      client.unpublish({ volumeId: volume.handle, targetPath: target }),
    )
    if (await isThere(volume)) {
      throw new VolumeError(`driver ${volume.driver} has unpublished ${target}, but it is still mounted`)
    }
    await records.removePublished(volume)
  }

  const unstage = async (volume: StagedVolume) => {
    const others = await records.published()
    if (others.some((one) => csiKeyOf(one) === csiKeyOf(volume))) return
    const { client } = driverOf(volume.driver)
    const staging = records.stagingOf(volume)
    staged.delete(csiKeyOf(volume))
    await refused('UnmountDevice failed', () => client.unstage({ volumeId: volume.handle, stagingTargetPath: staging }))
    await records.removeStaged(volume)
  }

  return { publish, expansion, unpublish, unstage }
}

/** What is one volume for its driver. */
export function csiKeyOf({ driver, handle }: StagedVolume): string {
  return `${driver}^${handle}`
}

/** The words of the driver, as the kubelet passes them on. */
async function refused(step: string, call: () => Promise<void>): Promise<void> {
  await call().catch((cause: unknown) => {
    throw new VolumeError(messageOf(cause), { step, cause })
  })
}

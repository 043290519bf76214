/**
 * Volumes of CSI drivers: staged once for the machine and published for each pod, in the order of the kubelet, and the way back
 * (pkg/volume/csi). All calls for one volume of a driver are made one after another.
 */
import { stat } from 'node:fs/promises'
import { csiVolumeName } from '../../../api/storage/volume-names.ts'
import type { Cell } from '../../../daemon/cell.ts'
import { turnsByKey } from '../../../daemon/limits/turns-by-key.ts'
import type { Log } from '../../../daemon/log.ts'
import { driverNotFound } from '../../pods/volumes/csi/csi-driver-words.ts'
import type { CsiMount } from '../../pods/volumes/csi/csi-mount.ts'
import type { VolumeEvents } from '../../pods/volumes/csi/volume-events.ts'
import type { VolumeGrowth } from '../../pods/volumes/csi/volume-growth.ts'
import { type ClaimVolume, VolumeError } from '../../pods/volumes/volume-store.ts'
import { mountPoints } from '../disk/mounts.ts'
import { csiCalls, csiKeyOf, type RegisteredDriver } from './csi-calls.ts'
import { csiExpansion } from './csi-expansion.ts'
import type { CsiRecords, PublishedVolume, StagedVolume } from './csi-records.ts'
import { patientWork } from './patient-work.ts'

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
  /** Reads what an earlier agent has left. Until then `volumesInUse` is undefined. */
  open(): Promise<void>
  /** The pods that have something here. */
  podUIDs(): Promise<readonly string[]>
}

export type CsiVolumesNeeds = {
  readonly records: CsiRecords
  readonly driver: (name: string) => RegisteredDriver | undefined
  readonly growth: VolumeGrowth
  readonly events: Pick<VolumeEvents, 'ofPod'>
  /** Those that must stay attached to this machine: each from before its driver is called, until the driver has unmounted it. */
  readonly writes: { readonly volumesInUse: Cell<readonly string[] | undefined> }
  readonly log: Log
  readonly isMounted?: (path: string) => Promise<boolean>
  readonly isDevice?: (path: string) => Promise<boolean>
  readonly patienceMs?: number
  readonly monotonicMs?: () => number
}

/** The kubelet asks again with each sync of the pod, about once a minute. The syncs of this agent are not exactly that far apart. */
const republishMs = 50_000

export function csiVolumes(needs: CsiVolumesNeeds): CsiVolumes {
  const { records, log, isMounted = isMountPoint } = needs
  const { isDevice = isBlockDevice, patienceMs = 2_000, monotonicMs = () => performance.now() } = needs
  const isThere = (volume: PublishedVolume) => (volume.isBlock ? isDevice : isMounted)(records.targetOf(volume))
  const inTurn = turnsByKey()
  const patient = patientWork(patienceMs)
  /** When, since this agent started. A call that is repeated afterwards changes nothing. */
  const published = new Map<string, number>()

  const calls = csiCalls({ records, driver: needs.driver, isThere })
  const { publish, unpublish, unstage } = calls
  const expansion = csiExpansion({ ...needs, calls, patient, inTurn, monotonicMs })
  const inUse = volumesInUse(records, needs.writes.volumesInUse)

  const releaseAll = async () => {
    for (const volume of await records.staged()) {
      if (needs.driver(volume.driver) === undefined) continue
      // That of another driver is not kept waiting by one that hangs.
      const late = `driver ${volume.driver} takes longer than usual to unstage ${volume.handle}`
      await patient
        .run(`unstage ${csiKeyOf(volume)}`, late, () =>
          inTurn(csiKeyOf(volume), () => unstage(volume).finally(inUse.read)),
        )
        .catch((error: unknown) => log.warn('Volume not unstaged', { ...volume, error }))
    }
    await inUse.read()
  }

  return {
    async place(podUID, claim, csi) {
      const { volume } = claim
      const { driver, handle, isAttachable, isInline } = csi
      const own: PublishedVolume = {
        ...{ podUID, volume, driver, handle },
        ...(isAttachable && { attachable: true }),
        ...(isInline && { isInline }),
        ...(csi.isBlock && { isBlock: true }),
        ...(claim.claim !== '' && { claim: claim.claim }),
        pod: csi.pod,
      }
      const key = placeKey(podUID, volume)
      const target = records.targetOf(own)
      const lastMs = published.get(key)
      let isNew = false
      if (lastMs === undefined) {
        isNew = !(await records.published(podUID)).some((one) => one.volume === volume) || !(await isThere(own))
        const late = `driver ${csi.driver} takes longer than usual to mount the volume`
        if (isNew) {
          await patient.run(key, late, () => inUse.during(own, () => inTurn(csiKeyOf(own), () => publish(own, csi))))
        }
        published.set(key, monotonicMs())
      } else if (csi.republish && monotonicMs() - lastMs >= republishMs) {
        published.set(key, monotonicMs())
        const late = `driver ${csi.driver} takes longer than usual to mount the volume again`
        await patient.run(`again ${key}`, late, () => inTurn(csiKeyOf(own), () => publish(own, csi)))
      }
      await expansion.onPlaced(own, { claim, csi, isNew })
      return { path: target, hasGroup: needs.driver(csi.driver)?.capabilities.mountsWithGroup === true }
    },
    async check(path) {
      if (!(await isMounted(path)) && !(await isDevice(path)))
        throw new VolumeError('its driver no longer has it mounted')
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
          .run(`remove ${key}`, late, () => inTurn(csiKeyOf(volume), () => unpublish(volume)))
          .then(() => {
            published.delete(key)
            expansion.forget(volume)
          })
          .catch((error: unknown) => failures.push(error))
      }
      if (own.length > 0) await releaseAll()
      if (failures.length > 0) throw failures[0]
    },
    release: releaseAll,
    open: inUse.read,
    podUIDs: async () => [...new Set((await records.published()).map(({ podUID }) => podUID))],
  }
}

/** Names of volumes, for the status of the node. */
function volumesInUse(records: Pick<CsiRecords, 'published' | 'staged'>, cell: Cell<readonly string[] | undefined>) {
  /** Not all of them have a record yet. */
  const placing = new Map<string, number>()
  let recorded: readonly string[] = []
  const set = () => cell.set([...new Set([...recorded, ...placing.keys()])].sort())
  const inTurn = turnsByKey()
  // One after another: an earlier reading would be without what was placed since.
  const read = () =>
    inTurn('', async () => {
      const found = [...(await records.published()), ...(await records.staged())]
      recorded = found.flatMap((one) => (one.attachable ? [csiVolumeName(one)] : []))
      set()
    })
  return {
    read,
    async during<T>(volume: StagedVolume, work: () => Promise<T>): Promise<T> {
      if (!volume.attachable) return await work()
      const name = csiVolumeName(volume)
      const count = (by: 1 | -1) => {
        const now = (placing.get(name) ?? 0) + by
        if (now > 0) placing.set(name, now)
        else placing.delete(name)
      }
      count(1)
      set()
      try {
        return await work()
      } finally {
        await read()
        count(-1)
        set()
      }
    },
  }
}

function placeKey(podUID: string, volume: string): string {
  return `${podUID}/${volume}`
}

async function isMountPoint(path: string): Promise<boolean> {
  return (await mountPoints()).some((point) => point.path === path)
}

async function isBlockDevice(path: string): Promise<boolean> {
  return (await stat(path).catch(() => undefined))?.isBlockDevice() === true
}

/** For a machine without drivers. */
export const noCsiVolumes: CsiVolumes = {
  async place(_podUID, _volume, { driver }) {
    throw new VolumeError(driverNotFound(driver))
  },
  async check() {
    throw new VolumeError('its driver no longer has it mounted')
  },
  remove: async () => undefined,
  release: async () => undefined,
  open: async () => undefined,
  podUIDs: async () => [],
}

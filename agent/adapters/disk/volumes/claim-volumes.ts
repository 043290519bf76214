/**
 * The volumes that the claims of pods are bound to: which pod of this machine has which. A record in memory for each lasts as long as the
 * pod, also beyond a restart of the agent; after a reboot volumes are placed again.
 */
import { realpath } from 'node:fs/promises'
import { join } from 'node:path'
import type { NodeVolumeOrder } from '../../../../api/storage/volume-messages.ts'
import { type TurnsByKey, turnsByKey } from '../../../../daemon/limits/turns-by-key.ts'
import { kubeletPlaceOf, type ShownVolume } from '../../../pods/volumes/kubelet-places.ts'
import { type ClaimVolume, VolumeError } from '../../../pods/volumes/volume-store.ts'
import { inUseElsewhere } from '../../../pods/volumes/wanted-claims.ts'
import type { CsiPlaced, CsiVolumes } from '../../csi/csi-volumes.ts'
import type { RemoteFiles } from '../remote/remote-files.ts'
import type { ShareMounts } from '../shares/share-mounts.ts'
import type { DeviceMounts } from './device-mounts.ts'
import { type GroupChanges, groupChanges } from './group-changes.ts'
import { giveToGroup } from './group-ownership.ts'
import { checkHostPath, checkLocalDevice, refuseDevice } from './host-files.ts'
import { type Placed, type PlacedVolumes, type PlacedVolumesNeeds, placedVolumes } from './placed-volumes.ts'
import type { VolumePool } from './pool.ts'
import type { PoolFiles } from './pool-files.ts'
import type { VolumePools } from './pools.ts'

export interface ClaimVolumes {
  /** Gives where it is on this machine. */
  place(podUID: string, name: string, volume: ClaimVolume): Promise<string>
  /** Where the volume is that was placed before. */
  earlier(podUID: string, name: string): Promise<string>
  /** The pod goes: its files are not changed any more. */
  stop(podUID: string): void
  /** Where it was placed for the pod; undefined: it was not. */
  placedAt(podUID: string, name: string): Promise<string | undefined>
  /** Those of the pod that the kubelet has in its folders, too, unless their driver has put them there. */
  shown(podUID: string): Promise<readonly ShownVolume[]>
  /** Unmounts the shares and devices that no pod has. */
  release(): Promise<void>
  /** Moves the folder of the volume to the trash of its pool or share, or deletes it there, unless a pod has it. */
  discard(order: NodeVolumeOrder): Promise<void>
  /** Does this unless a pod has the volume; none gets it meanwhile. Throws VolumeError if one has. */
  whileUnused<T>(order: NodeVolumeOrder, act: (pool: VolumePool) => Promise<T>): Promise<T>
}

export type ClaimVolumesNeeds = Omit<PlacedVolumesNeeds, 'files'> & {
  readonly files: PoolFiles
  readonly remote: RemoteFiles
  readonly pools: VolumePools
  readonly shares: ShareMounts
  readonly devices: DeviceMounts
  readonly csi: Pick<CsiVolumes, 'place' | 'check'>
  /** A worker waits so long for the files of a volume to get their group. The work goes on afterwards. */
  readonly patienceMs?: number
}

export function claimVolumes(needs: ClaimVolumesNeeds): ClaimVolumes {
  const { pools, shares, devices, csi, files, patienceMs = 2_000 } = needs
  const placed = placedVolumes(needs)
  const inTurn = turnsByKey()
  // A volume in work stays mounted when its pod goes.
  const changes = groupChanges(patienceMs, { stopped: () => void mounted.release().catch(() => undefined) })
  const mounted = mountedVolumes([shares, devices], { placed, changes, inTurn })

  const check = (record: Placed) => checkPlaced(record, needs)

  /** It exists there. */
  const located = async (podUID: string, volume: ClaimVolume): Promise<CsiPlaced> => {
    if (volume.csi !== undefined) return await csi.place(podUID, volume, volume.csi)
    return { path: await locatedHere(volume), hasGroup: false }
  }
  const locatedHere = async (volume: ClaimVolume): Promise<string> => {
    const { uid, source, path, share, pool, fsType, isBlock, isReadOnly = false } = volume
    if (share !== undefined) return await shares.place(uid, share)
    if (pool !== undefined) return await pools.folder({ ...volume, pool, hasGroup: volume.group !== undefined })
    if (source === 'local' && !isBlock && (await files.checkLocalPath(path)) === 'device')
      return await devices.place(uid, path, { fsType, isReadOnly })
    await check(volume)
    return path
  }

  /** The volume, or another one of this path: its files are of the pod that came first. */
  const othersHave = async (podUID: string, { uid, source }: ClaimVolume, path: string): Promise<boolean> =>
    placed.othersHave(podUID, (one) => one.uid === uid || (source === 'local' && one.path === path))

  /** Gives the files to the group of the pod, unless another one came first. Throws VolumeError while that is not done. */
  const owned = async (podUID: string, volume: ClaimVolume, { path, hasGroup }: CsiPlaced): Promise<void> => {
    const { group, groupOnMismatch = false } = volume
    const changed = filesOf(volume, path)
    changes.refuseForOther(changed, podUID)
    if (group === undefined || hasGroup) return
    if ((await othersHave(podUID, volume, path)) || (await files.remoteType(path))) return
    await changes.give(changed, podUID, async (signal) =>
      giveToGroup(await realpath(path), group, { onMismatchOnly: groupOnMismatch, signal }),
    )
  }

  /** Throws VolumeError while a pod has it. `folder`: in a pool. */
  const checkUnused = async (volume: string, folder?: string): Promise<void> => {
    // Another volume may have the same folder, or a part of it.
    const pod = await placed.podWith(
      ({ uid, path }) => uid === volume || (folder !== undefined && `${path}/`.startsWith(`${folder}/`)),
    )
    if (pod !== undefined) throw new VolumeError(`the pod with the UID ${pod} has it mounted`)
  }
  const whileUnused: ClaimVolumes['whileUnused'] = (order, act) =>
    inTurn(order.uid, async () => {
      const pool = await pools.withID(order.pool)
      await checkUnused(order.uid, join(pool.source.path, order.folder))
      return await act(pool)
    })

  return {
    place: (podUID, name, volume) =>
      inTurn(volume.uid, async () => {
        const record = await placed.read(podUID, name)
        const isPlaced = record?.uid === volume.uid
        if (!isPlaced && volume.isForOnePod && (await placed.othersHave(podUID, ({ uid }) => uid === volume.uid))) {
          throw new VolumeError(inUseElsewhere)
        }
        const { path, hasGroup } = await located(podUID, volume)
        const place = kubeletPlaceOf(volume)
        if (isPlaced && record.place?.join() === place?.join()) return path
        if (!isPlaced) await owned(podUID, volume, { path, hasGroup })
        await placed.write(podUID, name, { ...volume, path, place })
        changes.placed(filesOf(volume, path), podUID)
        return path
      }),
    async earlier(podUID, name) {
      const record = await placed.read(podUID, name)
      if (record === undefined) throw new VolumeError('it was not mounted before')
      await check(record)
      return record.path
    },
    placedAt: async (podUID, name) => (await placed.read(podUID, name))?.path,
    shown: async (podUID) => (await placed.of(podUID)).flatMap(({ place, path }) => (place ? [{ place, path }] : [])),
    release: mounted.release,
    stop: changes.stop,
    discard: (order) => {
      const { uid, share } = order
      if (share === undefined) return whileUnused(order, (pool) => pool.discard(order))
      return inTurn(uid, async () => {
        await checkUnused(uid)
        await shares.discard(order, share)
      })
    },
    whileUnused,
  }
}

type VolumeMounts = Pick<ShareMounts, 'uids' | 'pathOf' | 'unmount'>
type MountUses = {
  readonly placed: Pick<PlacedVolumes, 'podWith'>
  readonly changes: Pick<GroupChanges, 'isChanging'>
  readonly inTurn: TurnsByKey
}

/** Volumes that are mounted once for all pods of this machine. `release` unmounts those that none has. */
function mountedVolumes(kinds: readonly VolumeMounts[], { placed, changes, inTurn }: MountUses) {
  const releaseUnused = async (uid: string, mounts: VolumeMounts): Promise<void> => {
    if (changes.isChanging(mounts.pathOf(uid))) return
    if ((await placed.podWith((one) => one.uid === uid)) === undefined) await mounts.unmount(uid)
  }
  return {
    async release(): Promise<void> {
      for (const mounts of kinds) {
        for (const uid of await mounts.uids()) await inTurn(uid, () => releaseUnused(uid, mounts))
      }
    },
  }
}

/** Names the files of a volume. Volumes of one path have the same files; a driver has a path for each pod. */
function filesOf({ source, uid }: ClaimVolume, path: string): string {
  return source === 'local' ? path : uid
}

type CheckNeeds = Pick<ClaimVolumesNeeds, 'shares' | 'csi' | 'devices' | 'remote'> & { readonly files: PoolFiles }

/** Throws VolumeError where the volume is no longer there. */
async function checkPlaced(
  { uid, source, path, type, isBlock }: Placed,
  { shares, csi, devices, remote, files }: CheckNeeds,
): Promise<void> {
  if (source === 'share') return shares.check(uid)
  if (source === 'csi') return csi.check(path)
  if (isBlock) return checkLocalDevice(path)
  if (source === 'local' && path === devices.pathOf(uid)) return devices.check(uid)
  if (source === 'local') refuseDevice(path, await files.checkLocalPath(path))
  else await checkHostPath(path, type, remote)
}

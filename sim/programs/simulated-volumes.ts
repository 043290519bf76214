/** The volumes of a node whose machine keeps data: the real pools, records, trash and claims of pods, over the files of the machine. */
import { noCsiVolumes } from '../../agent/adapters/csi/csi-volumes.ts'
import { remoteFiles } from '../../agent/adapters/disk/remote/remote-files.ts'
import { shareMounts } from '../../agent/adapters/disk/shares/share-mounts.ts'
import { claimVolumes } from '../../agent/adapters/disk/volumes/claim-volumes.ts'
import { deviceMounts } from '../../agent/adapters/disk/volumes/device-mounts.ts'
import { diskTrash, knownStores } from '../../agent/adapters/disk/volumes/disk-trash.ts'
import { volumePools } from '../../agent/adapters/disk/volumes/pools.ts'
import { type VolumeOrdersNeeds, volumeOrders } from '../../agent/pods/volumes/volume-orders.ts'
import type { ClaimVolume, VolumeStore } from '../../agent/pods/volumes/volume-store.ts'
import type { FakeVolumes } from '../../agent/testing/fake-volumes.ts'
import type { Pool } from '../../api/storage/pools.ts'
import type { ProgramLife } from '../world/life.ts'
import { agentFolders, podsFolder, type VolumeDisk } from '../world/volume-disk.ts'

export type SimulatedVolumesNeeds = {
  readonly life: ProgramLife
  readonly files: VolumeDisk
  /** For volumes that are not of claims. */
  readonly others: FakeVolumes
  readonly capacityBytes: number
  /** A pod has the volume of a claim from now on. */
  readonly placed: (podUID: string, volume: ClaimVolume, folder: string) => void
}

export interface SimulatedVolumes {
  readonly store: VolumeStore
  /** Those that are there now. */
  pools(): Promise<readonly Pool[]>
  orders(
    needs: Pick<VolumeOrdersNeeds, 'controlPlane' | 'event' | 'writes' | 'clock' | 'log'>,
  ): ReturnType<typeof volumeOrders>
}

export function simulatedVolumes(needs: SimulatedVolumesNeeds): SimulatedVolumes {
  const { life, others, capacityBytes, placed } = needs
  const files = needs.files.seenBy(life)
  const { dataDirectory, memoryDirectory } = agentFolders
  const folderOf = (podUID: string) => `${podsFolder}/${podUID}/claims`
  const pools = volumePools([], agentFolders, files)
  const remote = remoteFiles()
  const claims = claimVolumes({
    ...{ folderOf, pods: podsFolder, remote, pools, files, csi: noCsiVolumes },
    shares: shareMounts({ folder: memoryDirectory, remote }),
    devices: deviceMounts({ folder: memoryDirectory }),
  })
  let released = () => {}
  const store: VolumeStore = {
    ...others,
    async place(podUID, volume) {
      if (volume.kind === 'earlierClaim') return claims.earlier(podUID, volume.name)
      if (volume.kind !== 'claim') return others.place(podUID, volume)
      const folder = await claims.place(podUID, volume.name, volume)
      placed(podUID, volume, folder)
      return folder
    },
    placedAt: (podUID, name) => claims.placedAt(podUID, name),
    async remove(podUID, signal) {
      claims.stop(podUID)
      await others.remove(podUID)
      await files.removeFolder(`${podsFolder}/${podUID}`, signal)
      released()
    },
    podUIDs: async () => [
      ...new Set([...(await others.podUIDs()), ...(await files.names(podsFolder).catch(() => []))]),
    ],
  }
  return {
    store,
    pools: async () => (await pools.open()).flatMap(({ state }) => ('id' in state ? [state] : [])),
    orders: (own) =>
      volumeOrders({
        ...own,
        trash: diskTrash({
          ...{ pools, discard: claims.discard, shareKinds: async () => [] },
          usage: async () => ({ capacityBytes, availableBytes: capacityBytes, usedBytes: 0, inodes: 0, inodesFree: 0 }),
          counter: { usage: async () => ({ usedBytes: 4_096, inodesUsed: 1 }) },
        }),
        // Copies go through sessions, which are not in these worlds.
        moves: { follow: async () => [], onChange: () => undefined },
        onRelease(listener) {
          released = listener
        },
        stores: knownStores(dataDirectory, files),
      }),
  }
}

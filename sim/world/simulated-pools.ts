/** The pools of a machine of the world, which have room for each volume. Folders are not kept: their data is not of this world. */

import type { VolumeOrdersNeeds } from '../../agent/pods/volumes/volume-orders.ts'
import { type VolumeOrders, volumeOrders } from '../../agent/pods/volumes/volume-orders.ts'
import type { VolumeTrash } from '../../agent/pods/volumes/volume-trash.ts'
import type { Pool } from '../../api/storage/pools.ts'
import { uuidOf } from '../../api/text/uuid.ts'
import { randomSource } from './random-source.ts'

/** The pool of the data directory of the machine with this number. */
export function usualPool(number: number): Pool {
  return { id: uuidOf(randomSource(number).next), path: '/var/lib/bramble/agent/volumes', default: true }
}

type PoolOrderNeeds = Omit<VolumeOrdersNeeds, 'trash' | 'moves' | 'onRelease' | 'stores'> & {
  readonly pools: readonly Pool[]
  readonly capacityBytes: number
}

/** The loop of the agent that reports its pools, and follows orders for their volumes. */
export function simulatedPoolOrders({ pools, capacityBytes, ...needs }: PoolOrderNeeds): VolumeOrders {
  let known: readonly string[] = []
  return volumeOrders({
    ...needs,
    trash: roomyTrash(pools, capacityBytes),
    moves: { follow: async () => [], onChange: () => undefined },
    onRelease: () => undefined,
    stores: {
      load: async () => known,
      save: async (next) => {
        known = next
      },
    },
  })
}

function roomyTrash(pools: readonly Pool[], capacityBytes: number): VolumeTrash {
  return {
    discard: async () => undefined,
    shareKinds: async () => [],
    isEmpty: async () => false,
    age: async () => undefined,
    poolStates: () => pools,
    poolUsage: async () => pools.map(({ id }) => ({ id, capacityBytes, availableBytes: capacityBytes })),
    volumeUsage: async () => [],
    trashed: async () => [],
  }
}

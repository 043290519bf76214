/** Changes of CSIDrivers, CSINodes and CSIStorageCapacities → the scheduler's cache, and the pods that may fit then. */
import type { StoredObject } from '../../store/store.ts'
import type { ClusterChange } from '../hints.ts'
import { hasGrown } from './csi-cache.ts'
import type { VolumeCache } from './volume-cache.ts'

type Observe<T> = (present: T | undefined, previous: T | undefined) => void

export interface CsiObservers {
  readonly observeCsiDriver: Observe<StoredObject<'csidrivers'>>
  readonly observeCsiNode: Observe<StoredObject<'csinodes'>>
  readonly observeCapacity: Observe<StoredObject<'csistoragecapacities'>>
}

export function csiObservers(
  volumes: Pick<VolumeCache, 'csi' | 'storageClass' | 'storageClasses'>,
  notify: (change: ClusterChange) => void,
): CsiObservers {
  return {
    observeCsiDriver(present, previous) {
      const name = (present ?? previous)?.metadata.name
      if (name === undefined) return
      volumes.csi.putDriver(name, present)
      if (present?.spec?.storageCapacity === previous?.spec?.storageCapacity) return
      for (const storageClass of volumes.storageClasses()) {
        if (storageClass.provisioner === name) notify({ change: 'storage class', storageClass })
      }
    },
    observeCsiNode(present, previous) {
      const name = (present ?? previous)?.metadata.name
      if (name === undefined) return
      volumes.csi.putNode(name, present)
      notify({ change: 'node', nodeName: name })
    },
    observeCapacity(present, previous) {
      volumes.csi.putCapacity(present, previous)
      const storageClass = volumes.storageClass(present?.storageClassName ?? '')
      if (present === undefined || storageClass === undefined || !hasGrown(present, previous)) return
      notify({ change: 'storage class', storageClass })
    },
  }
}

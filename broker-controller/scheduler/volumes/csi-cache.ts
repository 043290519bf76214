/** What CSI drivers report that limits where their volumes may be: how many a node takes, and how much room there is for a class. */
import { compareQuantities, type QuantityLike } from '../../../api/quantity.ts'
import { type LabelMatcher, labelMatcher, requirementsOf } from '../../../api/selectors.ts'
import { requestOfClaim } from '../../../api/storage/volume-matching.ts'
import { keyText } from '../../store/informer.ts'
import type { StoredObject } from '../../store/store.ts'

export interface CsiView {
  /**
   * The nodes on which there is room for a new volume of this claim, each by their labels; undefined: its driver does not report that
   * (hasEnoughCapacity in pkg/scheduler/framework/plugins/volumebinding).
   */
  roomFor(
    claim: StoredObject<'persistentvolumeclaims'>,
    storageClass: StoredObject<'storageclasses'>,
  ): readonly LabelMatcher[] | undefined
  /** How many volumes of the driver the node may have; undefined: any number. */
  limitOf(node: string, driver: string): number | undefined
}

export interface CsiCache extends CsiView {
  putDriver(name: string, driver: StoredObject<'csidrivers'> | undefined): void
  putNode(name: string, node: StoredObject<'csinodes'> | undefined): void
  putCapacity(
    present: StoredObject<'csistoragecapacities'> | undefined,
    previous: StoredObject<'csistoragecapacities'> | undefined,
  ): void
}

type Room = { readonly size: QuantityLike; readonly isThere: LabelMatcher }

export function csiCache(): CsiCache {
  /** Those that report their capacity. */
  const reporting = new Set<string>()
  const limits = new Map<string, ReadonlyMap<string, number>>()
  const rooms = new Map<string, Map<string, Room>>()
  const setRoom = (
    { storageClassName, metadata }: StoredObject<'csistoragecapacities'>,
    room: Room | undefined,
  ): void => {
    const ofClass = rooms.get(storageClassName) ?? new Map<string, Room>()
    if (room === undefined) ofClass.delete(keyText(metadata))
    else ofClass.set(keyText(metadata), room)
    if (ofClass.size === 0) rooms.delete(storageClassName)
    else rooms.set(storageClassName, ofClass)
  }
  return {
    roomFor(claim, { provisioner, metadata }) {
      if (!reporting.has(provisioner)) return undefined
      const request = requestOfClaim(claim)
      const large = [...(rooms.get(metadata.name)?.values() ?? [])].filter(
        ({ size }) => compareQuantities(size, request) >= 0,
      )
      return large.map(({ isThere }) => isThere)
    },
    limitOf: (node, driver) => limits.get(node)?.get(driver),
    putDriver(name, driver) {
      if (driver?.spec?.storageCapacity === true) reporting.add(name)
      else reporting.delete(name)
    },
    putNode(name, node) {
      const counts = (node?.spec?.drivers ?? []).flatMap(({ name: driver, allocatable }): [string, number][] =>
        allocatable?.count === undefined ? [] : [[driver, allocatable.count]],
      )
      if (counts.length === 0) limits.delete(name)
      else limits.set(name, new Map(counts))
    },
    putCapacity(present, previous) {
      if (previous !== undefined) setRoom(previous, undefined)
      if (present !== undefined) setRoom(present, roomIn(present))
    },
  }
}

/** undefined: there is none, or no node reaches it. */
function roomIn({ maximumVolumeSize, capacity, nodeTopology }: StoredObject<'csistoragecapacities'>): Room | undefined {
  const size = maximumVolumeSize ?? capacity
  const requirements = requirementsOf(nodeTopology)
  if (size === undefined || requirements === undefined || !requirements.ok) return undefined
  return { size, isThere: labelMatcher(requirements.value) }
}

/** It may take a volume that it could not take before. */
export function hasGrown(
  present: StoredObject<'csistoragecapacities'>,
  previous: StoredObject<'csistoragecapacities'> | undefined,
): boolean {
  const [now, before] = [present, previous].map((one) => one?.maximumVolumeSize ?? one?.capacity)
  return now !== undefined && (before === undefined || compareQuantities(now, before) > 0)
}

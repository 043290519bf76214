/** core/v1 PersistentVolume (pkg/registry/core/persistentvolume/strategy.go). */

import { withFinalizer } from '../../../../api/deletion/finalizers.ts'
import { amountNamed } from '../../../../api/limits/resource-amounts.ts'
import type { AnyObject } from '../../../../api/meta.ts'
import { formatQuantity, zeroQuantity } from '../../../../api/quantity.ts'
import { resources } from '../../../../api/resources.ts'
import type { PersistentVolume } from '../../../../api/storage/persistent-volume.ts'
import { classOfVolume } from '../../../../api/storage/volume-matching.ts'
import { volumeFinalizers } from '../../../../api/storage/volume-names.ts'
import { shortAccessModes } from '../../../../api/storage/volume-problems.ts'
import { persistentVolumeWarnings } from '../../../../api/warnings/storage-warnings.ts'
import { rfc3339 } from '../../../../daemon/clock.ts'
import { ageOf, type TableOf, tableColumns } from '../../handlers/cells.ts'
import { type KindStrategy, replaceStatus, withWrittenMetadata } from '../../handlers/strategy.ts'
import { persistentVolumeChangeProblems, persistentVolumeProblems } from './persistent-volume-problems.ts'

const persistentVolumeTable: TableOf<PersistentVolume> = {
  columns: tableColumns(
    ...['Name', 'Capacity', 'Access Modes', 'Reclaim Policy', 'Status', 'Claim', 'StorageClass'],
    ...['VolumeAttributesClass', 'Reason', 'Age', 'VolumeMode*'],
  ),
  cells: ({ metadata, spec = {}, status = {} }, nowMs) => [
    metadata.name ?? '',
    formatQuantity(amountNamed(spec.capacity ?? {}, 'storage') ?? zeroQuantity),
    shortAccessModes(spec.accessModes),
    spec.persistentVolumeReclaimPolicy ?? '',
    metadata.deletionTimestamp === undefined ? (status.phase ?? '') : 'Terminating',
    spec.claimRef === undefined ? '' : `${spec.claimRef.namespace ?? ''}/${spec.claimRef.name ?? ''}`,
    classOfVolume({ metadata, spec }),
    spec.volumeAttributesClassName ?? '<unset>',
    status.reason ?? '',
    ageOf(metadata.creationTimestamp, nowMs),
    spec.volumeMode ?? '<unset>',
  ],
}

export const persistentVolumeStrategy: KindStrategy<PersistentVolume> = {
  ...resources.persistentvolumes,
  returnsDeletedObject: true,
  table: persistentVolumeTable,
  selectableFields: [],
  subresources: {
    status: { access: 'update', writes: 'status', change: withStatusOf, validateUpdate: () => [] },
  },
  withDefaults: (volume) => {
    const { spec = {}, status = {} } = volume
    const { persistentVolumeReclaimPolicy, volumeMode = 'Filesystem', hostPath } = spec
    return {
      ...volume,
      spec: {
        ...spec,
        persistentVolumeReclaimPolicy: persistentVolumeReclaimPolicy || 'Retain',
        volumeMode,
        ...(hostPath && { hostPath: { ...hostPath, type: hostPath.type ?? '' } }),
      },
      status: { ...status, phase: status.phase || 'Pending' },
    }
  },
  prepareForCreate: (volume, { nowMs }) => ({
    ...withFinalizer(withoutAttributesClass(volume), volumeFinalizers.volume),
    status: { phase: 'Pending', lastPhaseTransitionTime: rfc3339(nowMs) },
  }),
  prepareForUpdate: (_, now) => withoutAttributesClass(now),
  validateCreate: persistentVolumeProblems,
  validateUpdate: persistentVolumeChangeProblems,
  warningsOnCreate: persistentVolumeWarnings,
  warningsOnUpdate: (_, now) => persistentVolumeWarnings(now),
}

/** The feature VolumeAttributesClass is off by default in Kubernetes 1.32: the field is dropped (DropDisabledSpecFields). */
function withoutAttributesClass(volume: PersistentVolume): PersistentVolume {
  const { volumeAttributesClassName: _, ...spec } = volume.spec ?? {}
  return { ...volume, spec }
}

/** Another phase has a time of its own, unless the client sets one. */
function withStatusOf(stored: PersistentVolume, wanted: PersistentVolume, now: string): AnyObject {
  const [before = {}, after = {}] = [stored.status, wanted.status]
  const { lastPhaseTransitionTime: old } = before
  const { lastPhaseTransitionTime: given } = after
  const isMoved = before.phase !== after.phase
  const time = isMoved && (given === undefined || given === old) ? now : (given ?? old)
  const status = { ...after, ...(time !== undefined && { lastPhaseTransitionTime: time }) }
  return replaceStatus(withWrittenMetadata(stored, wanted), status)
}

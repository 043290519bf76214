/** core/v1 PersistentVolumeClaim (pkg/registry/core/persistentvolumeclaim/strategy.go). */
import { withFinalizer } from '../../../../api/deletion/finalizers.ts'
import { amountNamed } from '../../../../api/limits/resource-amounts.ts'
import { compareQuantities, formatQuantity, zeroQuantity } from '../../../../api/quantity.ts'
import { resources } from '../../../../api/resources.ts'
import type {
  PersistentVolumeClaim,
  PersistentVolumeClaimSpec,
} from '../../../../api/storage/persistent-volume-claim.ts'
import { defaultStorageClass } from '../../../../api/storage/storage-class.ts'
import { classOfClaim, requestOfClaim } from '../../../../api/storage/volume-matching.ts'
import { volumeFinalizers } from '../../../../api/storage/volume-names.ts'
import { shortAccessModes } from '../../../../api/storage/volume-problems.ts'
import { claimWarnings } from '../../../../api/warnings/storage-warnings.ts'
import { restrictClaim } from '../../authorization/node-restriction.ts'
import { ageOf, type TableOf, tableColumns } from '../../handlers/cells.ts'
import { forbid } from '../../handlers/resource-request.ts'
import { type KindStrategy, statusSubresource } from '../../handlers/strategy.ts'
import { claimViolation } from '../limits/limit-ranger.ts'
import { claimChangeProblems, claimProblems, claimStatusProblems } from './claim-problems.ts'

const claimTable: TableOf<PersistentVolumeClaim> = {
  columns: tableColumns(
    ...['Name', 'Status', 'Volume', 'Capacity', 'Access Modes', 'StorageClass', 'VolumeAttributesClass'],
    ...['Age', 'VolumeMode*'],
  ),
  cells: (claim, nowMs) => {
    const { metadata, spec = {}, status = {} } = claim
    const hasVolume = (spec.volumeName ?? '') !== ''
    return [
      metadata.name ?? '',
      metadata.deletionTimestamp === undefined ? (status.phase ?? '') : 'Terminating',
      spec.volumeName ?? '',
      hasVolume ? formatQuantity(amountNamed(status.capacity ?? {}, 'storage') ?? zeroQuantity) : '',
      hasVolume ? shortAccessModes(status.accessModes) : '',
      classOfClaim(claim) ?? '',
      spec.volumeAttributesClassName ?? '<unset>',
      ageOf(metadata.creationTimestamp, nowMs),
      spec.volumeMode ?? '<unset>',
    ]
  },
}

export const persistentVolumeClaimStrategy: KindStrategy<PersistentVolumeClaim> = {
  ...resources.persistentvolumeclaims,
  returnsDeletedObject: true,
  table: claimTable,
  selectableFields: [],
  subresources: { status: { ...statusSubresource, validateUpdate: (_, now) => claimStatusProblems(now) } },
  nodeRestriction: { problem: restrictClaim },
  withDefaults: (claim) => ({
    ...claim,
    spec: { ...claim.spec, volumeMode: claim.spec?.volumeMode ?? 'Filesystem' },
    status: { ...claim.status, phase: claim.status?.phase || 'Pending' },
  }),
  prepareForCreate: ({ status: _, ...claim }) => ({
    ...withFinalizer(claim, volumeFinalizers.claim),
    spec: withSources(claim.spec ?? {}, undefined),
  }),
  prepareForUpdate: (old, now) => ({ ...now, spec: withSources(now.spec ?? {}, old.spec) }),
  validateCreate: claimProblems,
  validateUpdate: claimChangeProblems,
  warningsOnCreate: claimWarnings,
  warningsOnUpdate: (_, now) => claimWarnings(now),
  async admitCreate(created, _, { store }) {
    const ranges = (await store.list('limitranges', created.metadata.namespace)).items
    const classes = classOfClaim(created) === undefined ? (await store.list('storageclasses')).items : []
    const storageClassName = defaultStorageClass(classes)
    return {
      mutate: (claim) =>
        storageClassName === undefined ? claim : { ...claim, spec: { ...claim.spec, storageClassName } },
      decorate(claim) {
        const because = claimViolation(claim, ranges)
        if (because !== undefined) throw refused(claim, because)
        return claim
      },
    }
  },
  /** Only of a bound claim: another one was refused before (plugin/pkg/admission/storage/persistentvolume/resize/admission.go). */
  async admitUpdate(claim, { store }, { old, subresource }) {
    if (subresource !== '' || !isGrown(old, claim)) return
    const name = classOfClaim(claim) ?? ''
    const found = name === '' ? undefined : await store.get('storageclasses', { namespace: '', name })
    if (found?.allowVolumeExpansion === true) return
    const because =
      'only dynamically provisioned pvc can be resized and the storageclass that provisions the pvc must support resize'
    throw refused(claim, because)
  },
}

function refused({ metadata: { name = '' } }: PersistentVolumeClaim, because: string) {
  return forbid(resources.persistentvolumeclaims, name, because)
}

function isGrown(old: PersistentVolumeClaim, now: PersistentVolumeClaim): boolean {
  return compareQuantities(requestOfClaim(now), requestOfClaim(old)) > 0
}

/**
 * Each of the two sources of data is filled in from the other one. A source of another kind than a claim or a snapshot is
 * dropped from the older field, and one of another namespace from the newer (DropDisabledFields, NormalizeDataSources).
 * `old`: what it replaces.
 */
function withSources(given: PersistentVolumeClaimSpec, old: PersistentVolumeClaimSpec | undefined) {
  const { dataSource, dataSourceRef, volumeAttributesClassName: _, ...spec } = given
  const namespace = dataSourceRef?.namespace ?? ''
  const ref = namespace !== '' && old?.dataSourceRef === undefined ? undefined : dataSourceRef
  const wasGiven = old?.dataSource !== undefined || old?.dataSourceRef !== undefined
  const source = wasGiven || ref !== undefined || isUsualSource(dataSource) ? dataSource : undefined
  const [filledSource, filledRef] = [source ?? (namespace === '' ? withoutNamespace(ref) : undefined), ref ?? source]
  return {
    ...spec,
    ...(filledSource && { dataSource: filledSource }),
    ...(filledRef && { dataSourceRef: filledRef }),
  }
}

type Reference = NonNullable<PersistentVolumeClaimSpec['dataSourceRef']>

function withoutNamespace(ref: Reference | undefined): PersistentVolumeClaimSpec['dataSource'] {
  if (ref === undefined) return undefined
  const { namespace: _, ...local } = ref
  return local
}

function isUsualSource(source: PersistentVolumeClaimSpec['dataSource']): boolean {
  const { apiGroup = '', kind = '' } = source ?? {}
  return (
    (kind === 'PersistentVolumeClaim' && apiGroup === '') ||
    (kind === 'VolumeSnapshot' && apiGroup === 'snapshot.storage.k8s.io')
  )
}

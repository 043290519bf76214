/** storage.k8s.io/v1 CSIStorageCapacity (pkg/registry/storage/csistoragecapacity/strategy.go, pkg/apis/storage/validation/validation.go). */
import { dnsSubdomainProblem } from '../../../../api/names.ts'
import { invalid, type Problem } from '../../../../api/problem.ts'
import { compareQuantities, formatQuantity, parseQuantity, zeroQuantity } from '../../../../api/quantity.ts'
import { resources } from '../../../../api/resources.ts'
import type { CSIStorageCapacity } from '../../../../api/storage/csi-storage-capacity.ts'
import { problemsWith } from '../../../../api/validation/metadata-validation.ts'
import { selectorProblems } from '../../../../api/validation/scheduling-validation.ts'
import { storageCapacityWarnings } from '../../../../api/warnings/storage-warnings.ts'
import { equalJSON } from '../../../store/equal-json.ts'
import { type TableOf, tableColumns } from '../../handlers/cells.ts'
import type { KindStrategy } from '../../handlers/strategy.ts'

const storageCapacityTable: TableOf<CSIStorageCapacity> = {
  columns: tableColumns('Name', 'StorageClassName', 'Capacity'),
  cells: ({ metadata, storageClassName, capacity }) => [
    metadata.name ?? '',
    storageClassName,
    capacity === undefined ? '<unset>' : formatQuantity(parseQuantity(capacity)),
  ],
}

export const csiStorageCapacityStrategy: KindStrategy<CSIStorageCapacity> = {
  ...resources.csistoragecapacities,
  needsVersion: true,
  table: storageCapacityTable,
  selectableFields: [],
  subresources: {},
  validateCreate: capacityProblems,
  validateUpdate: (old, now) => [...capacityProblems(now), ...immutableProblems(old, now)],
  warningsOnCreate: storageCapacityWarnings,
  warningsOnUpdate: (_, now) => storageCapacityWarnings(now),
}

function capacityProblems({ nodeTopology, storageClassName, capacity }: CSIStorageCapacity): readonly Problem[] {
  const isNegative = capacity !== undefined && compareQuantities(capacity, zeroQuantity) < 0
  return [
    ...selectorProblems('nodeTopology', nodeTopology),
    ...problemsWith('storageClassName', storageClassName, dnsSubdomainProblem),
    ...(isNegative ? [invalid('capacity', capacity, 'must be greater than or equal to 0')] : []),
  ]
}

/** What a driver was asked stays; what it answered changes. */
function immutableProblems(old: CSIStorageCapacity, now: CSIStorageCapacity): readonly Problem[] {
  return (['nodeTopology', 'storageClassName'] as const)
    .filter((field) => !equalJSON(old[field] ?? null, now[field] ?? null))
    .map((field) => invalid(field, now[field], 'field is immutable'))
}

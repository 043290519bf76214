/** coordination.k8s.io/v1 Lease (pkg/registry/coordination/lease/strategy.go). */
import type { Lease } from '../../../api/lease.ts'
import { invalid, type Problem } from '../../../api/problem.ts'
import { resources } from '../../../api/resources.ts'
import { restrictLease } from '../authorization/node-restriction.ts'
import { ageOf, type TableOf, tableColumns } from '../handlers/cells.ts'
import type { KindStrategy } from '../handlers/strategy.ts'

const leaseTable: TableOf<Lease> = {
  columns: tableColumns('Name', 'Holder', 'Age'),
  cells: ({ metadata, spec }, nowMs) => [
    metadata.name ?? '',
    spec?.holderIdentity ?? '',
    ageOf(metadata.creationTimestamp, nowMs),
  ],
}

export const leaseStrategy: KindStrategy<Lease> = {
  ...resources.leases,
  takesAnyFinalizer: true,
  createdByUpdate: true,
  needsVersion: true,
  table: leaseTable,
  selectableFields: [],
  subresources: {},
  validateCreate: leaseProblems,
  validateUpdate: (_, now) => leaseProblems(now),
  nodeRestriction: { problem: restrictLease },
}

function leaseProblems({ spec = {} }: Lease): readonly Problem[] {
  const { leaseDurationSeconds, leaseTransitions } = spec
  return [
    ...(leaseDurationSeconds !== undefined && leaseDurationSeconds <= 0
      ? [invalid('spec.leaseDurationSeconds', leaseDurationSeconds, 'must be greater than 0')]
      : []),
    ...(leaseTransitions !== undefined && leaseTransitions < 0
      ? [invalid('spec.leaseTransitions', leaseTransitions, 'must be greater than or equal to 0')]
      : []),
  ]
}

/** storage.k8s.io/v1 CSINode (pkg/registry/storage/csinode/strategy.go, pkg/apis/storage/validation/validation.go). */
import { qualifiedNameProblem } from '../../../../api/names.ts'
import { duplicate, invalid, type Problem, required } from '../../../../api/problem.ts'
import { resources } from '../../../../api/resources.ts'
import type { CSINode, CSINodeDriver } from '../../../../api/storage/csi-node.ts'
import { problemsWith } from '../../../../api/validation/metadata-validation.ts'
import { repeatedPlaces } from '../../../../api/validation/repeated.ts'
import { csiDriverNameProblems } from '../../../../api/validation/volume-validation.ts'
import { equalJSON } from '../../../store/equal-json.ts'
import { restrictCSINode } from '../../authorization/node-restriction.ts'
import { ageOf, type TableOf, tableColumns } from '../../handlers/cells.ts'
import type { KindStrategy } from '../../handlers/strategy.ts'

const csiNodeTable: TableOf<CSINode> = {
  columns: tableColumns('Name', 'Drivers#', 'Age'),
  cells: ({ metadata, spec }, nowMs) => [
    metadata.name ?? '',
    spec?.drivers?.length ?? 0,
    ageOf(metadata.creationTimestamp, nowMs),
  ],
}

export const csiNodeStrategy: KindStrategy<CSINode> = {
  ...resources.csinodes,
  needsVersion: true,
  returnsDeletedObject: true,
  table: csiNodeTable,
  selectableFields: [],
  subresources: {},
  nodeRestriction: { problem: restrictCSINode },
  validateCreate: csiNodeProblems,
  validateUpdate: (old, now) => [...csiNodeProblems(now), ...immutableProblems(old, now)],
}

const longestNodeId = 256

function csiNodeProblems({ spec }: CSINode): readonly Problem[] {
  const drivers = spec?.drivers ?? []
  const repeated = repeatedPlaces(drivers.map(({ name }) => name))
  return drivers.flatMap((driver, index) => {
    const at = `spec.drivers[${index}]`
    return [
      ...csiDriverNameProblems(`${at}.name`, driver.name),
      ...nodeIdProblems(`${at}.nodeID`, driver.nodeID),
      ...countProblems(`${at}.allocatable.count`, driver.allocatable?.count),
      ...(repeated.has(index) ? [duplicate(`${at}.name`, driver.name)] : []),
      ...topologyProblems(at, driver),
    ]
  })
}

function nodeIdProblems(field: string, id: string): readonly Problem[] {
  if (id === '') return [required(field)]
  return id.length > longestNodeId ? [invalid(field, id, `must be ${longestNodeId} characters or less`)] : []
}

function countProblems(field: string, count = 0): readonly Problem[] {
  return count < 0 ? [invalid(field, count, 'must be greater than or equal to 0')] : []
}

/** Kubernetes names the driver as the place of a wrong key. */
function topologyProblems(at: string, { topologyKeys = [] }: CSINodeDriver): readonly Problem[] {
  const repeated = repeatedPlaces(topologyKeys)
  return topologyKeys.flatMap((key, index) => [
    ...(key === '' ? [required(at)] : problemsWith(at, key, qualifiedNameProblem)),
    ...(repeated.has(index) ? [duplicate(at, key)] : []),
  ])
}

/** A driver is added and removed whole. */
function immutableProblems(old: CSINode, now: CSINode): readonly Problem[] {
  const before = new Map((old.spec?.drivers ?? []).map((driver) => [driver.name, driver]))
  return (now.spec?.drivers ?? []).flatMap((driver) => {
    const same = before.get(driver.name)
    return same === undefined || equalJSON(same, driver) ? [] : [invalid('CSINodeDriver', driver, 'field is immutable')]
  })
}

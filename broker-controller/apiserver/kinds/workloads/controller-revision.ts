/** apps/v1 ControllerRevision (pkg/registry/apps/controllerrevision/strategy.go). */
import { invalid, type Problem, required } from '../../../../api/problem.ts'
import { resources } from '../../../../api/resources.ts'
import { isObject } from '../../../../api/text/json.ts'
import type { ControllerRevision } from '../../../../api/workloads/controller-revision.ts'
import { equalJSON } from '../../../store/equal-json.ts'
import { ageOf, type TableOf, tableColumns } from '../../handlers/cells.ts'
import type { KindStrategy } from '../../handlers/strategy.ts'

const controllerRevisionTable: TableOf<ControllerRevision> = {
  columns: tableColumns('Name', 'Controller', 'Revision', 'Age'),
  cells: ({ metadata, revision = 0 }, nowMs) => {
    const owner = metadata.ownerReferences?.find(({ controller }) => controller === true)
    const [group, version] = (owner?.apiVersion ?? '').split('/')
    const kind = version === undefined ? owner?.kind : `${owner?.kind}.${group}`
    return [
      metadata.name ?? '',
      owner === undefined ? '<none>' : `${kind?.toLowerCase()}/${owner.name}`,
      revision,
      ageOf(metadata.creationTimestamp, nowMs),
    ]
  },
}

export const controllerRevisionStrategy: KindStrategy<ControllerRevision> = {
  ...resources.controllerrevisions,
  table: controllerRevisionTable,
  selectableFields: [],
  subresources: {},
  withDefaults: (one) => ({ ...one, revision: one.revision ?? 0 }),
  validateCreate: (one) => [...revisionProblems(one), ...dataProblems(one)],
  validateUpdate: (old, now) => [
    ...revisionProblems(now),
    ...(equalJSON(old.data ?? null, now.data ?? null) ? [] : [invalid('data', now.data, 'field is immutable')]),
  ],
}

function revisionProblems({ revision = 0 }: ControllerRevision): readonly Problem[] {
  return revision < 0 ? [invalid('revision', revision, 'must be greater than or equal to 0')] : []
}

/** Only of a new one, since the data stays. Controllers read it as a patch of their objects. */
function dataProblems({ data }: ControllerRevision): readonly Problem[] {
  if (data === undefined || data === null) return [required('data', 'data is mandatory')]
  return isObject(data) ? [] : [required('data', 'data must be a valid JSON object')]
}

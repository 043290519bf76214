/** core/v1 LimitRange (pkg/registry/core/limitrange/strategy.go). */
import type { LimitRange, LimitRangeItem } from '../../../../api/limits/limit-range.ts'
import { resources } from '../../../../api/resources.ts'
import { limitRangeProblems } from '../../../../api/validation/limit-range-validation.ts'
import { type TableOf, tableColumns } from '../../handlers/cells.ts'
import type { KindStrategy } from '../../handlers/strategy.ts'

/** Kubernetes has no printer for it, and shows the columns of any object (rest/table.go). */
const limitRangeTable: TableOf<LimitRange> = {
  columns: tableColumns('Name', 'Created At'),
  cells: ({ metadata }) => [metadata.name ?? '', metadata.creationTimestamp ?? ''],
}

export const limitRangeStrategy: KindStrategy<LimitRange> = {
  ...resources.limitranges,
  createdByUpdate: true,
  table: limitRangeTable,
  selectableFields: [],
  subresources: {},
  withDefaults: (range) =>
    range.spec?.limits === undefined
      ? range
      : { ...range, spec: { ...range.spec, limits: range.spec.limits.map(withItemDefaults) } },
  validateCreate: limitRangeProblems,
  validateUpdate: (_, now) => limitRangeProblems(now),
}

/** SetDefaults_LimitRangeItem in pkg/apis/core/v1/defaults.go: what a container gets follows from what it may have. */
function withItemDefaults(item: LimitRangeItem): LimitRangeItem {
  if (item.type !== 'Container') return item
  const limits = { ...item.max, ...item.default }
  return { ...item, default: limits, defaultRequest: { ...item.min, ...limits, ...item.defaultRequest } }
}

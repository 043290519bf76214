/** policy/v1 PodDisruptionBudget (pkg/registry/policy/poddisruptionbudget/strategy.go). */
import type { PodDisruptionBudget } from '../../../api/pod-disruption-budget.ts'
import { invalid, type Problem } from '../../../api/problem.ts'
import { resources } from '../../../api/resources.ts'
import { requirementsOf } from '../../../api/selectors.ts'
import { shareProblems } from '../../../api/validation/share-validation.ts'
import { ageOf, type TableOf, tableColumns } from '../handlers/cells.ts'
import { type KindStrategy, statusSubresource } from '../handlers/strategy.ts'

const budgetTable: TableOf<PodDisruptionBudget> = {
  columns: tableColumns('Name', 'Min Available', 'Max Unavailable', 'Allowed Disruptions', 'Age'),
  cells: ({ metadata, spec, status }, nowMs) => [
    metadata.name ?? '',
    String(spec?.minAvailable ?? 'N/A'),
    String(spec?.maxUnavailable ?? 'N/A'),
    status?.disruptionsAllowed ?? 0,
    ageOf(metadata.creationTimestamp, nowMs),
  ],
}

export const podDisruptionBudgetStrategy: KindStrategy<PodDisruptionBudget> = {
  ...resources.poddisruptionbudgets,
  takesAnyFinalizer: true,
  needsVersion: true,
  table: budgetTable,
  selectableFields: [],
  subresources: { status: statusSubresource },
  emptyStatus: { currentHealthy: 0, desiredHealthy: 0, disruptionsAllowed: 0, expectedPods: 0 },
  prepareForCreate: ({ status: _, ...budget }) => budget,
  validateCreate: budgetProblems,
  validateUpdate: (_, now) => budgetProblems(now),
}

function budgetProblems({ spec = {} }: PodDisruptionBudget): readonly Problem[] {
  const { minAvailable, maxUnavailable, selector } = spec
  const both = minAvailable !== undefined && maxUnavailable !== undefined
  const selects = requirementsOf(selector)
  return [
    ...(both ? [invalid('spec', spec, 'minAvailable and maxUnavailable cannot be both set')] : []),
    ...shareProblems('spec.minAvailable', minAvailable),
    ...shareProblems('spec.maxUnavailable', maxUnavailable),
    ...(selects === undefined || selects.ok ? [] : [invalid('spec.selector', selector, selects.problem)]),
  ]
}

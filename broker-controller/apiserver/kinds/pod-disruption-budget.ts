/** policy/v1 PodDisruptionBudget (pkg/registry/policy/poddisruptionbudget/strategy.go). */
import type { PodDisruptionBudget } from '../../../api/pod-disruption-budget.ts'
import { invalid, type Problem } from '../../../api/problem.ts'
import { resources } from '../../../api/resources.ts'
import { requirementsOf } from '../../../api/selectors.ts'
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
  table: budgetTable,
  selectableFields: [],
  subresources: { status: statusSubresource },
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

/** A number of pods, or a part of them. */
function shareProblems(field: string, share: number | string | undefined): readonly Problem[] {
  if (typeof share === 'number') {
    return share < 0 ? [invalid(field, share, 'must be greater than or equal to 0')] : []
  }
  if (share === undefined) return []
  if (!/^\d+%$/.test(share)) {
    return [invalid(field, share, "a valid percent string must be a numeric string followed by an ending '%'")]
  }
  return Number.parseInt(share, 10) > 100 ? [invalid(field, share, 'must not be greater than 100%')] : []
}

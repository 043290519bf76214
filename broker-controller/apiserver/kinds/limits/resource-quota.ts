/** core/v1 ResourceQuota (pkg/registry/core/resourcequota/strategy.go). */
import { amountNamed } from '../../../../api/limits/resource-amounts.ts'
import type { ResourceQuota } from '../../../../api/limits/resource-quota.ts'
import { formatQuantity } from '../../../../api/quantity.ts'
import { resources } from '../../../../api/resources.ts'
import { quotaChangeProblems, quotaProblems, quotaStatusProblems } from '../../../../api/validation/quota-validation.ts'
import { ageOf, type TableOf, tableColumns } from '../../handlers/cells.ts'
import { type KindStrategy, statusSubresource } from '../../handlers/strategy.ts'

const quotaTable: TableOf<ResourceQuota> = {
  columns: tableColumns('Name', 'Age', 'Request', 'Limit'),
  cells: ({ metadata, status = {} }, nowMs) => {
    const { hard = {}, used = {} } = status
    const shown = (names: readonly string[]) =>
      names.map(
        (name) =>
          `${name}: ${formatQuantity(amountNamed(used, name) ?? 0)}/${formatQuantity(amountNamed(hard, name) ?? 0)}`,
      )
    const names = Object.keys(hard).sort()
    const isLimit = (name: string) => name.startsWith('limits.')
    return [
      metadata.name ?? '',
      ageOf(metadata.creationTimestamp, nowMs),
      shown(names.filter((name) => !isLimit(name))).join(', '),
      shown(names.filter(isLimit)).join(', '),
    ]
  },
}

export const resourceQuotaStrategy: KindStrategy<ResourceQuota> = {
  ...resources.resourcequotas,
  returnsDeletedObject: true,
  table: quotaTable,
  selectableFields: [],
  subresources: { status: { ...statusSubresource, validateUpdate: (_, now) => quotaStatusProblems(now) } },
  emptyStatus: {},
  prepareForCreate: ({ status: _, ...quota }) => quota,
  validateCreate: quotaProblems,
  validateUpdate: quotaChangeProblems,
}
